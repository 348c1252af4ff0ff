# SPDX-License-Identifier: Apache-2.0
"""Barrier: returns on each rank when all have called it."""

from ronde import _ext
from ronde.core.handles import remember, synchronize
from ronde.core.ops import BARRIER, DTYPES
from ronde.core.process_sets import ProcessSet, global_process_set, number_for


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks of the set have called it. ``HorovodInternalError`` if one is lost or has left."""
    number = number_for(process_set)
    handle = _ext.submit(None, BARRIER, DTYPES["uint8"], (), 0, 0, 0, 0, 1.0, 1.0, number, 0)
    synchronize(remember(handle, None, lambda _: None))
