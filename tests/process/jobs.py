# SPDX-License-Identifier: Apache-2.0
"""Starts `ronde run` for the tests, and finds whatever it may have left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Far above what anything here takes; a hanging launcher fails its test instead of the whole run.
PATIENCE = 40.0
# What the launcher sets if it is not set, and then says so.
NOTHING_TO_SAY = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


# The installed program, beside the Python that the ranks run.
RONDE = str(Path(sys.executable).with_name("ronde"))


def run(*command: str, seconds: float = 200.0, **env: str) -> subprocess.CompletedProcess[str]:
    """A command whose ranks use the engine, to its end."""
    return subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, timeout=seconds, check=False
    )


@dataclass
class Ended:
    status: int
    out: bytes
    err: bytes

    @property
    def err_lines(self) -> list[str]:
        return self.err.decode(errors="replace").splitlines()


def until(condition: Callable[[], object], seconds: float = PATIENCE, what: str = "it") -> object:
    """Asks until the answer is true; the answer."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        time.sleep(0.02)


def stands_still(look: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Waits until two looks, half a second apart, see the same."""

    def same() -> bool:
        before = look()
        time.sleep(0.5)
        return look() == before

    until(same, seconds, "a standstill")


def default_signals() -> None:
    """In the child: as a shell in front of a terminal would start it, however pytest itself was started."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def state_of(pid: int) -> bytes:
    """One letter as in /proc; nothing if there is no such process."""
    return read(f"/proc/{pid}/stat").rpartition(b") ")[2][:1]


def is_running(pid: int) -> bool:
    return state_of(pid) not in (b"", b"Z", b"X")


def has_socket(name: str) -> bool:
    """Whether anybody has the abstract socket."""
    return f"@{name}\n" in Path("/proc/net/unix").read_text()


class Launches:
    """Everything that it starts carries a mark in its environment, by which leftovers are found."""

    def __init__(self, program: str, folder: Path):
        self.program = program
        self.folder = folder
        self.mark = f"LAUNCH_TEST_MARK={uuid.uuid4().hex}"
        self.runtime = folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.started: list[subprocess.Popen] = []

    def environment(self, **more: str) -> dict[str, str]:
        name, value = self.mark.split("=")
        env = {k: v for k, v in os.environ.items() if not k.startswith("RONDE_") and k not in NOTHING_TO_SAY}
        return {**env, name: value, "XDG_RUNTIME_DIR": str(self.runtime), **more}

    def start(self, *words: str, env: dict[str, str] | None = None, **popen) -> subprocess.Popen:
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        child = subprocess.Popen(
            [self.program, *words],
            env=self.environment(**(env or {})),
            cwd=self.folder,
            preexec_fn=default_signals,
            **popen,
        )
        self.started.append(child)
        return child

    def finish(self, child: subprocess.Popen, stdin: bytes | None = None, seconds: float = PATIENCE) -> Ended:
        out, err = child.communicate(stdin, timeout=seconds)
        return Ended(child.returncode, out or b"", err or b"")

    def run(self, *words: str, stdin: bytes | None = None, seconds: float = PATIENCE, **options) -> Ended:
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.start(*words, **options), stdin, seconds)

    def python(self, np: int, script: str, *words: str, options: tuple[str, ...] = (), **more) -> Ended:
        """`ronde run` of a Python script on np ranks."""
        return self.run("run", "-np", str(np), *options, sys.executable, "-c", script, *words, **more)

    def shell(self, np: int, script: str, *options: str, **more) -> Ended:
        return self.run("run", "-np", str(np), *options, "sh", "-c", script, **more)

    def start_shell(self, np: int, script: str, *options: str, **more) -> subprocess.Popen:
        return self.start("run", "-np", str(np), *options, "sh", "-c", script, **more)

    def pids(self) -> list[int]:
        """Running processes of this test, launchers included."""
        mark = self.mark.encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and mark in read(f"/proc/{entry}/environ").split(b"\0") and is_running(int(entry)):
                found.append(int(entry))
        return found

    def agent_of(self, child: subprocess.Popen) -> int:
        def look() -> int:
            for pid in self.pids():
                if read(f"/proc/{pid}/cmdline") == b"ronde\0agent\0" and self.parent(pid) == child.pid:
                    return pid
            return 0

        return until(look, what="the start of the agent")

    @staticmethod
    def parent(pid: int) -> int:
        fields = read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
        return int(fields[1]) if fields else 0

    def wait_for_files(self, *names: str) -> None:
        until(lambda: all((self.folder / name).exists() for name in names), what=f"the files {names}")

    def nothing_left(self, seconds: float = 5.0) -> None:
        until(lambda: not self.pids(), seconds, f"the end of {[(p, read(f'/proc/{p}/cmdline')) for p in self.pids()]}")
        until(lambda: not list(self.runtime.iterdir()), seconds, "the end of the job's folder")

    def end(self) -> None:
        try:
            for child in self.started:
                assert child.poll() is not None, "a launcher is still running"
            self.nothing_left()
        finally:
            for pid in self.pids():
                os.kill(pid, signal.SIGKILL)
            for child in self.started:
                child.wait()
                for stream in (child.stdin, child.stdout, child.stderr):
                    if stream:
                        stream.close()
