# SPDX-License-Identifier: Apache-2.0
"""Rank 1 of `ronde bench allreduce --sizes 8 --repeats 3` or `ronde bench latency`, that adds what it should not.

It submits what the program would, with other values: liar_in_bench.py allreduce|latency.
"""

import ctypes
import sys

from ronde import _ext
from ronde.core import engine, handles, ops

REPEATS = 3
F32, F64, U8 = ops.DTYPES["float32"], ops.DTYPES["float64"], ops.DTYPES["uint8"]


def allreduce(name, dtype, kind, values, op):
    data = (kind * len(values))(*values)
    at = ctypes.addressof(data)
    handle = _ext.submit(name, ops.ALLREDUCE, dtype, (len(values),), at, at, op, 0, 1.0, 1.0, 0, 0)
    handles.synchronize(handles.remember(handle, data, lambda _: None))


def barrier():
    handle = _ext.submit(None, ops.BARRIER, U8, (), 0, 0, 0, 0, 1.0, 1.0, 0, 0)
    handles.synchronize(handles.remember(handle, None, lambda _: None))


def reduce():
    allreduce(b"bench8", F32, ctypes.c_float, [1000, 1000], ops.Sum)


def lie_in_allreduce():
    reduce()
    reduce()
    allreduce(None, F64, ctypes.c_double, [1e9], ops.Max)  # the seconds that one took: the least repeats are chosen
    for measured in (reduce, lambda: None):  # the reduction, and a memcpy beside it
        for _ in range(REPEATS):
            barrier()
            measured()
        allreduce(None, F64, ctypes.c_double, [0] * REPEATS, ops.Max)
    allreduce(None, U8, ctypes.c_uint8, [1], ops.Min)  # "my results were right"


def lie_in_latency():
    allreduce(b"latency", F64, ctypes.c_double, [1000], ops.Sum)


engine.init()
{"allreduce": lie_in_allreduce, "latency": lie_in_latency}[sys.argv[1]]()
