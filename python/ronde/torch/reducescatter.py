# SPDX-License-Identifier: Apache-2.0
"""Reducescatter: each rank gives a tensor of the same shape and dtype, and gets its own part of the rows of their
Sum, Average, Min, Max or Product.

Rank i gets the i-th part of the first dimension; where it cannot be divided evenly, the first ranks get one row more.
A tensor without dimensions is a ``ValueError``. Scale factors, names and other errors are those of allreduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ronde.core.handles import synchronize
from ronde.core.ops import REDUCE_OP_NAMES, REDUCESCATTER, Average, Sum, resolve_op
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch.allgather import allgather
from ronde.torch.compression import Compression
from ronde.torch.submission import Call, call_for_rows, encode, name_of_backward, require_tensor, send


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reducescatter. Returns a handle whose result is the new tensor."""
    require_tensor(tensor, "reducescatter_async")
    return send(call_of(tensor, name, resolve_op(None, op), prescale_factor, postscale_factor, process_set))


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """This rank's rows of the reduction of all ranks' tensors, which is differentiable.

    The gradient is an allgather of the ranks' gradients, scaled as the reduction is; for Min, Max and Product
    ``backward`` raises ``NotImplementedError``.
    """
    require_tensor(tensor, "reducescatter")
    reduce_op = resolve_op(None, op)
    compressed, context = compression.compress(tensor)
    if compressed.requires_grad and torch.is_grad_enabled():
        scattered = _Reducescatter.apply(compressed, name, reduce_op, prescale_factor, postscale_factor, process_set)
    else:
        call = call_of(compressed, name, reduce_op, prescale_factor, postscale_factor, process_set)
        scattered = synchronize(send(call))
    return compression.decompress(scattered, context)


def call_of(
    tensor: torch.Tensor, name: str | None, reduce_op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> Call:
    def result(scattered: torch.Tensor, _: Sequence[int]) -> torch.Tensor:
        return scattered

    return call_for_rows(REDUCESCATTER, tensor, encode(name), result, reduce_op, prescale, postscale, process_set)


def scale_of_gradient(reduce_op: int, prescale: float, postscale: float, process_set: ProcessSet) -> float:
    """What each element of the input is worth in the output. ``NotImplementedError`` where that is no constant."""
    if reduce_op not in (Average, Sum):
        raise NotImplementedError(
            f"reducescatter with op={REDUCE_OP_NAMES[reduce_op]} has no gradient: detach its input"
        )
    return prescale * postscale / (process_set.size() if reduce_op == Average else 1)


class _Reducescatter(torch.autograd.Function):
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
        return synchronize(send(call_of(tensor, name, reduce_op, prescale, postscale, process_set)))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        scale = scale_of_gradient(ctx.reduce_op, ctx.prescale, ctx.postscale, ctx.process_set)
        name = name_of_backward(ctx.name)
        return allgather(gradient * scale, name, ctx.process_set), None, None, None, None, None
