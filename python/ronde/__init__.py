# SPDX-License-Identifier: Apache-2.0
"""Ronde trains one model on many processes.

``import ronde.torch as hvd`` is what a training script needs. This package itself imports nothing heavy and does
not load the engine: it holds the version, the exceptions and ``run``, which starts ranks from a Python program.
"""

from ronde.core.errors import (
    AbortedError,
    DeadlineError,
    EngineError,
    HorovodInternalError,
    MismatchError,
    NotInitializedError,
    PeerLostError,
    RankLeftError,
    ResourceExhaustedError,
    RondeError,
    SystemCallError,
    UnsupportedError,
)
from ronde.run import run

__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "DeadlineError",
    "EngineError",
    "HorovodInternalError",
    "MismatchError",
    "NotInitializedError",
    "PeerLostError",
    "RankLeftError",
    "ResourceExhaustedError",
    "RondeError",
    "SystemCallError",
    "UnsupportedError",
    "__version__",
    "run",
]
