# SPDX-License-Identifier: Apache-2.0
"""An engine that has nothing to do leaves the processor alone."""

import sys
from pathlib import Path

import pytest
from jobs import RONDE, run


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_an_idle_engine_wakes_once_per_second(transport):
    worker = Path(__file__).with_name("idle_worker.py")
    ended = run(RONDE, "run", "-np", "2", "--no-prefix", sys.executable, str(worker), RONDE_TRANSPORT=transport)
    assert ended.returncode == 0, ended.stderr
    naps = [int(line) for line in ended.stdout.split()]
    heartbeats_of_peers = 0 if transport == "shm" else 3
    assert len(naps) == 2
    assert all(9 <= count <= 11 + heartbeats_of_peers for count in naps), naps
