# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher with real processes. The scripts that the ranks run do not need the engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from jobs import Launches

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def ronde_bin() -> str:
    """RONDE_BIN, else the release build's program, else the one in the environment of the clone."""
    given = os.environ.get("RONDE_BIN")
    if given:
        return given
    for place in ("build/release/src/cli/ronde", ".venv/bin/ronde"):
        if os.access(ROOT / place, os.X_OK):
            return str(ROOT / place)
    pytest.fail("there is no ronde program: build it, or name it in RONDE_BIN")


@pytest.fixture
def launches(ronde_bin, tmp_path):
    """Starts launchers; afterwards nothing of them may be left: no process, no folder."""
    starter = Launches(ronde_bin, tmp_path)
    yield starter
    starter.end()
