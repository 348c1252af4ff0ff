# SPDX-License-Identifier: Apache-2.0
"""What the ranks are given, and what is refused before anything starts."""

from __future__ import annotations

import os
import stat
import sys

import pytest
from jobs import RONDE, run

SHOW = (
    "echo $RONDE_RANK $RONDE_SIZE $RONDE_LOCAL_RANK $RONDE_LOCAL_SIZE $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE"
)


def test_each_rank_knows_its_place(launches):
    ended = launches.shell(3, SHOW)
    assert ended.status == 0
    assert sorted(ended.out.decode().splitlines()) == [f"[{r}] {r} 3 {r} 3 {r} 3 {r} 3" for r in range(3)]


def test_rendezvous_of_torch_gets_an_address_and_a_free_port(launches):
    script = "import os,socket; socket.socket().bind((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))"
    assert launches.python(1, script).status == 0


def test_the_key_lies_in_a_private_place_and_goes_away(launches):
    script = (
        "import os,stat\n"
        "key=os.environ['RONDE_KEY_FILE']; folder=os.environ['RONDE_RUN_DIR']\n"
        "print(folder, oct(os.stat(folder).st_mode), oct(os.stat(key).st_mode), len(open(key).read().strip()))\n"
        "secret=open(key).read().strip()\n"
        "assert secret not in repr(dict(os.environ)) + open('/proc/self/cmdline').read()"
    )
    ended = launches.python(1, script)
    folder, folder_mode, key_mode, length = ended.out.decode().split()
    assert ended.status == 0
    assert os.path.dirname(folder) == str(launches.runtime)
    assert stat.S_IMODE(int(folder_mode, 8)) == 0o700
    assert stat.S_IMODE(int(key_mode, 8)) == 0o600
    assert int(length) == 64
    assert not os.path.exists(folder)


def test_environment_is_byte_exact(launches):
    odd = b"line\nbreak 'single' \"double\" $HOME `x` \\ \xc3\xa9\xff"
    script = "import os,sys; sys.stdout.buffer.write(os.environb[b'INHERITED']+b'|'+os.environb[b'GIVEN'])"
    child_env = {"INHERITED": os.fsdecode(odd)}
    ended = launches.python(1, script, options=("--env", "GIVEN=" + os.fsdecode(odd)), env=child_env)
    assert ended.out == odd + b"|" + odd
    ended = launches.python(2, script, options=("--no-prefix", "--env", "GIVEN=x"), env=child_env)
    assert ended.out == (odd + b"|x") * 2


def test_arguments_are_byte_exact_and_those_after_the_command_are_not_ours(launches):
    words = ["-np", "7", "--", "", "a b", "\n", os.fsdecode(b"\xff")]
    script = "import os,sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
    for dashes in ([], ["--"]):
        ended = launches.run("run", "-np", "1", *dashes, "python3", "-c", script, *words)
        assert ended.out == b"|".join(map(os.fsencode, words))


