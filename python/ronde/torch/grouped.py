# SPDX-License-Identifier: Apache-2.0
"""Grouped operations: those of a list of tensors, submitted and done as a whole, in as few batches as possible.

All ranks give the same tensors in the same order; a group that differs between ranks fails on all of them. With a
name ``n``, operation i of a group of k is called ``n_<i>of<k>``, counted from 1. An empty list gives an empty list.
Factors, operators and errors are those of the plain operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ronde.core.handles import of_nothing, synchronize
from ronde.core.ops import ALLGATHER, ALLREDUCE, REDUCE_OP_NAMES, Average, Sum, resolve_op
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch import reducescatter
from ronde.torch.compression import Compression
from ronde.torch.submission import (
    Call,
    call_for_rows,
    call_in_place,
    call_into_new,
    encode,
    name_of_backward,
    require_tensor,
    send_group,
)

Tensors = Sequence[torch.Tensor]


def grouped_allreduce_async(
    tensors: Tensors,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce of each tensor into a new one. Returns one handle, whose result is the list of them."""
    reduce_op = resolve_op(average, op)
    return _start_allreduce(call_into_new, tensors, name, reduce_op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(
    tensors: Tensors,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce of each tensor in place. Returns one handle, whose result is the list of the tensors."""
    reduce_op = resolve_op(average, op)
    return _start_allreduce(call_in_place, tensors, name, reduce_op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(
    tensors: Tensors,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Reduces each tensor in place and returns them."""
    reduce_op = resolve_op(average, op)
    return synchronize(
        grouped_allreduce_async_(tensors, None, name, reduce_op, prescale_factor, postscale_factor, process_set)
    )


def grouped_allreduce(
    tensors: Tensors,
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """The reductions of the tensors as new ones, which are differentiable as those of allreduce are."""
    reduce_op = resolve_op(average, op)
    _require_tensors(tensors, "grouped_allreduce")
    compressed, contexts = _compress(compression, tensors)
    if _need_gradients(compressed):
        reduced = _GroupedAllreduce.apply(name, reduce_op, prescale_factor, postscale_factor, process_set, *compressed)
    else:
        handle = _start_allreduce(
            call_into_new, compressed, name, reduce_op, prescale_factor, postscale_factor, process_set
        )
        reduced = synchronize(handle)
    return _decompress(compression, reduced, contexts)


def grouped_allgather_async(
    tensors: Tensors, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts an allgather of each tensor. Returns one handle, whose result is the list of the new tensors."""
    _require_tensors(tensors, "grouped_allgather_async")
    return _start_allgather(tensors, name, lambda gathered, rows: gathered, process_set)


def grouped_allgather(
    tensors: Tensors, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[torch.Tensor]:
    """For each tensor those of all ranks along the first dimension. Differentiable as allgather is."""
    _require_tensors(tensors, "grouped_allgather")
    if _need_gradients(tensors):
        return list(_GroupedAllgather.apply(name, process_set, *tensors))
    return synchronize(grouped_allgather_async(tensors, name, process_set))


def grouped_reducescatter_async(
    tensors: Tensors,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reducescatter of each tensor. Returns one handle, whose result is the list of the new tensors."""
    _require_tensors(tensors, "grouped_reducescatter_async")
    return _start_reducescatter(tensors, name, resolve_op(None, op), prescale_factor, postscale_factor, process_set)


def grouped_reducescatter(
    tensors: Tensors,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """This rank's rows of the reduction of each tensor. Differentiable as reducescatter is."""
    reduce_op = resolve_op(None, op)
    _require_tensors(tensors, "grouped_reducescatter")
    compressed, contexts = _compress(compression, tensors)
    if _need_gradients(compressed):
        scattered = _GroupedReducescatter.apply(
            name, reduce_op, prescale_factor, postscale_factor, process_set, *compressed
        )
    else:
        scattered = synchronize(
            _start_reducescatter(compressed, name, reduce_op, prescale_factor, postscale_factor, process_set)
        )
    return _decompress(compression, scattered, contexts)


# --- starting --------------------------------------------------------------------------------------------------------


def _start(tensors: Tensors, name: str | None, call_of: Callable[[torch.Tensor, str | None], Call]) -> int:
    if not tensors:
        return of_nothing([])
    names = [None if name is None else f"{name}_{i + 1}of{len(tensors)}" for i in range(len(tensors))]
    calls = [call_of(tensor, part) for tensor, part in zip(tensors, names, strict=True)]
    return send_group(calls, list)


def _start_allreduce(
    kind: Callable[..., Call],
    tensors: Tensors,
    name: str | None,
    reduce_op: int,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> int:
    _require_tensors(tensors, "grouped_allreduce")

    def call_of(tensor: torch.Tensor, part: str | None) -> Call:
        return kind(ALLREDUCE, tensor, encode(part), reduce_op, 0, prescale, postscale, process_set)

    return _start(tensors, name, call_of)


def _start_allgather(tensors: Tensors, name: str | None, result: Callable[..., Any], process_set: ProcessSet) -> int:
    def call_of(tensor: torch.Tensor, part: str | None) -> Call:
        return call_for_rows(ALLGATHER, tensor, encode(part), result, process_set=process_set)

    return _start(tensors, name, call_of)


def _start_reducescatter(
    tensors: Tensors, name: str | None, reduce_op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> int:
    def call_of(tensor: torch.Tensor, part: str | None) -> Call:
        return reducescatter.call_of(tensor, part, reduce_op, prescale, postscale, process_set)

    return _start(tensors, name, call_of)


def _require_tensors(tensors: Tensors, function: str) -> None:
    for tensor in tensors:
        require_tensor(tensor, function)


def _need_gradients(tensors: Tensors) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _compress(compression: Any, tensors: Tensors) -> tuple[list[torch.Tensor], list[Any]]:
    pairs = [compression.compress(tensor) for tensor in tensors]
    return [tensor for tensor, _ in pairs], [context for _, context in pairs]


def _decompress(compression: Any, tensors: Tensors, contexts: list[Any]) -> list[torch.Tensor]:
    return [compression.decompress(*pair) for pair in zip(tensors, contexts, strict=True)]


# --- gradients -------------------------------------------------------------------------------------------------------


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        name: str | None,
        reduce_op: int,
        prescale: float,
        postscale: float,
        process_set: ProcessSet,
        *tensors: torch.Tensor,
    ):
        ctx.name, ctx.reduce_op, ctx.prescale, ctx.postscale = name, reduce_op, prescale, postscale
        ctx.process_set = process_set
        return tuple(
            synchronize(_start_allreduce(call_into_new, tensors, name, reduce_op, prescale, postscale, process_set))
        )

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor):
        if ctx.reduce_op not in (Average, Sum):
            raise NotImplementedError(
                f"grouped_allreduce with op={REDUCE_OP_NAMES[ctx.reduce_op]} has no gradient: detach its inputs"
            )
        reduced = grouped_allreduce(
            gradients,
            name=name_of_backward(ctx.name),
            op=ctx.reduce_op,
            prescale_factor=ctx.prescale,
            postscale_factor=ctx.postscale,
            process_set=ctx.process_set,
        )
        return None, None, None, None, None, *reduced


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str | None, process_set: ProcessSet, *tensors: torch.Tensor):
        pairs = synchronize(_start_allgather(tensors, name, lambda *both: both, process_set))
        ctx.name, ctx.rows, ctx.process_set = name, [rows for _, rows in pairs], process_set
        return tuple(gathered for gathered, _ in pairs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor):
        reduced = grouped_allreduce(gradients, name=name_of_backward(ctx.name), op=Average, process_set=ctx.process_set)
        here = ctx.process_set.rank()
        own = [
            gradient.narrow(0, sum(rows[:here]), rows[here]) for gradient, rows in zip(reduced, ctx.rows, strict=True)
        ]
        return None, None, *own


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        name: str | None,
        reduce_op: int,
        prescale: float,
        postscale: float,
        process_set: ProcessSet,
        *tensors: torch.Tensor,
    ):
        ctx.name, ctx.reduce_op, ctx.prescale, ctx.postscale = name, reduce_op, prescale, postscale
        ctx.process_set = process_set
        return tuple(synchronize(_start_reducescatter(tensors, name, reduce_op, prescale, postscale, process_set)))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor):
        scale = reducescatter.scale_of_gradient(ctx.reduce_op, ctx.prescale, ctx.postscale, ctx.process_set)
        scaled = [gradient * scale for gradient in gradients]
        gathered = grouped_allgather(scaled, name_of_backward(ctx.name), ctx.process_set)
        return None, None, None, None, None, *gathered
