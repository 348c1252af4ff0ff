# SPDX-License-Identifier: Apache-2.0
"""Host names that do not resolve, in a job that was started by hand: every rank is told, and nobody waits."""

import time

import pytest

from launch import free_port, start_by_hand

RANKS = 3
SECONDS = 30
# A name server that does not answer is given up after seconds, and no other domain is tried.
RESOLVER = {"RES_OPTIONS": "timeout:1 attempts:1", "LOCALDOMAIN": "invalid"}


@pytest.fixture
def errors_of_ranks(tmp_path):
    """Starts the ranks and gives the last line that each wrote. All must fail by an exception, in time."""
    started = []

    def run(store, env_of_rank):
        deadline = time.monotonic() + SECONDS
        for rank in range(RANKS):
            env = {**RESOLVER, **env_of_rank(rank)}
            source = "from ronde.core import engine\nengine.init()"
            started.append(start_by_hand(rank, RANKS, source, store, tmp_path / "key", **env))
        told = [process.communicate(timeout=max(0.0, deadline - time.monotonic()))[1] for process in started]
        assert [process.returncode for process in started] == [1] * RANKS, told
        return [text.splitlines()[-1] for text in told]

    yield run
    for process in started:
        process.kill()
        process.communicate(timeout=10)


def test_a_store_that_does_not_resolve_is_named_on_every_rank(errors_of_ranks):
    for error in errors_of_ranks("nowhere.invalid:2000", lambda rank: {}):
        assert error.startswith("ValueError: RONDE_STORE=nowhere.invalid:2000: "), error
        assert "host name 'nowhere.invalid' does not resolve" in error


def test_a_rank_whose_own_address_does_not_resolve_is_named_on_the_others(errors_of_ranks):
    own = {"RONDE_LISTEN": "nowhere.invalid", "RONDE_TRANSPORT": "tcp"}
    store = f"127.0.0.1:{free_port()}"
    errors = errors_of_ranks(store, lambda rank: own if rank == 1 else {"RONDE_TRANSPORT": "tcp"})
    assert errors[1].startswith("ValueError: RONDE_LISTEN=nowhere.invalid: "), errors
    assert "host name 'nowhere.invalid' does not resolve" in errors[1]
    assert all("PeerLostError" in errors[rank] and "rank 1 " in errors[rank] for rank in (0, 2)), errors