def test_what_is_set_for_the_ranks_is_said_in_one_line(launches):
    ended = launches.shell(4, "echo $OMP_NUM_THREADS $PYTHONUNBUFFERED")
    cores = len(os.sched_getaffinity(0))
    said = ended.err_lines
    assert len(said) == 1
    assert said[0].startswith("ronde: OMP_NUM_THREADS=")
    assert said[0].endswith(" 4 ranks) and PYTHONUNBUFFERED=1 for each rank; set them to override")
    threads = int(said[0].split("=")[1].split()[0])
    assert 1 <= threads <= max(1, cores // 4)
    assert sorted(ended.out.decode().splitlines()) == [f"[{r}] {threads} 1" for r in range(4)]


@pytest.mark.parametrize("given", ["environment", "option"])
def test_a_number_of_threads_that_was_set_stays(launches, given):
    options = ("--env", "OMP_NUM_THREADS=3", "--env", "PYTHONUNBUFFERED=x") if given == "option" else ()
    env = {"OMP_NUM_THREADS": "3", "PYTHONUNBUFFERED": "x"} if given == "environment" else {}
    ended = launches.shell(2, "echo $OMP_NUM_THREADS", *options, env=env)
    assert sorted(ended.out.decode().splitlines()) == ["[0] 3", "[1] 3"]
    assert ended.err == b""


def test_rank_0_has_the_input_and_the_others_have_none(launches):
    ended = launches.shell(3, 'echo "$(cat | tr -d "\\n")"', stdin=b"one\ntwo\n")
    assert sorted(ended.out.decode().splitlines()) == ["[0] onetwo", "[1] ", "[2] "]


def test_big_input_arrives_whole(launches):
    data = os.urandom(5_000_000)
    script = "import hashlib,os,sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    import hashlib

    ended = launches.python(2, script, stdin=data)
    assert f"[0] {hashlib.sha256(data).hexdigest()}" in ended.out.decode().splitlines()


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["-np", "0", "true"], 2, "-np 0: the number of ranks must be a whole number from 1"),
        (["-np", "two", "true"], 2, "-np two: "),
        (["-np", "", "true"], 2, "-np '': the number of ranks"),
        (["-np"], 2, "run: -np needs a value, as in -np N: how many ranks to start"),
        (["-np2", "true"], 2, "run: there is no option -np2; write -np 2"),
        (["-np", "2", "--no-prefix=x", "true"], 2, "run: --no-prefix=x: --no-prefix takes no value"),
        (["-np", "2", "--output-dir", "", "true"], 2, "--output-dir '': name a folder"),
        (["true"], 2, "-np is missing"),
        (["-np", "2"], 2, "the command is missing"),
        (["-np", "2", "--"], 2, "the command is missing"),
        (["-np", "2", "no-such-command"], 127, "there is no command 'no-such-command' on PATH"),
        (["-np", "2", "./no-such-file"], 127, "there is no file './no-such-file'"),
        (["-np", "2", "/etc/passwd"], 126, "/etc/passwd is not executable"),
        (["-np", "2", "/etc"], 126, "is a folder"),
        (["-np", "2", "--grace", "soon", "true"], 2, "--grace soon: "),
        (["-np", "2", "--env", "X", "true"], 2, "--env X: must be NAME=VALUE"),
        (["-np", "2", "--env", "RONDE_RANK=1", "true"], 2, "RONDE_RANK is given by ronde itself"),
        (["-np", "2", "--what", "true"], 2, "run: there is no option --what; `ronde run --help` lists the options"),
        (["-np", "2", "--output-dir", "/dev/null/x", "true"], 1, "--output-dir /dev/null/x: "),
        (["-np", "2", "--batch-bytes", "lots", "true"], 2, "lots"),
    ],
)
def test_mistakes_are_told_before_anything_starts(launches, words, status, part):
    ended = launches.run("run", *words)
    assert ended.status == status
    assert ended.out == b""
    assert len(ended.err_lines) == 1
    assert ended.err_lines[0].startswith("ronde: ")
    assert part in ended.err_lines[0]


def test_a_bad_setting_is_an_error_and_an_unknown_one_a_warning(launches):
    bad = launches.run("run", "-np", "2", "true", env={"RONDE_TRANSPORT": "pigeon"})
    assert bad.status == 2
    assert "pigeon" in bad.err.decode()
    both = launches.run("run", "-np", "2", "--slots", "", "true", env={"RONDE_TRANSPORT": "pigeon"})
    assert both.status == 2
    assert [line.split(": ")[:2] for line in both.err_lines] == [
        ["ronde", "RONDE_TRANSPORT=pigeon"],
        ["ronde", "--slots ''"],
    ]
    unknown = launches.run("run", "-np", "2", "true", env={"RONDE_TRANSPRT": "tcp"})
    assert unknown.status == 0
    assert sum("RONDE_TRANSPRT" in line for line in unknown.err_lines) == 1
    assert "did you mean RONDE_TRANSPORT?" in unknown.err.decode()
    assert "did you mean" not in launches.run("run", "-np", "2", "true", env={"RONDE_FOO": "1"}).err.decode()


