# SPDX-License-Identifier: Apache-2.0
"""The operations, reduce operators and element types, by the numbers of the engine, and the rule for ``average``
and ``op``.
"""

from __future__ import annotations

import warnings

# ronde_op
ALLREDUCE = 0
BROADCAST = 1
ALLGATHER = 2
BARRIER = 3
REDUCESCATTER = 4
ALLTOALL = 5

# ronde_reduce_op. 2 is kept free (Adasum).
Average = 0
Sum = 1
Min = 3
Max = 4
Product = 5

REDUCE_OP_NAMES = {Average: "Average", Sum: "Sum", Min: "Min", Max: "Max", Product: "Product"}

# ronde_dtype, by the names users write.
DTYPES = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "bfloat16": 3,
    "int32": 4,
    "int64": 5,
    "uint8": 6,
    "bool": 7,
    "int8": 8,
    "int16": 9,
    "uint16": 10,
    "complex64": 11,
    "complex128": 12,
}

# What the engine takes at most.
MOST_DIMENSIONS = 16
LONGEST_NAME = 1024  # bytes


def resolve_op(average: bool | None, op: int | None) -> int:
    """The reduce operator that a call's ``average`` and ``op`` ask for.

    ``op`` alone is taken as it is; neither means Average; ``average`` alone is the old way (True: Average, False:
    Sum) and draws a ``DeprecationWarning``; both together are a ``ValueError``, and so is an operator that does not
    exist.
    """
    if op is None:
        if average is None:
            return Average
        warnings.warn(
            "the argument 'average' is deprecated: use op=Average or op=Sum", DeprecationWarning, stacklevel=3
        )
        return Average if average else Sum
    if average is not None:
        raise ValueError("give either 'op' or 'average', not both ('average' is deprecated)")
    if op not in REDUCE_OP_NAMES:
        known = ", ".join(f"{name}={value}" for value, name in REDUCE_OP_NAMES.items())
        raise ValueError(f"unknown reduce operator {op!r}; there are {known}")
    return op
