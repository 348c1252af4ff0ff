# SPDX-License-Identifier: Apache-2.0
"""Python objects between ranks, pickled. Sizes are 64-bit.

Pickles are read only from peers that have proved the job's key: the engine's links carry nothing else.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from typing import Any

from ronde import _ext
from ronde.core import engine
from ronde.core.errors import HorovodInternalError
from ronde.core.handles import remember, synchronize
from ronde.core.ops import ALLGATHER, BROADCAST, DTYPES
from ronde.core.pickles import dumps
from ronde.core.process_sets import ProcessSet, global_process_set, number_for

_INT64 = DTYPES["int64"]
_UINT8 = DTYPES["uint8"]
_COULD_NOT_PICKLE = -1  # in place of a size


def broadcast_object(
    value: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The root's ``value``, on every rank. On the root the very object is returned.

    Two broadcasts: the size as one int64, then the bytes. If the root cannot pickle its object, it raises that
    error and the others raise ``HorovodInternalError``.
    """
    number = number_for(process_set)
    is_root = engine.rank() == root_rank
    data, trouble = _try_dumps(value) if is_root else (b"", None)
    header = bytearray((_COULD_NOT_PICKLE if trouble else len(data)).to_bytes(8, sys.byteorder, signed=True))
    _broadcast(header, _INT64, 1, root_rank, _part(name, "size"), number)
    if trouble:
        raise trouble
    length = int.from_bytes(header, sys.byteorder, signed=True)
    if length == _COULD_NOT_PICKLE:
        raise HorovodInternalError(f"rank {root_rank} could not pickle the object that it was to broadcast")
    payload = bytearray(data) if is_root else bytearray(length)
    _broadcast(payload, _UINT8, length, root_rank, _part(name, "bytes"), number)
    return value if is_root else pickle.loads(payload)


def allgather_object(value: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The ``value`` of each rank of the set, in rank order. One allgather of bytes; a rank's share may have any size.

    A rank that cannot pickle its object raises that error, and the others ``HorovodInternalError``.
    """
    number = number_for(process_set)
    data, trouble = _try_dumps(value)
    # One leading byte says whether a pickle follows: no rank may stay away from the collective.
    share = bytearray(b"\0" if trouble else b"\1" + data)
    encoded = None if name is None else name.encode()
    handle = _ext.submit(encoded, ALLGATHER, _UINT8, (len(share),), _address(share), 0, 0, 0, 1.0, 1.0, number, 0)
    remember(handle, share, _ext.take_output)
    address, length, _, shares, owner = synchronize(handle)
    if trouble:
        raise trouble
    result = _load_shares(memoryview((ctypes.c_char * length).from_address(address)).cast("B"), shares, process_set)
    del owner  # the memory lives until here
    return result


def _load_shares(gathered: memoryview, shares: tuple[int, ...], process_set: ProcessSet) -> list[Any]:
    result = []
    start = 0
    for rank, share in zip(process_set.ranks, shares, strict=True):
        if gathered[start] == 0:
            raise HorovodInternalError(f"rank {rank} could not pickle the object that it was to share")
        result.append(pickle.loads(gathered[start + 1 : start + share]))
        start += share
    return result


def _try_dumps(value: Any) -> tuple[bytes, Exception | None]:
    try:
        return dumps(value), None
    except Exception as error:  # pickling runs the user's code
        return b"", error


def _broadcast(buffer: bytearray, dtype: int, count: int, root_rank: int, name: bytes | None, number: int) -> None:
    address = _address(buffer)
    handle = _ext.submit(name, BROADCAST, dtype, (count,), address, address, 0, root_rank, 1.0, 1.0, number, 0)
    synchronize(remember(handle, buffer, lambda _: None))


def _address(buffer: bytearray) -> int:
    """The address of the buffer's bytes; it holds while nobody resizes the buffer."""
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer)) if buffer else 0


def _part(name: str | None, part: str) -> bytes | None:
    return None if name is None else f"{name}.{part}".encode()
