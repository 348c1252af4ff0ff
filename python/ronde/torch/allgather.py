# SPDX-License-Identifier: Apache-2.0
"""Allgather: the tensors of all ranks one after another along the first dimension, on every rank.

The first dimension may differ between ranks and may be 0; the others agree. A tensor without dimensions is a
``ValueError``. Other errors are those of allreduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ronde.core.handles import synchronize
from ronde.core.ops import ALLGATHER, Average
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch.allreduce import allreduce
from ronde.torch.submission import Call, call_for_rows, encode, name_of_backward, require_tensor, send


def allgather_async(tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts an allgather. Returns a handle whose result is the new tensor."""
    require_tensor(tensor, "allgather_async")
    return send(_call(tensor, name, lambda gathered, rows: gathered, process_set))


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The tensors of all ranks, of shape (sum of the first dimensions, …), in rank order. Differentiable: the
    gradient is this rank's rows of the Average of all ranks' gradients.
    """
    require_tensor(tensor, "allgather")
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Allgather.apply(tensor, name, process_set)
    return synchronize(allgather_async(tensor, name, process_set))


def _call(tensor: torch.Tensor, name: str | None, result: Callable[..., Any], process_set: ProcessSet) -> Call:
    return call_for_rows(ALLGATHER, tensor, encode(name), result, process_set=process_set)


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str | None, process_set: ProcessSet):
        gathered, rows = synchronize(send(_call(tensor, name, lambda *both: both, process_set)))
        ctx.name, ctx.rows, ctx.process_set = name, rows, process_set
        return gathered

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        name = name_of_backward(ctx.name)
        reduced = allreduce(gradient, name=name, op=Average, process_set=ctx.process_set)
        here = ctx.process_set.rank()
        return reduced.narrow(0, sum(ctx.rows[:here]), ctx.rows[here]), None, None
