# SPDX-License-Identifier: Apache-2.0
"""Handles of submitted operations, and what must live until they are complete.

The engine holds plain addresses, so the tensors behind them are kept here until their handle has been waited for,
or the engine has been shut down. A handle is an int.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ronde import _ext
from ronde.core import engine


class Pending:
    """An operation in flight: what must stay alive, and how its result is made once it is complete."""

    __slots__ = ("finish", "keep")

    def __init__(self, keep: Any, finish: Callable[[], Any]) -> None:
        self.keep = keep
        self.finish = finish


_pending: dict[int, Pending] = {}
engine.at_shutdown(_pending.clear)


def remember(handle: int, keep: Any, finish: Callable[[], Any]) -> int:
    """Keeps ``keep`` alive until ``handle`` is waited for; ``finish()`` then makes the result. Returns the handle."""
    _pending[handle] = Pending(keep, finish)
    return handle


def poll(handle: int) -> bool:
    """Whether the operation is complete, with or without an error. ``ValueError`` if there is no such handle."""
    if handle not in _pending:
        raise ValueError(f"no operation has the handle {handle!r}: it was waited for already, or never given out")
    return _ext.poll(handle)


def synchronize(handle: int, timeout: float | None = None) -> Any:
    """Waits for the operation and returns its result; None for a handle that is unknown or was waited for already.

    ``timeout`` is in seconds; when it passes, ``TimeoutError`` is raised, nothing is aborted, and the handle may be
    waited for again. The same holds for Ctrl-C. Any other failure is the operation's own: a
    ``HorovodInternalError``.
    """
    pending = _pending.get(handle)
    if pending is None:
        return None
    try:
        complete = _ext.wait(handle, -1.0 if timeout is None else float(timeout))
    except Exception:
        _pending.pop(handle, None)
        raise
    if not complete:
        raise TimeoutError(f"handle {handle} is not complete after {timeout} s; it may be waited for again")
    _pending.pop(handle, None)
    return pending.finish()


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
