# SPDX-License-Identifier: Apache-2.0
"""How jobs end: statuses, signals, blame, and that nothing is left however the launcher or the agent goes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time

import pytest
from jobs import NOTHING_TO_SAY, has_socket, is_running, read, state_of, until

# Says who it is, all at once.
STAY = "echo $$ > pid.$RANK.part; mv pid.$RANK.part pid.$RANK; "


def pid_of(launches, rank: int) -> int:
    launches.wait_for_files(f"pid.{rank}")
    return int((launches.folder / f"pid.{rank}").read_text())


@pytest.mark.parametrize("np", [1, 3])
def test_a_good_end_is_silent(launches, np):
    ended = launches.run("run", "-np", str(np), "true", env=NOTHING_TO_SAY)
    assert (ended.status, ended.out, ended.err) == (0, b"", b"")


def test_the_first_failing_status_is_returned_and_named_last(launches):
    ended = launches.shell(3, "[ $RANK = 1 ] && { echo why; echo because >&2; exit 7; }; sleep 60", "--grace", "0.1")
    assert ended.status == 7
    lines = ended.err_lines
    assert re.fullmatch(r"ronde: rank 1 \(pid \d+\) exited with status 7; the other 2 ranks were ended", lines[-1])
    assert lines[-4:-1] == ["ronde: the last lines of rank 1:", "  why", "  because"] or lines[-4:-1] == [
        "ronde: the last lines of rank 1:",
        "  because",
        "  why",
    ]


def test_only_the_last_twenty_lines_are_repeated(launches):
    ended = launches.shell(2, "[ $RANK = 0 ] || exit 0; for i in $(seq 1 50); do echo line $i; done; exit 1")
    lines = ended.err_lines
    begin = lines.index("ronde: the last lines of rank 0:")
    assert lines[begin + 1 : -1] == [f"  line {i}" for i in range(31, 51)]


def test_a_rank_killed_by_a_signal_gives_128_plus_n_and_is_named(launches):
    child = launches.start_shell(3, STAY + "exec sleep 60", "--grace", "0.1")
    pid = pid_of(launches, 2)
    os.kill(pid, signal.SIGKILL)
    ended = launches.finish(child)
    assert ended.status == 137
    assert ended.err_lines[-1] == (
        f"ronde: rank 2 (pid {pid}) was killed by signal 9 (SIGKILL); the other 2 ranks were ended"
    )


def test_the_others_get_sigterm_after_the_grace_and_sigkill_five_seconds_later(launches):
    script = (
        "import os,signal,time\n"
        "if os.environ['RANK']=='0': time.sleep(1); os._exit(5)\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('term', time.monotonic(), flush=True))\n"
        "print('start', time.monotonic(), flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    begin = time.monotonic()
    ended = launches.python(2, script, options=("--grace", "1"))
    took = time.monotonic() - begin
    assert ended.status == 5
    told = {line.split()[1]: float(line.split()[2]) for line in ended.out.decode().splitlines()}
    assert told["term"] > begin + 2.0
    assert 7.0 <= took < 20.0


def test_ranks_that_end_during_the_grace_do_not_prolong_it(launches):
    begin = time.monotonic()
    ended = launches.shell(2, "[ $RANK = 0 ] && exit 4; sleep 0.5; exit 1", "--grace", "30")
    assert ended.status == 4
    assert time.monotonic() - begin < 15


def test_no_grace_at_all(launches):
    begin = time.monotonic()
    assert launches.shell(2, "[ $RANK = 0 ] && exit 4; exec sleep 60", "--grace", "0").status == 4
    assert time.monotonic() - begin < 15


def test_a_rank_that_exits_with_0_does_not_end_the_others(launches):
    ended = launches.shell(2, "[ $RANK = 0 ] && exit 0; sleep 1; echo done")
    assert ended.status == 0
    assert ended.out == b"[1] done\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_forwarded_and_blame_nobody(launches, number):
    script = (
        "import os,signal,sys,time\n"
        "def stop(n, _): print('got', n, flush=True); sys.exit(0)\n"
        "for n in (1,2,15): signal.signal(n, stop)\n"
        "open('pid.'+os.environ['RANK'],'w').write('1')\n"
        "time.sleep(60)\n"
    )
    child = launches.start("run", "-np", "2", "python3", "-c", script)
    launches.wait_for_files("pid.0", "pid.1")
    child.send_signal(number)
    ended = launches.finish(child)
    assert ended.status == 128 + number
    assert sorted(ended.out.decode().splitlines()) == [f"[{r}] got {int(number)}" for r in range(2)]
    assert "rank" not in ended.err_lines[-1]


def test_a_signal_reaches_the_grandchildren_of_a_rank(launches):
    child = launches.start_shell(
        2, "sh -c 'trap \"echo inner; exit 0\" INT; touch up.$RANK; while :; do sleep 0.1; done'; exit 0"
    )
    launches.wait_for_files("up.0", "up.1")
    child.send_signal(signal.SIGINT)
    ended = launches.finish(child)
    assert ended.status == 130
    assert sorted(ended.out.decode().splitlines()) == ["[0] inner", "[1] inner"]


def test_after_a_signal_the_ranks_may_take_longer_than_the_grace(launches):
    script = "trap 'sleep 2; echo saved; exit 0' TERM; touch up.$RANK; while :; do sleep 0.1; done"
    child = launches.start_shell(2, script, "--grace", "0.1")
    launches.wait_for_files("up.0", "up.1")
    child.send_signal(signal.SIGTERM)
    ended = launches.finish(child)
    assert ended.status == 143
    assert len(ended.out.splitlines()) >= 1


def test_a_second_ctrl_c_kills(launches):
    child = launches.start_shell(2, "trap '' INT TERM; touch up.$RANK; while :; do sleep 0.1; done")
    launches.wait_for_files("up.0", "up.1")
    child.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert child.poll() is None
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    ended = launches.finish(child)
    assert ended.status == 130
    assert time.monotonic() - begin < 4


def test_a_second_ctrl_c_ends_the_job_also_when_the_agent_does_not_answer(launches):
    child = launches.start_shell(2, STAY + "exec sleep 60")
    ranks = [pid_of(launches, rank) for rank in range(2)]
    os.kill(launches.agent_of(child), signal.SIGSTOP)
    child.send_signal(signal.SIGINT)
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert launches.finish(child, seconds=20).status == 130
    assert not any(map(is_running, ranks))


def test_an_echo_of_a_signal_is_no_second_one(launches):
    """As `timeout` does: it signals the launcher and then its group."""
    child = launches.start_shell(
        2, "trap 'sleep 1; echo saved; exit 0' TERM; touch up.$RANK; while :; do sleep 0.1; done"
    )
    launches.wait_for_files("up.0", "up.1")
    child.send_signal(signal.SIGTERM)
    time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    ended = launches.finish(child)
    assert ended.status == 143
    assert b"saved" in ended.out


# A child behind sh -c, one in a session of its own, one whose parent has gone, and one without the job's mark.
FAMILY = (
    STAY
    + "echo -n $RONDE_BROKER > broker; trap '' TERM; sh -c 'sleep 300; true' & setsid sh -c 'sleep 301; true' &"
    + " (setsid sleep 302 &) ; env -i sleep 303 & touch up.$RANK; wait; sleep 300"
)


def start_family(launches, np: int = 2) -> tuple[subprocess.Popen, set[int]]:
    child = launches.start_shell(np, FAMILY)
    launches.wait_for_files(*[f"up.{r}" for r in range(np)])
    everything = family_of(launches, child.pid)
    until(lambda: len(family_of(launches, child.pid)) >= 1 + np * 7, what="the whole family")
    everything = family_of(launches, child.pid)
    return child, everything


def family_of(launches, pid: int) -> set[int]:
    """All descendants, found by their parents."""
    parents = {int(e): launches.parent(int(e)) for e in os.listdir("/proc") if e.isdigit() and is_running(int(e))}
    found: set[int] = set()
    grown = {pid}
    while grown:
        found |= grown
        grown = {child for child, parent in parents.items() if parent in found} - found
    return found - {pid}


def all_gone(pids: set[int], seconds: float) -> None:
    until(lambda: not any(map(is_running, pids)), seconds, f"the end of {pids}")


def listening(pid: int) -> set[str]:
    """Ports on which the process listens."""
    sockets = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            sockets.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def test_after_sigkill_of_the_launcher_nothing_is_left(launches):
    child, family = start_family(launches)
    ports = listening(child.pid)
    assert ports, "the store listens"
    broker = (launches.folder / "broker").read_text()
    assert has_socket(broker)
    child.kill()
    child.wait()
    all_gone(family, 5.0)
    launches.nothing_left(1.0)
    assert not has_socket(broker)
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", int(port.split(":")[1], 16))) != 0
    launches.finish(child)


def test_after_sigkill_of_the_launcher_ranks_get_sigterm_first(launches):
    child = launches.start_shell(
        2, "trap 'touch termed.$RANK; exit 0' TERM; touch up.$RANK; while :; do sleep 0.1; done"
    )
    launches.wait_for_files("up.0", "up.1")
    child.kill()
    launches.wait_for_files("termed.0", "termed.1")
    launches.nothing_left()
    launches.finish(child)


def test_after_sigkill_of_the_agent_the_launcher_cleans_up_and_says_so(launches):
    child, family = start_family(launches)
    agent = launches.agent_of(child)
    os.kill(agent, signal.SIGKILL)
    ended = launches.finish(child)
    assert ended.status == 137
    assert (
        ended.err_lines[-1]
        == f"ronde: the agent (pid {agent}) was killed by signal 9 (SIGKILL); its ranks were ended with it"
    )
    all_gone(family, 1.0)


def test_whatever_a_good_rank_leaves_running_is_ended(launches):
    stubborn = "setsid sh -c 'trap \"\" TERM; touch up.$RANK; while :; do sleep 0.1; done'"
    begin = time.monotonic()
    ended = launches.shell(2, f"({stubborn} &) ; while [ ! -e up.$RANK ]; do sleep 0.02; done")
    assert ended.status == 0
    assert time.monotonic() - begin < 15
    launches.nothing_left(0.5)


def test_a_stopped_rank_is_ended_too(launches):
    child = launches.start_shell(2, STAY + "[ $RANK = 0 ] && kill -STOP $$; sleep 60", "--grace", "0.1")
    stopped = pid_of(launches, 0)
    until(lambda: state_of(stopped) == b"T", what="the stop")
    os.kill(pid_of(launches, 1), signal.SIGKILL)
    ended = launches.finish(child)
    assert ended.status == 137
    assert "rank 1 " in ended.err_lines[-1]


def test_a_job_within_a_job_ends_with_it(launches):
    inner = f"{launches.program} run -np 2 sh -c 'touch inner.$RANK; sleep 300'"
    child = launches.start_shell(1, inner)
    launches.wait_for_files("inner.0", "inner.1")
    child.kill()
    child.wait()
    launches.nothing_left()
    launches.finish(child)


def test_children_that_the_launcher_had_before_are_not_touched(launches):
    """`sh -c 'sleep & exec ronde'`: the sleep is a child of the launcher, but not of the job."""
    script = f"sleep 300 & echo $! > bystander; exec {launches.program} run -np 2 sh -c 'echo x'"
    subprocess.run(
        ["sh", "-c", script],
        cwd=launches.folder,
        check=True,
        env=launches.environment(),
        timeout=40,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    bystander = int((launches.folder / "bystander").read_text())
    assert is_running(bystander)
    os.kill(bystander, signal.SIGKILL)


def test_64_ranks_start_and_end(launches):
    ended = launches.shell(64, "echo $RANK")
    assert ended.status == 0
    assert sorted(int(line.split()[1]) for line in ended.out.decode().splitlines()) == list(range(64))


def cpu_seconds(pid: int) -> float:
    fields = read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_launcher_and_agent_do_not_run_when_nothing_happens(launches):
    child = launches.start_shell(4, STAY + "exec sleep 60")
    for rank in range(4):
        pid_of(launches, rank)
    agent = launches.agent_of(child)
    time.sleep(0.5)
    before = cpu_seconds(child.pid) + cpu_seconds(agent)
    time.sleep(3)
    assert cpu_seconds(child.pid) + cpu_seconds(agent) - before <= 0.05
    child.send_signal(signal.SIGTERM)
    assert launches.finish(child).status == 143


def test_many_short_jobs_leave_nothing(launches):
    for _ in range(10):
        assert launches.run("run", "-np", "2", "true").status == 0
    launches.nothing_left(0.1)
