# SPDX-License-Identifier: Apache-2.0
"""Alltoall: each rank gives rows for each rank, and gets the rows that all ranks have for it, in rank order.

``splits`` says how many rows of ``tensor`` are for each rank: a sequence of ints or a tensor of integers, one for each
rank, whose sum is at most the first dimension (rows after them are for nobody). Without ``splits`` each rank gets an
equal part. The first dimension may differ between ranks; the others agree.

Errors: ``ValueError`` at once for a tensor without dimensions, for rows that cannot be divided evenly, and for
splits of a wrong number, negative ones, or too many rows. Other errors are those of allreduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ronde.core.handles import synchronize
from ronde.core.ops import ALLTOALL
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch.submission import call_for_rows, encode, name_of_backward, require_tensor, send

Splits = torch.Tensor | Sequence[int] | None


def alltoall_async(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an alltoall. Returns a handle whose result is a pair: the new tensor, and how many of its rows came from
    each rank (a tensor of int32).
    """
    require_tensor(tensor, "alltoall_async")
    return _start(tensor, _as_ints(splits), name, process_set, _device_of(splits))


def alltoall(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """The rows that all ranks have for this one, as a new tensor. If ``splits`` were given: a pair of it and of how
    many rows came from each rank (int32, on the device of ``splits``).

    Differentiable: the gradient is the alltoall that sends the rows back.
    """
    require_tensor(tensor, "alltoall")
    ints = _as_ints(splits)
    if tensor.requires_grad and torch.is_grad_enabled():
        received, rows = _Alltoall.apply(tensor, ints, name, process_set, _device_of(splits))
    else:
        received, rows = synchronize(_start(tensor, ints, name, process_set, _device_of(splits)))
    return received if splits is None else (received, rows)


def _start(
    tensor: torch.Tensor,
    splits: tuple[int, ...] | None,
    name: str | None,
    process_set: ProcessSet,
    device: torch.device,
) -> int:
    def result(received: torch.Tensor, rows: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        return received, torch.tensor(rows, dtype=torch.int32, device=device)

    return send(call_for_rows(ALLTOALL, tensor, encode(name), result, process_set=process_set), splits=splits)


def _as_ints(splits: Splits) -> tuple[int, ...] | None:
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.dim() != 1 or splits.is_floating_point() or splits.is_complex() or splits.dtype is torch.bool:
            raise ValueError(
                f"alltoall: splits must be one integer for each rank, not {splits.dtype} of shape {list(splits.shape)}"
            )
        return tuple(splits.tolist())
    return tuple(splits)


def _device_of(splits: Splits) -> torch.device:
    return splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        tensor: torch.Tensor,
        splits: tuple[int, ...] | None,
        name: str | None,
        process_set: ProcessSet,
        device: torch.device,
    ):
        received, rows = synchronize(_start(tensor, splits, name, process_set, device))
        ctx.name, ctx.rows, ctx.given, ctx.process_set = name, rows.tolist(), tensor.shape[0], process_set
        ctx.mark_non_differentiable(rows)
        return received, rows

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor):
        name = name_of_backward(ctx.name)
        returned, _ = alltoall(gradient, ctx.rows, name, ctx.process_set)
        for_nobody = returned.new_zeros(ctx.given - returned.shape[0], *returned.shape[1:])
        return torch.cat([returned, for_nobody]), None, None, None, None
