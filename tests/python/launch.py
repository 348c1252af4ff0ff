# SPDX-License-Identifier: Apache-2.0
"""Starts ranks for a test and collects what they found.

Importing a framework costs seconds per rank, so many checks share one start: a *suite* is a class whose methods
`check_*` run one after another on every rank, in the same order. Each rank writes a line per check; pytest then has
one test per check, which looks at the lines of all ranks.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PROGRAM = [sys.executable, "-m", "ronde"]


class Ended(NamedTuple):
    status: int
    stdout: str
    stderr: str


def run_ranks(ranks: int, command: list[str], timeout: float = 100, **env: str) -> Ended:
    """`ronde run -np RANKS -- COMMAND`, to its end."""
    ended = subprocess.run(
        [*PROGRAM, "run", "-np", str(ranks), "--", *command],
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def run_script(ranks: int, source: str, *arguments: str, timeout: float = 100, **env: str) -> Ended:
    """Python source on each rank."""
    return run_ranks(ranks, [sys.executable, "-c", source, *arguments], timeout, **env)


def start_by_hand(rank: int, ranks: int, source: str, store: str, key: Path, **env: str) -> subprocess.Popen:
    """One rank of a job without a launcher (docs/manual-start.md); the key is made if it is not there."""
    if not key.exists():
        key.touch(0o600)
        key.write_text(secrets.token_hex(32))
    place = {"RANK": rank, "SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_SIZE": ranks, "STORE": store, "KEY_FILE": key}
    return subprocess.Popen(
        [sys.executable, "-c", source],
        env={**os.environ, **{f"RONDE_{name}": str(value) for name, value in place.items()}, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    """A TCP port of the loopback that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@functools.cache
def suite_lines(
    module: str, name: str, ranks: int, seconds: float, env: tuple[tuple[str, str], ...]
) -> tuple[list[dict], Ended]:
    """What each rank found, {check: text of the failure or ""}; the suite is run once for all who ask."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / "run_suite.py"), module, name, folder]
        try:
            ended = run_ranks(ranks, command, timeout=seconds, **dict(env))
        except subprocess.TimeoutExpired as expired:  # the checks that ran have left their lines
            ended = Ended(-1, "", f"the ranks were not done after {expired.timeout} s")
        found = []
        for rank in range(ranks):
            file = Path(folder) / str(rank)
            lines = file.read_text().splitlines() if file.exists() else []
            found.append(dict(json.loads(line) for line in lines))
        return found, ended


def checks_of(module: str, name: str) -> list[str]:
    """The checks of a suite, in the order in which they run, without importing what the suite needs to run."""
    suite = getattr(importlib.import_module(module), name)
    return [check for check in dir(suite) if check.startswith("check_")]


def expect(module: str, name: str, check: str, ranks: int, seconds: float = 300, **env: str) -> None:
    """Fails the test if the check failed, or did not run, on any rank."""
    found, ended = suite_lines(module, name, ranks, seconds, tuple(sorted(env.items())))
    failures = {rank: lines.get(check, "did not run") for rank, lines in enumerate(found)}
    failures = {rank: text for rank, text in failures.items() if text}
    told = "\n".join(f"--- rank {rank}\n{text}" for rank, text in failures.items())
    assert not failures, f"{check} on {ranks} ranks {env or ''} (status {ended.status})\n{told}\n{ended.stderr[-2000:]}"
