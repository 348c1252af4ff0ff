# SPDX-License-Identifier: Apache-2.0
"""Where there is little memory, or none that can be shared."""

import sys
from pathlib import Path

import pytest
from jobs import RONDE, run

HERE = Path(__file__).parent


def job(worker, ranks=3):
    return [RONDE, "run", "-np", str(ranks), "--no-prefix", sys.executable, str(HERE / worker)]


def test_without_memfd_data_goes_over_tcp_and_it_is_said_once():
    ended = run(sys.executable, str(HERE / "without_memfd.py"), *job("memory_worker.py"))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "sums are right True\n"
    said = [line for line in ended.stderr.splitlines() if "data goes over TCP" in line]
    assert len(said) == 1, ended.stderr
    assert "memfd" in said[0]
    assert "Operation not permitted" in said[0]


def test_without_memfd_a_job_that_insists_on_shared_memory_is_told_why():
    ended = run(sys.executable, str(HERE / "without_memfd.py"), *job("memory_worker.py"), RONDE_TRANSPORT="shm")
    assert ended.returncode == 1
    assert "RONDE_TRANSPORT=shm, but shared memory does not work here" in ended.stderr
    assert "memfd" in ended.stderr


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_an_output_that_does_not_fit_into_one_rank_is_told_to_all_and_a_new_start_is_possible(transport):
    ended = run(*job("output_too_big_worker.py"), RONDE_TRANSPORT=transport)
    assert ended.returncode == 0, ended.stderr
    lines = sorted(ended.stdout.splitlines())
    assert [line for line in lines if "goes on" in line] == [f"rank {rank}: goes on" for rank in range(3)]
    told = [line for line in lines if "goes on" not in line]
    assert len(told) == 6
    for i, line in enumerate(told):
        operation = ("allgather 'parts'", "allreduce 'behind'")[i % 2]
        assert line.startswith(f"rank {i // 2}: ResourceExhaustedError: {operation}: "), line
        assert line.endswith("no memory for an output of 402653184 bytes"), line
        assert f"{operation}: {operation}" not in line
