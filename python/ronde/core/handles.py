# SPDX-License-Identifier: Apache-2.0
"""Handles of submitted operations, and what must live until they are complete.

The engine holds plain addresses, so the tensors behind them are kept here until their handle has been waited for,
or the engine has been shut down. A handle is an int; that of a group is the one of its first operation.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ronde import _ext
from ronde.core import engine

# Makes the result of a complete operation from its handle.
Finish = Callable[[int], Any]


class Pending:
    """Operations in flight that are waited for together: what must stay alive, and how their result is made."""

    __slots__ = ("error", "finish", "handles", "keep", "waited")

    def __init__(self, handles: Sequence[int], keep: Any, finish: Callable[[Sequence[int]], Any]) -> None:
        self.handles = handles
        self.keep = keep
        self.finish = finish
        self.waited = 0  # handles that are complete and were waited for
        self.error: Exception | None = None  # the first of theirs

    def abandon(self) -> None:
        """Frees the outputs that the engine has allocated for those that are complete."""
        for handle in self.handles[: self.waited]:
            with contextlib.suppress(Exception):  # it has none
                _ext.take_output(handle)


_pending: dict[int, Pending] = {}
_of_nothing = itertools.count(-1, -1)  # the engine's handles are positive
engine.at_shutdown(_pending.clear)


def remember(handle: int, keep: Any, finish: Finish) -> int:
    """Keeps ``keep`` alive until ``handle`` is waited for; ``finish(handle)`` then makes the result. Returns the
    handle.
    """
    _pending[handle] = Pending((handle,), keep, lambda handles: finish(handles[0]))
    return handle


def remember_group(handles: Sequence[int], keep: Any, finish: Callable[[Sequence[int]], Any]) -> int:
    """The same for operations that are waited for together: ``finish(handles)`` makes the one result. Returns the
    handle of all of them.
    """
    _pending[handles[0]] = Pending(handles, keep, finish)
    return handles[0]


def of_nothing(result: Any) -> int:
    """A handle with nothing to wait for, that gives ``result``."""
    handle = next(_of_nothing)
    _pending[handle] = Pending((), None, lambda _: result)
    return handle


def poll(handle: int) -> bool:
    """Whether the operation is complete, with or without an error; of a group, whether all are. ``ValueError`` if
    there is no such handle.
    """
    pending = _pending.get(handle)
    if pending is None:
        raise ValueError(f"no operation has the handle {handle!r}: it was waited for already, or never given out")
    return all(_ext.poll(one) for one in pending.handles[pending.waited :])


def synchronize(handle: int, timeout: float | None = None) -> Any:
    """Waits for the operation and returns its result; None for a handle that is unknown or was waited for already.

    ``timeout`` is in seconds; when it passes, ``TimeoutError`` is raised, nothing is aborted, and the handle may be
    waited for again. The same holds for Ctrl-C. Any other failure is the operation's own: a
    ``HorovodInternalError``; of a group, the first, raised when all are over.
    """
    pending = _pending.get(handle)
    if pending is None:
        return None
    deadline = None if timeout is None else time.monotonic() + timeout
    while pending.waited < len(pending.handles):
        left = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            complete = _ext.wait(pending.handles[pending.waited], left)
        except Exception as error:  # it is raised below
            pending.error = pending.error or error
            complete = True
        if not complete:
            raise TimeoutError(f"handle {handle} is not complete after {timeout} s; it may be waited for again")
        pending.waited += 1
    _pending.pop(handle, None)
    if pending.error is not None:
        pending.abandon()
        raise pending.error
    return pending.finish(pending.handles)


def synchronize_all(handles: Iterable[int]) -> None:
    """Waits for all of them, and raises the first error only then: none is left in flight behind it."""
    first: Exception | None = None
    for handle in handles:
        try:
            synchronize(handle)
        except Exception as error:  # it is raised below
            first = first or error
    if first is not None:
        raise first
