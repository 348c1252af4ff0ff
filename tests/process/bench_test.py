# SPDX-License-Identifier: Apache-2.0
"""`ronde bench` from end to end. What it measures is not looked at, only that it measures and checks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

SECONDS = 120
LIAR = str(Path(__file__).with_name("liar_in_bench.py"))


def told(ended) -> str:
    return (ended.out + ended.err).decode()


@pytest.mark.parametrize(
    ("transport", "sizes", "expected"),
    [
        ("shm", "8:4M", [*(8 * 4**i for i in range(10)), 4 << 20]),
        ("tcp", "8,64K,4M", [8, 64 << 10, 4 << 20]),
    ],
)
def test_allreduce_has_a_checked_row_for_each_size(launches, transport, sizes, expected):
    words = ("bench", "allreduce", "-np", "2", "--sizes", sizes)
    ended = launches.run(*words, env={"RONDE_TRANSPORT": transport}, seconds=SECONDS)
    assert ended.status == 0, told(ended)
    title, columns, *rows = ended.out.decode().splitlines()
    assert title.startswith(f"# allreduce, float32 sum in place, 2 ranks over {transport}; memcpy: ")
    assert re.split(r"\s{2,}", columns.strip()) == ["bytes", "median us", "bus GB/s", "memcpy us", "ratio", "result"]
    assert [int(row.split()[0]) for row in rows] == expected
    assert all(re.fullmatch(r"( +[0-9]+(\.[0-9]+)?){5}  ok", row) for row in rows), rows
    assert all(float(row.split()[1]) > 0 for row in rows), rows


@pytest.mark.parametrize(("transport", "repeats"), [("shm", 20000), ("tcp", 1000)])
def test_latency_is_one_line(launches, transport, repeats):
    words = ("bench", "latency", "-np", "2", "--repeats", str(repeats))
    ended = launches.run(*words, env={"RONDE_TRANSPORT": transport}, seconds=SECONDS)
    assert ended.status == 0, told(ended)
    line = re.fullmatch(
        r"allreduce of 8 B, 2 ranks, submit to done: median ([0-9.]+) us, 90% ([0-9.]+) us, 99% ([0-9.]+) us "
        rf"\({repeats} timings\)\n",
        ended.out.decode(),
    )
    assert line, told(ended)
    assert 0 < float(line[1]) <= float(line[2]) <= float(line[3])


def run_with_liar(launches, *bench):
    """The program as rank 0, and as rank 1 a script that submits the same operations with wrong values."""
    script = 'if [ "$RONDE_RANK" = 0 ]; then exec "$0" bench "$@"; fi; exec "$PYTHON" "$LIAR" "$1"'
    words = ("run", "-np", "2", "--no-prefix", "sh", "-c", script, launches.program, *bench)
    return launches.run(*words, env={"PYTHON": sys.executable, "LIAR": LIAR}, seconds=SECONDS)


def test_a_wrong_sum_is_told_in_the_row_and_by_the_status(launches):
    ended = run_with_liar(launches, "allreduce", "--sizes", "8", "--repeats", "3")
    rows = ended.out.decode().splitlines()[2:]
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("8", "WRONG")], told(ended)
    assert ended.status == 1, told(ended)


def test_a_wrong_sum_ends_the_latency(launches):
    ended = run_with_liar(launches, "latency")
    assert ended.out == b""
    assert "ronde bench: wrong result" in ended.err_lines, told(ended)
    assert ended.status == 1, told(ended)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["allreduce", "--sizes", "8:"], "--sizes: '' is not a size: expected bytes, a multiple of 4, such as"),
        (["allreduce", "--sizes", "9G:1"], "--sizes: '1' is not a size: expected bytes, a multiple of 4"),
        (["allreduce", "--sizes", "9G:8"], "--sizes: '9G:8': the first size is larger than the last"),
        (["allreduce", "--sizes"], "--sizes needs a value"),
        (["allreduce", "-np", "0"], "np 0: expected a whole number of at least 1"),
        (["latency", "-np", "0"], "np 0: expected a whole number of at least 1"),
        (["latency", "-np", "two"], "np two: expected a whole number of at least 1"),
        (["latency", "--repeats", "1"], "--repeats 1: expected a whole number of at least 10"),
        (["latency", "--sizes", "8"], "--sizes"),
    ],
)
def test_mistakes_are_told_before_anything_starts(launches, words, part):
    ended = launches.run("bench", *words)
    assert ended.status == 2
    assert ended.out == b""
    assert len(ended.err_lines) == 1
    assert ended.err_lines[0].startswith("ronde: bench: ")
    assert part in ended.err_lines[0]


@pytest.mark.parametrize("words", [[], ["nothing"]])
def test_what_can_be_measured_is_told(launches, words):
    ended = launches.run("bench", *words)
    assert ended.status == 2
    assert ended.out == b""
    assert "ronde bench allreduce [-np N]" in ended.err.decode()
    assert "ronde bench latency [-np N]" in ended.err.decode()
