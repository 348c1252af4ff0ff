# SPDX-License-Identifier: Apache-2.0
"""Pretended hosts h1 … hN on one bridge: python switch.py N FOLDER, in a fresh network and mount namespace.

Each host has its own network, host name, process numbers, mounts, /dev/shm and /etc/hosts. Says {"switch": pid,
"hosts": [pid, …]} in one line when all is up, and lives until its standard input ends. Everything dies with it, however
it dies: the hosts get SIGKILL from the kernel (pdeathsig), and with the first process of a pid namespace the kernel
ends the others.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SUBNET = "10.77.0"
SUBNET6 = "fd77:"
NAMESPACES = ["--net", "--uts", "--ipc", "--mount", "--pid"]

HOST = r"""
set -e
name=$1 folder=$2
hostname "$name"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o size=1g,mode=1777 shm /dev/shm
mount --bind "$folder/hosts" /etc/hosts
ip link set lo up
echo up
exec sleep infinity
"""


def ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def start_host(number: int, folder: str) -> tuple[subprocess.Popen, int]:
    """The host's first process, and its pid as seen from here."""
    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, "--fork", "--kill-child", "--propagation", "private"]
        + ["sh", "-c", HOST, "host", f"h{number}", folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    if child.stdout.readline() != "up\n":
        sys.exit(f"switch: host h{number} did not come up (status {child.wait(10)})")
    return child, int(Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0])


def connect(number: int, pid: int) -> None:
    ip(
        f"link add v{number} type veth peer name eth0 netns {pid}",
        f"link set v{number} master bridge up",
    )
    inside = [
        f"addr add {SUBNET}.{number}/24 dev eth0",
        f"addr add {SUBNET6}:{number}/64 dev eth0 nodad",
        "link set eth0 up",
    ]
    subprocess.run(
        ["nsenter", "-t", str(pid), "--net", "ip", "-batch", "-"], input="\n".join(inside), text=True, check=True
    )


def wait_for_links(count: int) -> None:
    """A port of a bridge forwards a moment after its link came up."""
    deadline = time.monotonic() + 10
    for number in range(1, count + 1):
        state = Path(f"/sys/class/net/v{number}/brport/state")
        while state.read_text().strip() != "3":
            if time.monotonic() > deadline:
                sys.exit(f"switch: the port of h{number} does not forward after 10 s")
            time.sleep(0.005)


def main() -> None:
    count, folder = int(sys.argv[1]), sys.argv[2]
    names = [f"{SUBNET}.{number} h{number}\n{SUBNET6}:{number} h{number}\n" for number in range(1, count + 1)]
    Path(folder, "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n" + "".join(names))
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)  # that of this network
    ip("link set lo up", "link add bridge type bridge", "link set bridge up")
    hosts = [start_host(number, folder) for number in range(1, count + 1)]
    for number, (_, pid) in enumerate(hosts, 1):
        connect(number, pid)
    wait_for_links(count)
    print(json.dumps({"switch": os.getpid(), "hosts": [pid for _, pid in hosts]}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
