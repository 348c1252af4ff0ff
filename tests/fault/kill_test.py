# SPDX-License-Identifier: Apache-2.0
"""kill -9 of one rank: everybody else is told the cause within two seconds, and nothing stays behind."""

import signal

import pytest
from job import until

pytestmark = pytest.mark.timeout(400)

RANKS = 4
SECONDS_TO_TELL = 2.0


@pytest.mark.parametrize("victim", [2, 0])
def test_every_survivor_of_a_killed_rank_is_told_who_and_why(start_job, victim):
    job = start_job("loop_worker.py", RANKS)
    pid = job.pid(victim)
    for rank in range(RANKS):
        until(lambda rank=rank: job.wait_for_note("steps", rank) >= 3, 90, f"rank {rank} does three steps")

    killed = job.signal(victim, signal.SIGKILL)

    for rank in set(range(RANKS)) - {victim}:
        error = job.wait_for_note("error", rank, 20)
        assert f"rank {victim}" in error["text"], error
        assert str(pid) in error["text"], error
        assert "signal 9" in error["text"], error
        assert error["kind"] == "PeerLostError", error
        assert error["time"] - killed < SECONDS_TO_TELL, error
    assert job.wait(20) == 128 + signal.SIGKILL, job.stderr()
    last_words = "\n".join(job.stderr().strip().split("\n")[-15:])
    assert f"rank {victim}" in last_words
    assert str(pid) in last_words
    assert "signal 9" in last_words
    until(lambda: not job.left_behind(), 5, f"nothing is left behind, but there is {job.left_behind()}")


def test_after_kill_9_of_the_launcher_nothing_is_left(start_job):
    job = start_job("loop_worker.py", RANKS)
    for rank in range(RANKS):
        job.wait_for_note("steps", rank)
    job.process.kill()
    job.wait(5)
    until(lambda: not job.living(), 5, f"every process ends, but there are {job.living()}")
    until(lambda: not job.left_behind(), 5, f"nothing is left behind, but there is {job.left_behind()}")
