# SPDX-License-Identifier: Apache-2.0
"""Standard output and error of the ranks on their way to the console and to files."""

from __future__ import annotations

import hashlib
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from jobs import NOTHING_TO_SAY, PATIENCE, read, stands_still, until


def test_lines_have_the_rank_in_front_on_their_own_stream(launches):
    ended = launches.shell(2, "echo out; echo err >&2", env=NOTHING_TO_SAY)
    assert sorted(ended.out.decode().splitlines()) == ["[0] out", "[1] out"]
    assert sorted(ended.err_lines) == ["[0] err", "[1] err"]


def test_progress_bars_keep_their_carriage_returns(launches):
    ended = launches.shell(2, "[ $RANK = 1 ] || printf '10%%\\r20%%\\rdone\\r\\n'")
    assert ended.out == b"[0] 10%\r[0] 20%\r[0] done\r\n"


def test_an_unfinished_line_appears_and_is_broken_and_marked(launches):
    script = (
        "if [ $RANK = 0 ]; then printf start; while [ ! -e go ]; do sleep 0.02; done; echo end;"
        " else while [ ! -e say ]; do sleep 0.02; done; echo other; touch said; fi"
    )
    child = launches.start_shell(2, script)
    shown = b""
    while shown != b"[0] start":
        assert select.select([child.stdout], [], [], PATIENCE)[0]
        shown += os.read(child.stdout.fileno(), 100)
    (launches.folder / "say").touch()
    while not shown.endswith(b"other\n"):
        shown += os.read(child.stdout.fileno(), 100)
    (launches.folder / "go").touch()
    ended = launches.finish(child)
    assert shown + ended.out == b"[0] start\n[1] other\n[0]+ end\n"


def test_files_are_byte_exact_with_random_bytes(launches):
    script = (
        "import os,random,sys\n"
        "rank=int(os.environ['RANK'])\n"
        "for stream in (1,2): os.write(stream, random.Random(rank*10+stream).randbytes(60000))\n"
    )
    ended = launches.python(4, script, options=("--output-dir", "logs"), env=NOTHING_TO_SAY)
    assert (ended.status, ended.out, ended.err) == (0, b"", b"")
    import random

    for rank in range(4):
        for stream, name in ((1, "stdout"), (2, "stderr")):
            expected = random.Random(rank * 10 + stream).randbytes(60000)
            assert (launches.folder / f"logs/rank.{rank}.{name}").read_bytes() == expected


def test_output_files_are_made_anew_also_for_one_rank(launches):
    folder = launches.folder / "deep" / "logs"
    folder.mkdir(parents=True)
    (folder / "rank.0.stdout").write_text("old and longer than the new one")
    ended = launches.shell(1, "echo new", "--output-dir", str(folder))
    assert ended.out == b""
    assert (folder / "rank.0.stdout").read_bytes() == b"new\n"


