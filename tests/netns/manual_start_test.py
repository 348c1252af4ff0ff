# SPDX-License-Identifier: Apache-2.0
"""The real engine between pretended hosts, started by hand."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from manual import ManualJob, write_key

pytestmark = pytest.mark.timeout(400)

ROOT = Path(__file__).resolve().parents[2]
LOOP = str(Path(__file__).with_name("loop_worker.py"))
START_SECONDS = 240  # four times PyTorch from a cold disk beside other work
# A dead host is noticed 10 s (kControlSilence) after the first frame that it does not acknowledge; on a link that
# carries only beats that is up to 5 s after the cut. Then the cause is sought for a second. The rest is slack.
SECONDS_TO_NOTICE = 20.0


@pytest.fixture
def start(tmp_path):
    jobs = []

    def make(hosts, per_host, command):
        jobs.append(ManualJob(tmp_path, hosts[0], command))
        jobs[-1].start_on(hosts, per_host)
        return jobs[-1]

    yield make
    for job in jobs:
        job.close()


def wait_for(job, path, seconds=START_SECONDS):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name} within {seconds} s\n{job.outputs()}"
        time.sleep(0.02)
    return json.loads(path.read_text())


def wait_for_steps(job, folder, rank, more_than=2):
    deadline = time.monotonic() + START_SECONDS
    while wait_for(job, folder / f"steps.{rank}") <= more_than:
        assert time.monotonic() < deadline, job.outputs()
        time.sleep(0.02)


def test_the_digits_are_learned_over_two_hosts_with_two_ranks_each(make_network, start):
    job = start(make_network(2).hosts, 2, [str(ROOT / "examples/torch_digits.py"), "--epochs", "5"])
    assert job.wait(240) == [0, 0, 0, 0], job.outputs()
    result = re.search(r"^RESULT example=torch_digits ranks=4 accuracy=([0-9.]+) ", job.ranks[0].output(), re.MULTILINE)
    assert result, job.outputs()
    assert float(result[1]) >= 0.9
    assert all("RESULT" not in started.output() for started in job.ranks[1:])


def test_three_hosts_with_one_rank_each_agree_and_leave(make_network, start, tmp_path):
    job = start(make_network(3).hosts, 1, [LOOP, str(tmp_path)])
    for rank in range(3):
        wait_for_steps(job, tmp_path, rank)
    (tmp_path / "stop").touch()
    assert job.wait(30) == [0, 0, 0], job.outputs()
    assert not list(tmp_path.glob("error.*")), job.outputs()


def test_hosts_that_are_cut_apart_are_told_of_each_other(make_network, start, tmp_path):
    network = make_network(2)
    job = start(network.hosts, 2, [LOOP, str(tmp_path)])
    for rank in range(4):
        wait_for_steps(job, tmp_path, rank)
    network.cut(*network.hosts)
    begin = time.monotonic()
    errors = [wait_for(job, tmp_path / f"error.{rank}", 40) for rank in range(4)]
    assert max(error["time"] for error in errors) - begin < SECONDS_TO_NOTICE, errors
    assert all(re.search(r"rank [0-3]", error["text"]) for error in errors), errors
    job.wait(20)


def test_a_cut_that_heals_soon_harms_nobody(make_network, start, tmp_path):
    network = make_network(2)
    job = start(network.hosts, 2, [LOOP, str(tmp_path)])
    for rank in range(4):
        wait_for_steps(job, tmp_path, rank)
    network.cut(*network.hosts)
    time.sleep(4)
    before = json.loads((tmp_path / "steps.0").read_text())
    network.heal(*network.hosts)
    wait_for_steps(job, tmp_path, 0, more_than=before + 3)
    (tmp_path / "stop").touch()
    assert job.wait(30) == [0, 0, 0, 0], job.outputs()


@pytest.mark.parametrize("victim", [3, 0])
def test_a_killed_rank_is_named_on_every_host_without_a_launcher(make_network, start, tmp_path, victim):
    job = start(make_network(2).hosts, 2, [LOOP, str(tmp_path)])
    for rank in range(4):
        wait_for_steps(job, tmp_path, rank)
    begin = time.monotonic()
    # nsenter and setpriv became the rank: its parent is nsenter, which waits for it.
    nsenter = job.ranks[victim].process.pid
    os.kill(int(Path(f"/proc/{nsenter}/task/{nsenter}/children").read_text().split()[0]), signal.SIGKILL)
    survivors = [rank for rank in range(4) if rank != victim]
    errors = [wait_for(job, tmp_path / f"error.{rank}", 20) for rank in survivors]
    assert all(f"rank {victim}" in error["text"] for error in errors), errors
    assert max(error["time"] for error in errors) - begin < 5, errors
    job.wait(20)


def test_a_host_with_another_key_is_told_so_and_never_let_in(make_network, tmp_path):
    one, two = make_network(2).hosts
    job = ManualJob(tmp_path, one, [LOOP, str(tmp_path)])
    (tmp_path / "other").mkdir()
    other_key = str(write_key(tmp_path / "other/key"))
    try:
        job.start(one, 0, 2, RONDE_INIT_TIMEOUT="5")
        job.start(two, 1, 2, RONDE_INIT_TIMEOUT="5", RONDE_KEY_FILE=other_key)
        assert all(status not in (0, -signal.SIGKILL) for status in job.wait(START_SECONDS)), job.outputs()
        assert "key" in job.ranks[1].output(), job.outputs()
        assert "rank 1" in job.ranks[0].output(), job.outputs()
        assert not list(tmp_path.glob("steps.*"))
    finally:
        job.close()
