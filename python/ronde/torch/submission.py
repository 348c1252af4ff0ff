# SPDX-License-Identifier: Apache-2.0
"""From a torch tensor to a handle: the one place where tensors meet the engine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ronde import _ext
from ronde.core.handles import Finish, remember, remember_group
from ronde.core.process_sets import ProcessSet, global_process_set, number_for
from ronde.torch.dtypes import dtype_code
from ronde.torch.placement import host_like, place

MORE: int = _ext.MORE

_increment_version = getattr(torch.autograd.graph, "increment_version", None)


def require_tensor(tensor: object, function: str) -> None:
    """``TypeError`` naming the function and the type given if that is no tensor. What users call begins with it."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{function}: the argument 'tensor' must be a torch.Tensor, not {type(tensor).__name__}")


class Call(NamedTuple):
    """An operation that is ready to be submitted."""

    fields: tuple[Any, ...]  # what the engine is told: the first arguments of ``_ext.submit``
    keep: Any  # what must live until it is complete
    finish: Finish


def send(call: Call, flags: int = 0, splits: tuple[int, ...] | None = None) -> int:
    """Submits the operation. Returns the handle."""
    return remember(_ext.submit(*call.fields, flags, splits), call.keep, call.finish)


def send_together(calls: Sequence[Call], flags: int = 0) -> list[int]:
    """Submits the operations as a group. Returns a handle for each."""
    handles = _ext.submit_group([call.fields for call in calls], flags)
    return [remember(handle, call.keep, call.finish) for handle, call in zip(handles, calls, strict=True)]


def send_group(calls: Sequence[Call], result: Callable[[list[Any]], Any]) -> int:
    """Submits the operations as a group, which is done as a whole or not at all. Returns the one handle of all;
    ``result`` makes what it gives from what the operations give.
    """
    handles = _ext.submit_group([call.fields for call in calls], 0)

    def finish(complete: Sequence[int]) -> Any:
        return result([call.finish(handle) for call, handle in zip(calls, complete, strict=True)])

    return remember_group(handles, calls, finish)


def call_into_new(
    op: int,
    tensor: torch.Tensor,
    name: bytes | None,
    reduce_op: int = 0,
    root: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Call:
    """An operation whose result is a new dense tensor like ``tensor`` and on its device."""
    dtype = dtype_code(tensor)
    host, _, on_gpu = place(tensor)
    output = host_like(tensor)
    device = tensor.device
    addresses = (host.data_ptr(), output.data_ptr())
    return Call(
        (name, op, dtype, host.shape, *addresses, reduce_op, root, prescale, postscale, number_for(process_set)),
        (host, output),
        lambda _: output.to(device) if on_gpu else output,
    )


def call_in_place(
    op: int,
    tensor: torch.Tensor,
    name: bytes | None,
    reduce_op: int = 0,
    root: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: ProcessSet = global_process_set,
    bump: bool = True,
) -> Call:
    """An operation whose result replaces the values of ``tensor``.

    ``bump``: tell autograd that the values have changed, so that a graph which still needs the old ones says so.
    """
    dtype = dtype_code(tensor)
    host, direct, _ = place(tensor)
    address = host.data_ptr()

    def finish(_: int) -> torch.Tensor:
        if not direct:
            tensor.detach().copy_(host)
        elif bump and _increment_version is not None and not tensor.is_inference():
            _increment_version(tensor)
        return tensor

    number = number_for(process_set)
    fields = (name, op, dtype, host.shape, address, address, reduce_op, root, prescale, postscale, number)
    return Call(fields, (tensor, host), finish)


def call_for_rows(
    op: int,
    tensor: torch.Tensor,
    name: bytes | None,
    result: Callable[[torch.Tensor, tuple[int, ...]], Any],
    reduce_op: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Call:
    """An operation whose output has another first dimension. ``result(output, rows)`` makes what the handle gives;
    ``rows`` says how many came from each rank (allgather, alltoall).
    """
    dtype = dtype_code(tensor)
    host, _, on_gpu = place(tensor)
    device = tensor.device

    def finish(handle: int) -> Any:
        address, length, dims, rows, owner = _ext.take_output(handle)
        output = _adopt(address, length, dims, host.dtype, owner)
        return result(output.to(device) if on_gpu else output, rows)

    number = number_for(process_set)
    fields = (name, op, dtype, host.shape, host.data_ptr(), 0, reduce_op, 0, prescale, postscale, number)
    return Call(fields, host, finish)


def name_of_backward(name: str | None) -> str | None:
    """Under which name the gradient of an operation travels."""
    return None if name is None else f"{name}.gradient"


def encode(name: str | None) -> bytes | None:
    return None if name is None else name.encode()


def _adopt(address: int, length: int, dims: tuple[int, ...], dtype: torch.dtype, owner: object) -> torch.Tensor:
    """A tensor over memory that the engine has allocated; the memory is freed with the tensor's storage."""
    if length == 0:
        return torch.empty(dims, dtype=dtype, device="cpu")
    memory = (ctypes.c_char * length).from_address(address)
    memory.owner = owner
    return torch.frombuffer(memory, dtype=dtype).view(dims)
