# SPDX-License-Identifier: Apache-2.0
"""Process sets: some of the ranks of the job, which have operations of their own.

Sets may overlap. An operation of a set concerns its members alone: a set that waits for one of them holds up no other
set. Names are unique within a set. All ranks of the job add and remove sets together, members or not.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from ronde import _ext
from ronde.core import engine
from ronde.core.handles import remember, synchronize


def _as_ranks(ranks: Iterable[int]) -> list[int]:
    try:
        listed = list(ranks)
    except TypeError:
        raise ValueError(f"a ProcessSet is made of ranks, not of {ranks!r}") from None
    for rank in listed:
        if isinstance(rank, bool) or not hasattr(rank, "__index__"):
            raise ValueError(f"a ProcessSet is made of ranks, and {rank!r} is none")
    numbers = [rank.__index__() for rank in listed]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"a rank is in a ProcessSet once: {numbers}")
    return numbers


class ProcessSet:
    """Ranks of the job. ``process_set_id`` is None until the set was given to ``init`` or ``add_process_set``, and
    again when it was removed or the job was left; then no operation takes it.
    """

    mpi_comm = None  # for scripts that look: sets are made of ranks

    def __init__(self, ranks: Iterable[int]) -> None:
        """``ranks`` in any order, each once. ``ValueError`` for what is no rank."""
        self.process_set_id: int | None = None
        self.ranks: list[int] | None = sorted(_as_ranks(ranks))
        self._number: int | None = None  # the engine's, which is never used again before the next init()
        self.registration = 0  # counts the sets that were ever registered in this process; 0: the set of all ranks

    def size(self) -> int | None:
        """How many ranks are in the set; None before ``init``."""
        return len(self.ranks) if engine.is_initialized() and self.ranks is not None else None

    def rank(self) -> int | None:
        """This process's place in the set; None before ``init``. ``ValueError`` if it is not in the set."""
        if not engine.is_initialized() or self.ranks is None:
            return None
        if engine.rank() not in self.ranks:
            raise ValueError(f"rank {engine.rank()} is not in {self}")
        return self.ranks.index(engine.rank())

    def included(self) -> bool | None:
        """Whether this process is in the set; None before ``init``."""
        return engine.rank() in self.ranks if engine.is_initialized() and self.ranks is not None else None

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"

    __repr__ = __str__

    def _invalidate(self) -> None:
        self.process_set_id = self._number = None


class _GlobalSet(ProcessSet):
    """All ranks."""

    def __init__(self) -> None:
        super().__init__([])
        self.process_set_id = self._number = 0
        self.ranks = None

    def _invalidate(self) -> None:
        self.ranks = None


global_process_set: ProcessSet = _GlobalSet()


class _Registry:
    """The sets of this life of the engine by their ids. Freed ids are used again, the longest free first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # one change at a time
        self.sets: dict[int, ProcessSet] = {}
        self.freed: deque[int] = deque()
        self.registrations = 0

    def add(self, added: ProcessSet, number: int) -> None:
        added.process_set_id = self.freed.popleft() if self.freed else len(self.sets) + 1
        added._number = number
        self.registrations += 1
        added.registration = self.registrations
        self.sets[added.process_set_id] = added

    def remove(self, removed: ProcessSet) -> None:
        del self.sets[removed.process_set_id]
        self.freed.append(removed.process_set_id)
        removed._invalidate()

    def clear(self) -> None:
        for each in self.sets.values():
            each._invalidate()
        self.sets.clear()
        self.freed.clear()
        global_process_set._invalidate()


_registry = _Registry()
engine.at_shutdown(_registry.clear)


def add_process_set(process_set: ProcessSet | Iterable[int]) -> ProcessSet:
    """Adds a set: a ``ProcessSet`` or its ranks. Returns when all ranks of the job have called it with the same ranks.

    ``ValueError`` for a set that there is already, one without ranks, and ranks that do not exist; ``MismatchError`` on
    all ranks if they do not agree.
    """
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    with _registry.lock:
        _refuse_known(added)
        number = synchronize(remember(_ext.add_set(tuple(added.ranks or ())), None, _number_of))
        _registry.add(added, number)
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a set. Returns when all ranks of the job have called it. Operations of the set in flight fail.

    False, at once, for the set of all ranks and for one that is not registered.
    """
    with _registry.lock:
        if process_set is global_process_set or process_set._number is None:
            return False
        synchronize(remember(_ext.remove_set(process_set._number), None, lambda _: None))
        _registry.remove(process_set)
    return True


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    """The ranks of each set by its id, the set of all ranks (0) included."""
    with _registry.lock:
        known = {0: global_process_set, **_registry.sets}
        return {number: list(each.ranks or ()) for number, each in known.items()}


def number_for(process_set: ProcessSet) -> int:
    """The engine's number of the set for an operation of this rank. ``ValueError`` if it is not registered, or this
    rank is not in it.
    """
    if not is_taking_part(process_set):
        raise ValueError(f"rank {engine.rank()} is not in {process_set}")
    return process_set._number


def is_taking_part(process_set: ProcessSet) -> bool:
    """Whether this rank is in the set. ``ValueError`` if it is not registered."""
    if process_set is global_process_set:
        return True
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set must be a ProcessSet, not {process_set!r}")
    if process_set._number is None:
        raise ValueError(f"{process_set} is not registered: give it to init() or to add_process_set() first")
    return engine.rank() in process_set.ranks


def _begin(process_sets: Any) -> None:
    """After the engine has started: the set of all ranks, and those that ``init`` was given."""
    global_process_set.ranks = list(range(engine.size()))
    if process_sets is None or isinstance(process_sets, str):
        return
    for index, each in enumerate(process_sets):
        try:
            add_process_set(each)
        except ValueError as error:
            raise ValueError(f"init(process_sets=...): number {index}: {error}") from None


engine.at_init(_begin)


def _refuse_known(added: ProcessSet) -> None:
    if added.process_set_id is not None:
        raise ValueError(f"{added} is registered already")
    for known in (global_process_set, *_registry.sets.values()):
        if known.ranks == added.ranks:
            raise ValueError(f"there is a set of these ranks already: {known}")


def _number_of(handle: int) -> int:
    address, _, _, _, owner = _ext.take_output(handle)
    number = ctypes.c_int64.from_address(address).value
    del owner  # the memory lives until here
    return number
