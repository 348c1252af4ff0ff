# SPDX-License-Identifier: Apache-2.0
"""The rank that failed is named, not those that suffer from it."""

import sys
from pathlib import Path

import pytest
from jobs import RONDE, run

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("exit", 1, "disk quota exceeded"),
        ("status", 5, ""),
        ("finally", 1, "ValueError: no such column"),
        ("caught", 5, ""),
    ],
)
def test_a_rank_that_leaves_and_fails_is_blamed(how, status, words):
    ended = run(RONDE, "run", "-np", "3", sys.executable, str(HERE / "leave_then_fail_worker.py"), how)
    assert ended.returncode == status, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("ronde: rank 1 ("), ended.stderr
    assert f"exited with status {status}" in ended.stderr.splitlines()[-1]
    repeated = ended.stderr.partition("ronde: the last lines of rank 1:")[2]
    assert words in repeated
