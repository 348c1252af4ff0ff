# SPDX-License-Identifier: Apache-2.0
"""The exceptions, one class per error code of the engine.

A fault of this rank alone (a bad argument, a name that is in flight) is a ``ValueError`` and is raised where the
operation is submitted. What went wrong between the ranks is a ``HorovodInternalError`` and is raised where its
result is waited for. Programs act on the class, never on the text.
"""

from __future__ import annotations


class HorovodInternalError(RuntimeError):
    """A collective operation failed. The name is the one that elastic training scripts catch."""


RondeError = HorovodInternalError


class NotInitializedError(HorovodInternalError, ValueError):
    """``init()`` was not called, ``shutdown()`` was, or this process was forked from one that had called it."""


class MismatchError(HorovodInternalError):
    """Ranks asked for different things under one name. The engine goes on with the next operation."""


class PeerLostError(HorovodInternalError):
    """A process of the job is gone; the text names its rank, host, pid and cause."""


class DeadlineError(HorovodInternalError, TimeoutError):
    """An operation did not end within its deadline, or not all ranks arrived at ``init()`` in time."""


class AbortedError(HorovodInternalError):
    """The job was given up for a reason found elsewhere; the text names it."""


class UnsupportedError(HorovodInternalError):
    """Nothing in this build or on this machine can do what was asked."""


class ResourceExhaustedError(HorovodInternalError):
    """Memory, file descriptors or space ran out."""


class SystemCallError(HorovodInternalError):
    """A call of the operating system failed."""


class EngineError(HorovodInternalError):
    """A protocol broke inside the engine: a bug of Ronde's."""


class RankLeftError(HorovodInternalError):
    """The operation needs a rank that has called ``shutdown()`` or ended."""


# By the numbers of ronde_code in include/ronde/ronde.h. 0 is success; 12 (a wait was broken off) never leaves the
# binding.
EXCEPTION_OF_CODE: tuple[type[Exception] | None, ...] = (
    None,
    ValueError,
    NotInitializedError,
    MismatchError,
    PeerLostError,
    DeadlineError,
    AbortedError,
    UnsupportedError,
    ResourceExhaustedError,
    SystemCallError,
    EngineError,
    RankLeftError,
    None,
)


def code_of(kind: type[BaseException]) -> int:
    """The number of an exception class that is the engine's own, else 0."""
    own = {error: code for code, error in enumerate(EXCEPTION_OF_CODE) if error not in (None, ValueError)}
    return next((own[base] for base in kind.__mro__ if base in own), 0)