def test_without_prefix_each_stream_is_byte_exact(launches):
    # Each rank has bytes of its own, so that the streams can be told apart afterwards.
    script = (
        "import os,random\n"
        "rank=int(os.environ['RANK']); r=random.Random(rank)\n"
        "for _ in range(50): os.write(1, bytes(rank*64+b%64 for b in r.randbytes(r.randrange(1,3000))))\n"
    )
    ended = launches.python(4, script, options=("--no-prefix",))
    import random

    for rank in range(4):
        r = random.Random(rank)
        expected = b"".join(bytes(rank * 64 + b % 64 for b in r.randbytes(r.randrange(1, 3000))) for _ in range(50))
        assert bytes(b for b in ended.out if b // 64 == rank) == expected


def test_with_prefixes_no_byte_of_a_line_is_lost(launches):
    script = (
        "import os,random\n"
        "rank=int(os.environ['RANK']); r=random.Random(rank)\n"
        "for i in range(300):\n"
        "  line=bytes(b for b in r.randbytes(200) if b not in b'\\r\\n')+b'\\n'\n"
        "  for part in (line[:50],line[50:]): os.write(1,part)\n"
    )
    ended = launches.python(4, script)
    import random

    for rank in range(4):
        r = random.Random(rank)
        expected = [bytes(b for b in r.randbytes(200) if b not in b"\r\n") for _ in range(300)]
        # A line that was shown unfinished after 100 ms may have been broken and marked: put it together again.
        prefix = b"[%d] " % rank
        text = ended.out.replace(b"\n[%d]+ " % rank, b"")
        got = [line[len(prefix) :] for line in text.split(b"\n") if line.startswith(prefix)]
        joined = b"\n".join(got)
        assert joined == b"\n".join(expected) or b"+ " in ended.out


def test_a_hundred_megabytes_go_through_without_loss(launches):
    script = (
        "import os,sys\n"
        "rank=os.environ['RANK'].encode()\n"
        "block=(rank*99+b'\\n')*10000\n"
        "for _ in range(50): sys.stdout.buffer.write(block)\n"
    )
    with open(launches.folder / "all", "wb") as out:
        ended = launches.python(2, script, options=("--no-prefix",), stdout=out)
    assert ended.status == 0
    data = (launches.folder / "all").read_bytes()
    assert len(data) == 100_000_000
    assert data.count(b"0") == data.count(b"1") == 49_500_000


def test_a_hundred_megabytes_with_prefixes(launches):
    script = "import sys\nfor _ in range(100): sys.stdout.buffer.write((b'x'*99+b'\\n')*5000)"
    with open(launches.folder / "all", "wb") as out:
        assert launches.python(2, script, stdout=out).status == 0
    data = (launches.folder / "all").read_bytes()
    assert len(data) == 2 * 100 * 5000 * 104
    assert data.count(b"\n[0] x") + data.count(b"\n[1] x") == 2 * 100 * 5000 - 1


def test_output_that_is_written_right_before_the_end_arrives(launches):
    for _ in range(5):
        ended = launches.shell(4, "echo last; exit 0")
        assert len(ended.out.splitlines()) == 4


def test_a_reader_that_does_not_read_holds_up_the_writers_only(launches):
    """A failure is acted on while the console is full, and the output is complete once it is read."""
    script = (
        "if [ $RANK = 0 ]; then head -c 5000000 /dev/zero | tr '\\0' x; echo; touch written; sleep 100; fi;"
        " sleep 0.5; touch failed; exit 3"
    )
    child = launches.start_shell(2, script, "--grace", "0.2", "--no-prefix")
    launches.wait_for_files("failed")
    until(
        lambda: len(launches.pids()) <= 2, 15, "the end of the ranks"
    )  # the launcher, and the agent that has output left
    assert not (launches.folder / "written").exists(), "the writer was not held up"
    ended = launches.finish(child)
    assert ended.status == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_job_whose_output_nobody_reads(launches, number):
    child = launches.start_shell(2, "touch up.$RANK; yes")
    launches.wait_for_files("up.0", "up.1")
    stands_still(lambda: read(f"/proc/{launches.agent_of(child)}/io"))
    child.send_signal(number)
    assert child.wait(15) == 128 + number
    launches.nothing_left()
    assert child.stderr.read().decode().splitlines()[-1] == (
        f"ronde: interrupted by signal {number:d} ({number.name}); output that nobody has read is lost"
    )


def test_a_second_signal_ends_ranks_that_hang_in_writing(launches):
    child = launches.start_shell(2, "trap '' INT; touch up.$RANK; yes", "--no-prefix")
    launches.wait_for_files("up.0", "up.1")
    stands_still(lambda: read(f"/proc/{launches.agent_of(child)}/io"))
    child.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert child.wait(15) == 130


def test_a_slow_reader_gets_everything_after_a_signal_when_it_reads_on(launches):
    script = "trap 'head -c 300000 /dev/zero | tr \\\\0 x; exit 0' INT; touch up.$RANK; while :; do sleep 0.1; done"
    child = launches.start_shell(2, script, "--no-prefix")
    launches.wait_for_files("up.0", "up.1")
    child.send_signal(signal.SIGINT)
    time.sleep(0.3)  # the pipe is full now
    assert launches.finish(child).out.count(b"x") == 600_000


def test_a_closed_output_ends_the_job_quietly(launches):
    child = launches.start_shell(2, "while :; do echo line; done")
    child.stdout.readline()
    child.stdout.close()
    child.stdout = None
    ended = launches.finish(child)
    assert ended.status == 141
    assert b"lost" not in ended.err


LOST = "; the job goes on, but its status will not be 0"


@pytest.mark.parametrize(("exits", "status"), [(0, 1), (7, 7)])
def test_a_full_disk_loses_the_output_and_not_the_job(launches, exits, status):
    script = f"for i in 1 2 3; do echo $i; sleep 0.2; done; touch done.$RANK; exit {exits}"
    with open("/dev/full", "wb") as full:
        ended = launches.shell(2, script, stdout=full)
    assert ended.status == status
    assert (launches.folder / "done.0").exists()
    assert (launches.folder / "done.1").exists()
    said = [line for line in ended.err_lines if "lost" in line]
    assert said == [f"ronde: output is lost: stdout: write: No space left on device{LOST}"]


def test_a_full_disk_below_the_output_folder_is_told_by_file(launches):
    (launches.folder / "logs").mkdir()
    (launches.folder / "logs/rank.1.stdout").symlink_to("/dev/full")
    ended = launches.shell(2, "echo 1; sleep 0.2; echo 2", "--output-dir", "logs")
    assert ended.status == 1
    said = [line for line in ended.err_lines if "lost" in line]
    assert said == [f"ronde: output is lost: logs/rank.1.stdout: write: No space left on device{LOST}"]
    assert (launches.folder / "logs/rank.0.stdout").read_bytes() == b"1\n2\n"


def test_errors_that_cannot_be_written_do_not_pass_for_success(launches):
    with open("/dev/full", "wb") as full:
        ended = launches.shell(2, "echo out; echo err >&2", stderr=full)
    assert ended.status == 1
    assert sorted(ended.out.splitlines()) == [b"[0] out", b"[1] out"]


def test_one_rank_keeps_its_streams(launches):
    ended = launches.shell(1, "printf 'no end'; printf err >&2", env=NOTHING_TO_SAY)
    assert (ended.out, ended.err) == (b"no end", b"err")


def run_on_terminal(launches, *words: str, keys: tuple[tuple[bytes, bytes], ...] = ()) -> tuple[int, bytes]:
    """On a terminal of its own, as the program in front of it. `keys`: what is to appear, and what is typed then."""
    main, side = pty.openpty()
    program = [sys.executable, os.path.join(os.path.dirname(__file__), "on_terminal.py"), launches.program, *words]
    child = subprocess.Popen(
        program,
        stdin=side,
        stdout=side,
        stderr=side,
        env=launches.environment(**NOTHING_TO_SAY),
        start_new_session=True,
    )
    os.close(side)
    shown = b""
    seen = 0
    typed = list(keys)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if select.select([main], [], [], 0.1)[0]:
            try:
                shown += os.read(main, 65536)
            except OSError:
                break
        if typed and typed[0][0] in shown[seen:]:
            seen = shown.index(typed[0][0], seen) + len(typed[0][0])
            time.sleep(0.5)  # as a human would; keys that follow at once are one that is held down
            os.write(main, typed.pop(0)[1])
    os.close(main)
    return child.wait(PATIENCE), shown


def test_one_rank_keeps_the_terminal(launches):
    script = "import sys,os; print(all(os.isatty(i) for i in range(3)), open('/dev/tty').isatty(), input('name? '))"
    status, shown = run_on_terminal(
        launches, "run", "-np", "1", sys.executable, "-c", script, keys=((b"name? ", b"me\n"),)
    )
    assert status == 0, shown
    assert b"True True me" in shown


def test_ctrl_c_on_a_terminal_reaches_one_rank_once(launches):
    script = (
        "import time\n"
        "try:\n  print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n  print('caught', flush=True); time.sleep(0.5); print('saved')\n"
    )
    status, shown = run_on_terminal(
        launches, "run", "-np", "1", sys.executable, "-c", script, keys=((b"ready", b"\x03"),)
    )
    assert b"saved" in shown
    assert status == 0


def test_a_second_ctrl_c_on_a_terminal_kills_one_rank_that_does_not_end(launches):
    script = (
        "import signal,time\n"
        "times=0\n"
        "def caught(*_):\n  global times; times+=1; print('caught', times, flush=True)\n"
        "signal.signal(signal.SIGINT, caught)\n"
        "print('ready', flush=True); end=time.monotonic()+60\n"
        "while time.monotonic()<end: time.sleep(0.1)\n"
    )
    begin = time.monotonic()
    status, shown = run_on_terminal(
        launches,
        *("run", "-np", "1", sys.executable, "-c", script),
        keys=((b"ready", b"\x03"), (b"caught 1", b"\x03")),
    )
    assert b"caught 2" in shown, "the rank has every key itself"
    assert status == 130, shown
    assert shown.endswith(b"ronde: interrupted by signal 2 (SIGINT); the ranks were killed\r\n")
    assert time.monotonic() - begin < 20


def test_an_interactive_session_outlives_any_number_of_ctrl_c(launches):
    status, shown = run_on_terminal(
        launches,
        *("run", "-np", "1", sys.executable, "-i", "-c", "import readline, time"),
        keys=(
            (b">>> ", b"\x03"),
            (b">>> ", b"\x03"),
            (b">>> ", b"print('be' + 'gun'); time.sleep(60)\n"),
            (b"begun", b"\x03"),
            (b">>> ", b"time.sleep(1); print('go' + 'es on'); raise SystemExit(5)\n"),
        ),
    )
    assert b"goes on" in shown
    assert shown.count(b"KeyboardInterrupt") == 3
    assert status == 5, shown


def test_ctrl_c_on_a_terminal_reaches_several_ranks(launches):
    status, shown = run_on_terminal(
        launches, "run", "-np", "2", "sh", "-c", "echo ready; sleep 60", keys=((b"ready", b"\x03"),)
    )
    assert status == 130
    assert b"interrupted by signal 2" in shown


def test_sha_of_a_binary_through_one_rank(launches):
    data = os.urandom(1_000_000)
    ended = launches.run("run", "-np", "1", "cat", stdin=data)
    assert hashlib.sha256(ended.out).digest() == hashlib.sha256(data).digest()
