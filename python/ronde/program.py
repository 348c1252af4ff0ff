# SPDX-License-Identifier: Apache-2.0
"""The ``ronde`` program that lies in the package: the console script and ``python -m ronde`` become it."""

from __future__ import annotations

import os
import sys


def path() -> str:
    """The packaged program; ``RuntimeError`` naming the place if it is not there."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ronde")
    if not os.access(program, os.X_OK):
        raise RuntimeError(f"the program {program} is missing: Ronde was not installed from a wheel")
    return program


def main() -> None:
    """Replaces this process by the program, with this process's arguments."""
    try:
        program = path()
    except RuntimeError as error:
        sys.exit(f"ronde: {error}")
    os.execv(program, ["ronde", *sys.argv[1:]])
