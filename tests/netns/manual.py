# SPDX-License-Identifier: Apache-2.0
"""A job started by hand, rank by rank, on pretended hosts (docs/manual-start.md)."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pretend import Host

STORE_PORT = 29400


def write_key(path: Path) -> Path:
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32) + "\n")
    return path


@dataclass
class Started:
    rank: int
    process: subprocess.Popen
    out: Path

    def output(self) -> str:
        return self.out.read_text()


class ManualJob:
    """Rank 0 listens on the first host, if it is started at all."""

    def __init__(self, folder: Path, first: Host, command: list[str]):
        self.ranks: list[Started] = []
        self.folder = folder
        self.command = command
        self.fixed = {
            "RONDE_STORE": f"{first.address}:{STORE_PORT}",
            "RONDE_KEY_FILE": str(write_key(folder / "key")),
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def start(self, host: Host, rank: int, size: int, local: tuple[int, int] = (0, 1), **env: str) -> None:
        """`local`: its number among the ranks of its host, and how many these are."""
        place = {"RANK": rank, "SIZE": size, "LOCAL_RANK": local[0], "LOCAL_SIZE": local[1]}
        own = {f"RONDE_{name}": str(value) for name, value in place.items()}
        out = self.folder / f"out.{rank}"
        with open(out, "w") as file:
            process = host.popen(
                sys.executable,
                *self.command,
                env={**os.environ, **self.fixed, **own, **env},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.ranks.append(Started(rank, process, out))

    def start_on(self, hosts: list[Host], per_host: int) -> None:
        for index, host in enumerate(hosts):
            for local in range(per_host):
                self.start(host, index * per_host + local, len(hosts) * per_host, (local, per_host))

    def wait(self, seconds: float) -> list[int]:
        return [started.process.wait(seconds) for started in self.ranks]

    def outputs(self) -> str:
        return "\n".join(f"--- rank {started.rank}\n{started.output()}" for started in self.ranks)

    def close(self) -> None:
        for started in self.ranks:
            started.process.kill()
            started.process.wait(10)
