# SPDX-License-Identifier: Apache-2.0
"""The engine of this process: start, leave, topology, and what happens when the interpreter ends.

There is one engine per process. ``init`` and ``shutdown`` may follow one another any number of times. All functions
may be called from any thread. A process that was forked after ``init`` has no engine: its calls raise
``NotInitializedError``.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ronde import _ext
from ronde.core.errors import EXCEPTION_OF_CODE, NotInitializedError, code_of

_ext.set_exceptions(EXCEPTION_OF_CODE)

_LONGEST_FAILURE_TEXT = 4000  # characters; a cause is a line or a few, not a log


class _Life:
    """What this module remembers between calls. Guarded by ``lock``."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid: int | None = None  # of the process that called init() first
        self.failed = False  # an uncaught exception was told: the end of the process is no clean leave
        self.at_init: list[Callable[[Any], None]] = []
        self.at_shutdown: list[Callable[[], None]] = []


_life = _Life()


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Starts the engine and waits until all ranks of the job have arrived. A second call without ``shutdown`` does
    nothing.

    The job is described by the environment that ``ronde run`` sets; without it the process is rank 0 of 1.
    ``process_sets``: a list of ``ProcessSet`` or of lists of ranks, the same on all ranks, which get the ids 1, 2, ...;
    a text is allowed and without meaning, for sets may be added at any time. ``comm`` is there for scripts that give
    it as None.

    Raises ``ValueError`` for a bad setting, a bad process set and for a ``comm``, ``DeadlineError`` naming the ranks
    that have not arrived in time, and ``NotInitializedError`` in a process forked from one that had called ``init``.
    """
    _refuse_comm(comm)
    with _life.lock:
        if _ext.is_running():
            return
        _refuse_forked_child()
        _start_interruptibly()
        _watch_the_end_of_the_process()
    try:
        for begin in _life.at_init:
            begin(process_sets)
    except Exception:
        shutdown()
        raise


def shutdown() -> None:
    """Leaves the job. Operations in flight fail; their handles are forgotten. May be called any number of times."""
    with _life.lock:
        if _life.pid is not None and _life.pid != os.getpid():
            return
        _ext.shutdown()
        for forget in _life.at_shutdown:
            forget()


def is_initialized() -> bool:
    """Whether ``init`` has been called and ``shutdown`` has not, in this very process."""
    return _ext.is_running()


def at_init(begin: Callable[[Any], None]) -> None:
    """Has ``begin(process_sets)`` called after each start, with what ``init`` was given."""
    _life.at_init.append(begin)


def at_shutdown(forget: Callable[[], None]) -> None:
    """Has ``forget`` called after each shutdown, when the engine has let go of all memory."""
    _life.at_shutdown.append(forget)


def rank() -> int:
    """The number of this process in the job, 0 … size − 1. Raises ``NotInitializedError`` (a ``ValueError``)."""
    return _ext.topology()[0]


def size() -> int:
    """The number of processes in the job."""
    return _ext.topology()[1]


def local_rank() -> int:
    """The number of this process among those of its host."""
    return _ext.topology()[2]


def local_size() -> int:
    """The number of processes of this job on this host."""
    return _ext.topology()[3]


def cross_rank() -> int:
    """The number of this host among those that have a process with this local rank."""
    return _ext.topology()[4]


def cross_size() -> int:
    """The number of hosts that have a process with this local rank."""
    return _ext.topology()[5]


def is_homogeneous() -> bool:
    """Whether each host has the same number of processes."""
    return bool(_ext.topology()[6])


def counters() -> dict[str, int]:
    """What the engine has counted since ``init``: batches, tensors, bytes (the fields of ``ronde_counters``)."""
    return _ext.counters()


def transport() -> tuple[str, str]:
    """("shm" or "tcp", why it is not shm): how the processes of this host exchange data."""
    return _ext.transport()


def _refuse_comm(comm: Any) -> None:
    if not _is_nothing(comm):
        raise ValueError(
            f"init(comm={comm!r}): a job cannot be cut out of another one. Start it with the ranks that it shall have: "
            "with 'ronde run -np N', or with RONDE_RANK and RONDE_SIZE set by hand"
        )


def _is_nothing(argument: Any) -> bool:
    return argument is None or (isinstance(argument, (list, tuple)) and not argument)


def _refuse_forked_child() -> None:
    here = os.getpid()
    if _life.pid is not None and _life.pid != here:
        raise NotInitializedError(
            f"Ronde was initialised in process {_life.pid}, and process {here} was forked from it: a forked child has "
            "no engine. Start it with the 'spawn' method, or call init() only in the process that trains"
        )


def _start_interruptibly() -> None:
    """Starts the engine in a thread of its own, so that Ctrl-C works while this one waits for the other ranks."""
    outcome: list[BaseException | None] = []

    def start() -> None:
        try:
            _ext.init()
            outcome.append(None)
        except BaseException as error:  # it is raised again in the caller's thread
            outcome.append(error)

    thread = threading.Thread(target=start, name="ronde-init", daemon=True)
    thread.start()
    thread.join()
    if outcome[0] is not None:
        raise outcome[0]


def _watch_the_end_of_the_process() -> None:
    _life.failed = False
    if _life.pid is not None:
        return
    _life.pid = os.getpid()
    atexit.register(_leave_at_exit)
    sys.excepthook = _telling(sys.excepthook)


def _leave_at_exit() -> None:
    if not _life.failed:
        shutdown()


def _telling(next_hook: Callable[..., object]) -> Callable[..., object]:
    """An ``excepthook`` that tells the launcher the cause before ``atexit`` could look like a clean leave."""

    def hook(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> object:
        interactive = hasattr(sys, "ps1") or sys.flags.interactive  # there an exception does not end the process
        if not interactive and _life.pid == os.getpid() and _ext.is_running():
            _life.failed = True
            try:
                _ext.tell_failure(code_of(kind), failure_text(kind, error, where))
            except Exception as trouble:  # the exception itself must still be shown
                print(f"ronde: the failure could not be told: {trouble}", file=sys.stderr)
        return next_hook(kind, error, where)

    return hook


def failure_text(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> str:
    """ "ValueError: no such column (train.py:12, in main)": an exception in a line or a few, with the place it came
    from.
    """
    text = "".join(traceback.format_exception_only(kind, error)).strip()
    frames = traceback.extract_tb(where)
    if frames:
        last = frames[-1]
        text += f" ({os.path.basename(last.filename)}:{last.lineno}, in {last.name})"
    return text.replace("\0", "\\0")[:_LONGEST_FAILURE_TEXT]
