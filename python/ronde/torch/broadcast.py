# SPDX-License-Identifier: Apache-2.0
"""Broadcast: every rank gets the root's tensor. Shape and dtype are the same on all ranks.

``root_rank`` is a rank of the whole job, also in a process set; one that is not in the set is a ``ValueError``. Other
errors are those of allreduce.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from ronde.core import engine
from ronde.core.handles import synchronize, synchronize_all
from ronde.core.ops import BROADCAST, Average
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch.allreduce import allreduce
from ronde.torch.placement import refuse_unsupported
from ronde.torch.submission import MORE, call_in_place, call_into_new, encode, name_of_backward, require_tensor, send


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts a broadcast into a new tensor. Returns a handle."""
    require_tensor(tensor, "broadcast_async")
    return send(call_into_new(BROADCAST, tensor, encode(name), 0, root_rank, process_set=process_set))


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts a broadcast in place. Returns a handle; ``tensor`` must not be used until it is complete."""
    require_tensor(tensor, "broadcast_async_")
    return send(call_in_place(BROADCAST, tensor, encode(name), 0, root_rank, process_set=process_set))


def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """Replaces the values of ``tensor`` by the root's and returns it."""
    require_tensor(tensor, "broadcast_")
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def broadcast(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The root's tensor as a new tensor, which is differentiable: the root's gradient is the Average of all ranks'
    gradients, that of the others is zero.
    """
    require_tensor(tensor, "broadcast")
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Broadcast.apply(tensor, root_rank, name, process_set)
    return synchronize(broadcast_async(tensor, root_rank, name, process_set))


def broadcast_all_(
    named: Sequence[tuple[bytes | None, torch.Tensor]],
    root_rank: int,
    bump: bool = True,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Replaces the values of many tensors by the root's, in few batches.

    A tensor that cannot be sent is an error before any is. If an error comes later, what was submitted is waited
    for, so that no name is left in flight and the call may be repeated.
    """
    for name, tensor in named:
        refuse_unsupported(tensor, f"'{name.decode() if name else 'a tensor'}' cannot be broadcast")
    handles: list[int] = []
    try:
        for name, tensor in named:
            handles.append(
                send(call_in_place(BROADCAST, tensor, name, root=root_rank, process_set=process_set, bump=bump), MORE)
            )
    except Exception:
        with contextlib.suppress(Exception):
            synchronize_all(handles)
        raise
    synchronize_all(handles)


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, name: str | None, process_set: ProcessSet):
        ctx.root_rank, ctx.name, ctx.process_set = root_rank, name, process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        name = name_of_backward(ctx.name)
        reduced = allreduce(gradient, name=name, op=Average, process_set=ctx.process_set)
        return reduced if engine.rank() == ctx.root_rank else reduced * 0, None, None, None
