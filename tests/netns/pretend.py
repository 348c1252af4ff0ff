# SPDX-License-Identifier: Apache-2.0
"""A network of pretended hosts, as tests use it (switch.py makes it)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SWITCH = Path(__file__).with_name("switch.py")
READY_SECONDS = 30


@dataclass(frozen=True)
class Host:
    number: int
    pid: int  # of its first process, as seen from outside

    @property
    def name(self) -> str:
        return f"h{self.number}"

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def address6(self) -> str:
        return f"fd77::{self.number}"

    def command(self, *command: str) -> list[str]:
        """What to execute so that `command` runs on this host, in the present folder. It dies with its starter."""
        enter = ["nsenter", "-t", str(self.pid), "--net", "--uts", "--ipc", "--mount", "--pid", f"--wd={os.getcwd()}"]
        return [*enter, "--", "setpriv", "--pdeathsig", "KILL", *command]

    def popen(self, *command: str, **options) -> subprocess.Popen:
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.command(*command), text=True, **options)

    def run(self, *command: str, timeout: float = 20, **options) -> subprocess.CompletedProcess:
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.command(*command), text=True, capture_output=True, timeout=timeout, **options)


class Network:
    def __init__(self, count: int, folder: Path):
        self._process = subprocess.Popen(
            [
                "unshare",
                "--net",
                "--mount",
                "--propagation",
                "private",
                sys.executable,
                SWITCH,
                str(count),
                str(folder),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            ready, _, _ = select.select([self._process.stdout], [], [], READY_SECONDS)
            line = self._process.stdout.readline() if ready else ""
            if not line:
                raise RuntimeError(f"the pretended hosts did not come up in {READY_SECONDS} s; its own words are above")
            pids = json.loads(line)
        except BaseException:
            self.close()
            raise
        self.switch_pid = pids["switch"]
        self.hosts = [Host(number, pid) for number, pid in enumerate(pids["hosts"], 1)]

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process.stdout.close()

    def _on_switch(self, *command: str, text: str = "") -> None:
        subprocess.run(
            ["nsenter", "-t", str(self.switch_pid), "--net", *command], input=text, text=True, check=True, timeout=20
        )

    def cut(self, one: Host, other: Host) -> None:
        """Everything between the two is lost silently from now on: no reset, no error at the sender."""
        a, b = f"v{one.number}", f"v{other.number}"
        rules = [
            f"table bridge cut_{a}_{b} {{",
            "chain forward {",
            "type filter hook forward priority 0;",
            f'iifname "{a}" oifname "{b}" drop',
            f'iifname "{b}" oifname "{a}" drop',
            "}",
            "}",
        ]
        self._on_switch("nft", "-f", "-", text="\n".join(rules) + "\n")

    def heal(self, one: Host, other: Host) -> None:
        self._on_switch("nft", "delete", "table", "bridge", f"cut_v{one.number}_v{other.number}")

    def isolate(self, host: Host) -> None:
        """The host is away from all others, as if its cable were pulled."""
        self._on_switch("ip", "link", "set", f"v{host.number}", "nomaster")

    def rejoin(self, host: Host) -> None:
        self._on_switch("ip", "link", "set", f"v{host.number}", "master", "bridge", "up")