def test_an_unknown_name_is_one_warning_also_where_the_ranks_read_it():
    script = "import ronde.torch as hvd; hvd.init(); hvd.shutdown()"
    ended = run(RONDE, "run", "-np", "2", sys.executable, "-c", script, RONDE_TRANSPRT="tcp")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("RONDE_TRANSPRT") == 1, ended.stderr


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_a_place_to_listen_that_is_none_is_an_error_before_anything_starts(launches, transport):
    for value, why in (
        ("nowhere.invalid", "host name 'nowhere.invalid' does not resolve"),
        ("192.0.2.1", "cannot listen on 192.0.2.1:0"),
        ("host:80", "host name 'host:80' does not resolve"),
    ):
        for options, env, shown in (
            (("--listen", value), {}, f"--listen {value}"),
            (("--env", f"RONDE_LISTEN={value}"), {}, f"RONDE_LISTEN={value}"),
            ((), {"RONDE_LISTEN": value}, f"RONDE_LISTEN={value}"),
        ):
            ended = launches.shell(2, "touch started", "--transport", transport, *options, env=env)
            assert ended.status == 2
            assert ended.err_lines[0].startswith(f"ronde: {shown}: {why}"), ended.err
            assert len(ended.err_lines) == 1
            assert not (launches.folder / "started").exists()
    ended = launches.shell(2, "echo $RONDE_LISTEN", "--no-prefix", "--listen", "localhost")
    assert (ended.status, ended.out) == (0, b"localhost\nlocalhost\n")


def test_settings_given_as_options_reach_the_ranks(launches):
    ended = launches.shell(1, "echo $RONDE_TRANSPORT", "--transport", "tcp")
    assert ended.out == b"tcp\n"


def test_a_script_without_an_interpreter_line_is_run_by_the_shell(launches):
    script = launches.folder / "script"
    script.write_text("echo ran as $RANK\n")
    script.chmod(0o755)
    ended = launches.run("run", "-np", "2", "./script")
    assert sorted(ended.out.decode().splitlines()) == ["[0] ran as 0", "[1] ran as 1"]


def test_a_missing_interpreter_is_named_with_the_rank(launches):
    script = launches.folder / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    ended = launches.run("run", "-np", "2", "./script")
    assert ended.status == 127
    assert "could not be started: No such file or directory" in ended.err_lines[-1]


def test_a_path_given_for_the_ranks_finds_their_program(launches):
    folder = launches.folder / "own"
    folder.mkdir()
    (folder / "own-program").write_text("#!/bin/sh\necho found\n")
    (folder / "own-program").chmod(0o755)
    ended = launches.run("run", "-np", "1", "--env", f"PATH={folder}:/usr/bin:/bin", "own-program")
    assert ended.out == b"found\n"


def test_open_descriptors_of_the_caller_reach_the_ranks_and_ours_do_not(launches):
    script = (
        "import os\n"
        "def is_open(fd):\n"
        "  try: os.fstat(fd); return True\n"
        "  except OSError: return False\n"
        "given=int(os.environ['GIVEN'])\n"
        "print([fd for fd in range(1000) if is_open(fd)], os.read(given, 9) if os.environ['RANK']=='0' else b'')\n"
    )
    reading, writing = os.pipe()
    os.write(writing, b"hello")
    ended = launches.python(2, script, pass_fds=(reading,), env={"GIVEN": str(reading)})
    os.close(writing)
    os.close(reading)
    assert sorted(ended.out.decode().splitlines()) == [
        f"[0] [0, 1, 2, {reading}] b'hello'",
        f"[1] [0, 1, 2, {reading}] b''",
    ]


def test_commands_and_help(launches):
    assert launches.run().status == 2
    assert launches.run("nonsense").status == 2
    assert b"nonsense" in launches.run("nonsense").err
    for words in (["--help"], ["run", "--help"], ["settings", "--help"]):
        ended = launches.run(*words)
        assert (ended.status, ended.err) == (0, b"")
        assert b"Usage: ronde" in ended.out
    assert launches.run("help", "run").out == launches.run("run", "--help").out
    assert launches.run("version").out.startswith(b"ronde 0.")
    for words in (["version", "x"], ["--version", "x"]):
        ended = launches.run(*words)
        assert (ended.status, ended.out) == (2, b"")
        assert ended.err.startswith(b"ronde: version: 'x' is not expected here")
    assert launches.run("agent").status == 2


def test_settings_tells_each_value_and_its_origin(launches):
    ended = launches.run("settings", env={"RONDE_TRANSPORT": "tcp"})
    assert ended.status == 0
    line = next(line for line in ended.out.decode().splitlines() if "transport" in line.lower())
    assert line.split() == ["transport", "tcp", "environment"]
    assert ["hold", "5", "ms", "default"] in [line.split() for line in ended.out.decode().splitlines()]
    assert launches.run("settings", env={"RONDE_TRANSPORT": "pigeon"}).status == 2
