# SPDX-License-Identifier: Apache-2.0
"""The pretended hosts themselves: they see each other, can be parted, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def reaches(one, other):
    """A port that nobody listens on refuses, if the host can be reached."""
    tried = one.run("timeout", "1", "bash", "-c", f"exec 3<>/dev/tcp/{other.address}/9")
    return "refused" in tried.stderr


def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_each_host_has_a_name_and_a_network_of_its_own(make_network):
    hosts = make_network(3).hosts
    assert [host.run("hostname").stdout.strip() for host in hosts] == ["h1", "h2", "h3"]
    assert all(reaches(one, other) for one in hosts for other in hosts)
    links = hosts[0].run("ls", "/sys/class/net").stdout.split()
    assert sorted(links) == ["eth0", "lo"]


def test_names_resolve_to_both_families(make_network):
    one, other = make_network(2).hosts
    found = one.run("getent", "ahosts", "h2").stdout
    assert other.address in found
    assert other.address6 in found


@pytest.mark.parametrize("family", ["address", "address6"])
def test_hosts_talk_tcp(make_network, family):
    one, other = make_network(2).hosts
    kind = "AF_INET6" if family == "address6" else "AF_INET"
    server = one.popen(
        sys.executable,
        "-c",
        f"import socket; s = socket.create_server(('', 7000), family=socket.{kind}); print('up', flush=True);"
        " c, _ = s.accept(); c.sendall(c.recv(100).upper())",
        stdout=subprocess.PIPE,
    )
    with server:
        assert server.stdout.readline() == "up\n"
        client = other.run(
            sys.executable,
            "-c",
            f"import socket; c = socket.create_connection(('{getattr(one, family)}', 7000), 5); c.sendall(b'hello');"
            " print(c.recv(100).decode())",
        )
        assert client.stdout == "HELLO\n", client.stderr
        assert server.wait(10) == 0


def test_shared_memory_is_not_shared_between_hosts(make_network):
    one, other = make_network(2).hosts
    one.run("touch", "/dev/shm/mine")
    assert one.run("ls", "/dev/shm").stdout == "mine\n"
    assert other.run("ls", "/dev/shm").stdout == ""


def test_two_hosts_are_cut_and_healed_and_the_third_notices_nothing(make_network):
    network = make_network(3)
    one, two, three = network.hosts
    network.cut(one, two)
    assert not reaches(one, two)
    assert reaches(one, three)
    assert reaches(two, three)
    network.heal(one, two)
    assert until(lambda: reaches(one, two))


def test_a_host_is_isolated_and_comes_back(make_network):
    network = make_network(3)
    one, two, three = network.hosts
    network.isolate(two)
    assert not reaches(one, two)
    assert not reaches(two, three)
    assert reaches(one, three)
    network.rejoin(two)
    assert until(lambda: reaches(one, two))


def test_closing_ends_every_process_of_every_host(make_network):
    network = make_network(2)
    inside = network.hosts[1].popen("sleep", "1000")
    network.close()
    assert until(lambda: all(is_gone(host.pid) for host in network.hosts))
    assert inside.wait(10) != 0
    assert is_gone(network.switch_pid)


OWNER = """
import sys; sys.path.insert(0, {here!r})
from pathlib import Path
from pretend import Network
network = Network(2, Path({folder!r}))
daemon = network.hosts[0].run("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!")
print(network.switch_pid, *(host.pid for host in network.hosts), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("victim", ["owner", "switch"])
def test_nothing_is_left_when_somebody_is_killed(tmp_path, victim):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(here=str(HERE), folder=str(tmp_path))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        switch, *hosts = map(int, owner.stdout.readline().split())
        namespaces = {os.readlink(f"/proc/{pid}/ns/pid") for pid in hosts}
        os.kill(owner.pid if victim == "owner" else switch, signal.SIGKILL)
        assert until(lambda: all(is_gone(pid) for pid in [switch, *hosts]))
        assert until(lambda: not namespaces & set(pid_namespaces()))
        owner.kill()


def pid_namespaces():
    """Of every process of this machine that is not a zombie."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append(os.readlink(folder / "ns/pid"))
        except OSError:
            continue
    return found
