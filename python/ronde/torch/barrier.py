# SPDX-License-Identifier: Apache-2.0
"""Barrier: returns on each rank when all have called it."""

from ronde import _ext
from ronde.core.handles import remember, synchronize
from ronde.core.ops import BARRIER, DTYPES


def barrier() -> None:
    """Waits until all ranks have called it. ``HorovodInternalError`` if one of them is lost or has left."""
    handle = _ext.submit(None, BARRIER, DTYPES["uint8"], (), 0, 0, 0, 0, 1.0, 1.0, 0)
    synchronize(remember(handle, None, lambda _: None))
