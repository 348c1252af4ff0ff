# SPDX-License-Identifier: Apache-2.0
"""A job under `ronde run` that a test hurts, and the question what it left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

RONDE = str(Path(sys.executable).with_name("ronde"))
HERE = Path(__file__).parent
START_SECONDS = 240.0  # four times PyTorch from a cold disk beside other work


def until(condition, seconds: float, what: str):
    """The first true value of `condition()`, looked at often; an AssertionError that says `what` did not happen."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return value


class Job:
    """`worker` is a script beside this file; it gets the folder in which it leaves <what>.<rank> files."""

    def __init__(self, folder: Path, ranks: int, worker: str, env: dict[str, str]):
        self.folder = folder
        self.ranks = ranks
        self.mark = uuid.uuid4().hex
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._shared_before = set(os.listdir("/dev/shm"))
        with open(folder / "stderr", "w") as stderr:
            self.process = subprocess.Popen(
                [RONDE, "run", "-np", str(ranks), "--", sys.executable, str(HERE / worker), str(folder)],
                env={**os.environ, **env, "TMPDIR": str(self.temporary), "FAULT_TEST_MARK": self.mark},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def note(self, what: str, rank: int):
        """What the rank wrote under that name, or None so far."""
        path = self.folder / f"{what}.{rank}"
        return json.loads(path.read_text()) if path.exists() else None

    def wait_for_note(self, what: str, rank: int, seconds: float = START_SECONDS):
        def look():
            status = self.process.poll()
            found = self.note(what, rank)
            ended = f"the job ended with {status} before rank {rank} wrote {what}:\n{self.stderr()}"
            assert found is not None or status is None, ended
            return found

        return until(look, seconds, f"rank {rank} writes {what}")

    def pid(self, rank: int) -> int:
        return self.wait_for_note("pid", rank)

    def signal(self, rank: int, number: signal.Signals) -> float:
        """Sends it, and says when."""
        os.kill(self.pid(rank), number)
        return time.monotonic()

    def wait(self, seconds: float) -> int:
        return self.process.wait(seconds)

    def living(self) -> list[int]:
        """Pids of everything that the job started and that still is."""
        wanted = f"FAULT_TEST_MARK={self.mark}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def left_behind(self) -> list[str]:
        files = [str(path) for path in self.temporary.rglob("*")]
        shared = [f"/dev/shm/{name}" for name in sorted(set(os.listdir("/dev/shm")) - self._shared_before)]
        return [*(f"process {pid}" for pid in self.living()), *files, *shared]

    def close(self) -> None:
        for pid in self.living():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.kill()
        self.process.wait(10)
