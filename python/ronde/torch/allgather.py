# SPDX-License-Identifier: Apache-2.0
"""Allgather: the tensors of all ranks one after another along the first dimension, on every rank.

The first dimension may differ between ranks and may be 0; the others agree. A tensor without dimensions is a
``ValueError``. Other errors are those of allreduce.
"""

from __future__ import annotations

from typing import Any

import torch

from ronde.core import engine
from ronde.core.handles import synchronize
from ronde.core.ops import ALLGATHER, Average
from ronde.torch.allreduce import allreduce
from ronde.torch.submission import call_for_rows, encode, require_tensor, send


def allgather_async(tensor: torch.Tensor, name: str | None = None) -> int:
    """Starts an allgather. Returns a handle whose result is the new tensor."""
    require_tensor(tensor, "allgather_async")
    return send(call_for_rows(ALLGATHER, tensor, encode(name), lambda gathered, rows: gathered))


def allgather(tensor: torch.Tensor, name: str | None = None) -> torch.Tensor:
    """The tensors of all ranks, of shape (sum of the first dimensions, …), in rank order. Differentiable: the
    gradient is this rank's rows of the Average of all ranks' gradients.
    """
    require_tensor(tensor, "allgather")
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Allgather.apply(tensor, name)
    return synchronize(allgather_async(tensor, name))


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str | None):
        gathered, rows = synchronize(send(call_for_rows(ALLGATHER, tensor, encode(name), lambda *both: both)))
        ctx.name, ctx.rows = name, rows
        return gathered

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        name = None if ctx.name is None else f"{ctx.name}.gradient"
        reduced = allreduce(gradient, name=name, op=Average)
        here = engine.rank()
        return reduced.narrow(0, sum(ctx.rows[:here]), ctx.rows[here]), None
