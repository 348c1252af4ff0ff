# SPDX-License-Identifier: Apache-2.0
"""A stopped process is not a dead one: whatever the kernel and the engine wait for, nobody gives it up."""

import re
import signal
import time

import pytest
from job import until

pytestmark = pytest.mark.timeout(400)

RANKS = 4
CONTROL_SILENCE = 10.0  # seconds after which a dead host is noticed (kControlSilence)


def test_a_rank_stopped_for_three_timeouts_under_control_load_goes_on(start_job):
    job = start_job("stopped_worker.py", RANKS)
    job.signal(2, signal.SIGSTOP)
    (job.folder / "stopped").touch()
    for rank in (0, 1, 3):
        assert job.wait_for_note("submitted", rank)
    time.sleep(3 * CONTROL_SILENCE + 1)
    assert job.process.poll() is None, job.stderr()

    job.signal(2, signal.SIGCONT)
    (job.folder / "go on").touch()

    assert job.wait(90) == 0, job.stderr()
    assert [job.note("right", rank) for rank in range(RANKS)] == [True] * RANKS
    assert job.left_behind() == []


@pytest.mark.parametrize("steps", [0, 1], ids=["before_its_links_stand", "in_the_middle"])
def test_a_rank_stopped_within_big_allreduces_goes_on(start_job, steps):
    job = start_job("loop_worker.py", RANKS)
    for rank in range(RANKS):
        job.wait_for_note("steps" if steps else "pid", rank)
    stopped = job.signal(1, signal.SIGSTOP)
    time.sleep(2)
    before = job.note("steps", 0) or 0
    time.sleep(3 * CONTROL_SILENCE - (time.monotonic() - stopped) + 1)
    assert (job.note("steps", 0) or 0) == before, "the others cannot go on without it"
    assert job.process.poll() is None, job.stderr()

    job.signal(1, signal.SIGCONT)

    deadline = time.monotonic() + 60
    while (job.note("steps", 0) or 0) < before + 3:
        assert job.process.poll() is None, job.stderr()
        assert time.monotonic() < deadline, "it does not go on"
        time.sleep(0.05)
    assert [job.note("error", rank) for rank in range(RANKS)] == [None] * RANKS


@pytest.mark.parametrize("within", [True, False], ids=["within_it", "before_it"])
def test_a_rank_stopped_for_longer_than_a_collective_may_take_is_named_to_all(start_job, within):
    job = start_job("loop_worker.py", RANKS, RONDE_COLLECTIVE_TIMEOUT="6", RONDE_HEARTBEAT="0.2")
    for rank in range(RANKS):
        job.wait_for_note("steps", rank)
    pid = job.pid(1)
    time.sleep(2)  # heartbeats pass
    if not within:
        (job.folder / "hold.1").touch()
        assert job.wait_for_note("held", 1)
    job.signal(1, signal.SIGSTOP)
    for rank in (0, 2, 3):
        error = job.wait_for_note("error", rank, 20)
        assert error["kind"] == "DeadlineError", error
        named = rf"collective_timeout\)[:;] .*rank 1 \(.*pid {pid}\) has shown no sign of life for \d s"
        assert re.search(named, error["text"]), error

    job.signal(1, signal.SIGCONT)
    (job.folder / "go on").touch()

    assert job.wait_for_note("error", 1, 20)["kind"] in ("DeadlineError", "RankLeftError")
    job.wait(30)
    until(lambda: not job.left_behind(), 5, "nothing is left behind")
