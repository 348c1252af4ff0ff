# SPDX-License-Identifier: Apache-2.0
"""ronde.run: a function on several ranks."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ronde
from ronde import run as public_run


class OnlyHere(Exception):
    """Cannot be unpickled: its constructor wants more than its arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def test_results_come_by_rank():
    def work(a, b=0):
        from ronde.core import engine
        from ronde.core.objects import allgather_object

        engine.init()
        return engine.rank(), a + b, allgather_object(engine.rank() ** 2)

    assert ronde.run(work, args=(1,), kwargs={"b": 2}, np=3) == [(rank, 3, [0, 1, 4]) for rank in range(3)]


def test_an_exception_comes_back_with_its_traceback():
    def work():
        import os

        if os.environ["RONDE_RANK"] == "1":
            raise KeyError("no such column")
        return 1

    with pytest.raises(KeyError, match="no such column") as caught:
        ronde.run(work, np=2)
    assert "on rank 1" in str(caught.value.__cause__)
    assert 'raise KeyError("no such column")' in str(caught.value.__cause__) or "in work" in str(caught.value.__cause__)


def test_an_exception_that_cannot_be_unpickled_comes_back_as_text():
    def work():
        raise OnlyHere(1, 2)

    with pytest.raises(RuntimeError, match="1 and 2"):
        ronde.run(work, np=1)


def test_a_rank_that_ends_without_a_result():
    def work():
        import os

        os._exit(7)

    with pytest.raises(RuntimeError, match=r"status 7.*rank\(s\) \[0, 1\]"):
        ronde.run(work, np=2)


@pytest.mark.parametrize("code", [0, None, 7, "no data"])
def test_a_function_that_exits_is_told_by_rank_and_code(code):
    def work(code):
        import os
        import sys

        if os.environ["RONDE_RANK"] == "1":
            sys.exit(code)
        return 1

    words = re.escape(f"the function ended rank 1 by sys.exit({'' if code is None else repr(code)}) before it returned")
    with pytest.raises(RuntimeError, match=f"^{words}$") as caught:
        ronde.run(work, args=(code,), np=2)
    assert "in work" in str(caught.value.__cause__)


def test_a_function_that_exits_on_every_rank():
    def work():
        import sys

        sys.exit(0)

    with pytest.raises(RuntimeError, match=r"the function ended rank [01] by sys.exit\(0\) before it returned"):
        ronde.run(work, np=2)


def test_no_ranks():
    with pytest.raises(ValueError, match="np must be 1 or more"):
        public_run(print, np=0)


def test_environment_and_nothing_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def work():
        import os

        return os.environ["COLOUR"]

    assert ronde.run(work, np=1, env={"COLOUR": "a b\n'c'"}) == ["a b\n'c'"]
    assert os.listdir(tmp_path) == []


def test_python_m_ronde_is_the_program():
    told = subprocess.run(
        [sys.executable, "-m", "ronde", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ronde.__version__ in told.stdout


@pytest.mark.parametrize("start", [["-m", "ronde"], [str(Path(sys.executable).with_name("ronde"))]])
def test_the_program_hands_on_no_signal_that_python_ignores(start):
    show = ["run", "-np", "1", "grep", "SigIgn", "/proc/self/status"]
    ended = subprocess.run([sys.executable, *start, *show], capture_output=True, text=True, timeout=60, check=True)
    assert int(ended.stdout.split()[1], 16) == 0


CALLER = """
import os, signal, sys, time
import ronde

def work(folder):
    def save(*_):
        time.sleep(1.5)
        open(os.path.join(folder, f"saved.{os.environ['RONDE_RANK']}"), "w").close()
        sys.exit(1)
    signal.signal(signal.SIGINT, save)
    signal.signal(signal.SIGTERM, save)
    open(os.path.join(folder, f"{os.getpid()}.pid"), "w").close()
    time.sleep(60)

ronde.run(work, (sys.argv[1],), np=2)
"""


def started_caller(tmp_path):
    """A program in ronde.run, its ranks at work, and the folder that they write to."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (tmp_path / "tmp").mkdir()
    program = tmp_path / "caller.py"
    program.write_text(CALLER)
    caller = subprocess.Popen(
        [sys.executable, str(program), str(notes)],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: len(list(notes.glob("*.pid"))) == 2, 60)
    return caller, notes


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid):
    return os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_caller_that_is_killed_leaves_no_rank_and_no_file(tmp_path, number):
    caller, notes = started_caller(tmp_path)
    pids = [int(path.stem) for path in notes.glob("*.pid")]
    os.kill(caller.pid, number)
    caller.wait(10)
    wait_until(lambda: not any(map(is_running, pids)), 10)
    assert len(list(notes.glob("saved.*"))) == 2, "they had their SIGTERM"
    wait_until(lambda: not list((tmp_path / "tmp").iterdir()), 5)


@pytest.mark.parametrize("whole_group", [True, False])
def test_after_ctrl_c_the_ranks_may_take_their_time(tmp_path, whole_group):
    caller, notes = started_caller(tmp_path)
    if whole_group:
        os.killpg(caller.pid, signal.SIGINT)
    else:
        os.kill(caller.pid, signal.SIGINT)
    assert caller.wait(20) == -signal.SIGINT
    assert len(list(notes.glob("saved.*"))) == 2
    assert list((tmp_path / "tmp").iterdir()) == []
