# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys
import time

import pytest
import stages
from results import Counts
from stages import Outcome, Stage


def stage(name, outcome, **more):
    return Stage(name, f"the stage {name}", lambda _: outcome, **more)


@pytest.fixture
def three(monkeypatch):
    """Set-up, a good stage, a stage that each test makes, a good stage."""

    def use(outcome):
        made = [
            stage("setup", Outcome(True)),
            stage("good", Outcome(True, Counts(passed=3, skipped=1))),
            stage("mine", outcome),
            stage("rest", Outcome(True, Counts(passed=5))),
        ]
        monkeypatch.setattr(stages, "STAGES", made)

    return use


def last_line(capsys):
    return capsys.readouterr().out.rstrip("\n").split("\n")[-1]


def test_all_good_is_zero_and_the_sum_comes_last(three, capsys):
    three(Outcome(True, Counts(passed=1)))
    assert stages.main([]) == 0
    assert last_line(capsys) == "9 passed, 0 failed, 1 skipped"


def test_the_first_broken_stage_ends_the_run(three, capsys):
    three(Outcome(False, Counts(passed=1, failed=2)))
    assert stages.main([]) == 1
    out = capsys.readouterr().out
    assert out.endswith("4 passed, 2 failed, 1 skipped\n")
    assert re.search(r"^rest +not run$", out, re.MULTILINE)


def test_a_stage_that_breaks_without_a_failed_case_is_one_failure(three, capsys):
    three(Outcome(False))
    assert stages.main([]) == 1
    assert last_line(capsys) == "3 passed, 1 failed, 1 skipped"


def test_only_runs_what_is_named_after_the_setup(three, capsys):
    three(Outcome(True, Counts(passed=1)))
    assert stages.main(["--only", "rest"]) == 0
    assert last_line(capsys) == "5 passed, 0 failed, 0 skipped"


def test_missing_rights_are_told_before_anything_runs(three, capsys, monkeypatch):
    ran = []
    three(Outcome(True))
    monkeypatch.setattr(stages, "STAGES", [Stage("net", "", lambda _: ran.append(1), needs_root=True)])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert stages.main([]) == 2
    out = capsys.readouterr().out
    assert "these stages need root (they make network namespaces): net" in out
    assert out.endswith("0 passed, 1 failed, 0 skipped\n")
    assert ran == []


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path):
    mark = tmp_path / "pid"
    begin = time.monotonic()
    status = stages.run(["sh", "-c", f"sleep 60 & echo $! > {mark}; wait"], minutes=1 / 120)
    assert status == 124
    assert time.monotonic() - begin < 20
    child = int(mark.read_text())
    wait_until(lambda: not is_alive(child))


def test_a_signal_that_ends_the_run_ends_the_command(tmp_path):
    mark = tmp_path / "pid"
    script = f"import stages; stages.Ending.watch(); stages.run(['sh', '-c', 'echo $$ > {mark}; sleep 60'], 1)"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=stages.ROOT / "tools", stdout=subprocess.DEVNULL)
    wait_until(lambda: mark.exists() and mark.read_text().strip())
    process.terminate()
    assert process.wait(10) == 143
    child = int(mark.read_text())
    wait_until(lambda: not is_alive(child))


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_every_stage_has_a_name_of_its_own():
    names = [stage.name for stage in stages.STAGES]
    assert len(set(names)) == len(names)
