# SPDX-License-Identifier: Apache-2.0
"""The ``ronde`` program that lies in the package: the console script and ``python -m ronde`` become it."""

from __future__ import annotations

import os
import signal
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
    # Python ignores these for itself, and an ignored signal stays ignored in every process that the program starts.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(program, ["ronde", *sys.argv[1:]])
