# SPDX-License-Identifier: Apache-2.0
"""Allreduce: each rank gives a tensor of the same shape and dtype, and gets their Sum, Average, Min, Max or Product.

Operations with a name meet under it whatever the order; those without one are matched by their order.
``prescale_factor`` multiplies before, ``postscale_factor`` after the reduction. Integers: Sum wraps, Average
divides the exact sum toward zero.

Errors: ``TypeError`` at once for what is no tensor, ``ValueError`` for another bad argument, an unsupported dtype or a
name in flight; ``HorovodInternalError`` from ``synchronize`` for a mismatch between ranks or a lost peer.
"""

from __future__ import annotations

from typing import Any

import torch

from ronde.core.handles import synchronize
from ronde.core.ops import ALLREDUCE, REDUCE_OP_NAMES, Average, Sum, resolve_op
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch.compression import Compression
from ronde.torch.submission import call_in_place, call_into_new, encode, name_of_backward, require_tensor, send


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce into a new tensor. Returns a handle; ``tensor`` stays untouched until it is complete."""
    require_tensor(tensor, "allreduce_async")
    reduce_op = resolve_op(average, op)
    return send(
        call_into_new(ALLREDUCE, tensor, encode(name), reduce_op, 0, prescale_factor, postscale_factor, process_set)
    )


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an allreduce in place. Returns a handle; ``tensor`` must not be used until it is complete."""
    require_tensor(tensor, "allreduce_async_")
    reduce_op = resolve_op(average, op)
    return send(
        call_in_place(ALLREDUCE, tensor, encode(name), reduce_op, 0, prescale_factor, postscale_factor, process_set)
    )


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces ``tensor`` in place and returns it."""
    require_tensor(tensor, "allreduce_")
    reduce_op = resolve_op(average, op)
    return synchronize(allreduce_async_(tensor, None, name, reduce_op, prescale_factor, postscale_factor, process_set))


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The reduction of all ranks' tensors as a new tensor, which is differentiable.

    The gradient is an allreduce with the same operator and factors; for Min, Max and Product ``backward`` raises
    ``NotImplementedError``.
    """
    require_tensor(tensor, "allreduce")
    reduce_op = resolve_op(average, op)
    compressed, context = compression.compress(tensor)
    if compressed.requires_grad and torch.is_grad_enabled():
        reduced = _Allreduce.apply(compressed, name, reduce_op, prescale_factor, postscale_factor, process_set)
    else:
        reduced = _reduced(compressed, name, reduce_op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, context)


def _reduced(
    tensor: torch.Tensor, name: str | None, reduce_op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> torch.Tensor:
    call = call_into_new(ALLREDUCE, tensor, encode(name), reduce_op, 0, prescale, postscale, process_set)
    return synchronize(send(call))


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        tensor: torch.Tensor,
        name: str | None,
        reduce_op: int,
        prescale: float,
        postscale: float,
        process_set: ProcessSet,
    ):
        ctx.name, ctx.reduce_op, ctx.prescale, ctx.postscale = name, reduce_op, prescale, postscale
        ctx.process_set = process_set
        return _reduced(tensor, name, reduce_op, prescale, postscale, process_set)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        if ctx.reduce_op not in (Average, Sum):
            raise NotImplementedError(
                f"allreduce with op={REDUCE_OP_NAMES[ctx.reduce_op]} has no gradient: detach its input"
            )
        name = name_of_backward(ctx.name)
        reduced = allreduce(
            gradient,
            name=name,
            op=ctx.reduce_op,
            prescale_factor=ctx.prescale,
            postscale_factor=ctx.postscale,
            process_set=ctx.process_set,
        )
        return reduced, None, None, None, None, None
