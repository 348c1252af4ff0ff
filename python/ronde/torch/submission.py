# SPDX-License-Identifier: Apache-2.0
"""From a torch tensor to a handle: the one place where tensors meet the engine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch

from ronde import _ext
from ronde.core.handles import remember
from ronde.core.ops import ALLGATHER
from ronde.torch.dtypes import dtype_code
from ronde.torch.placement import host_like, place

MORE: int = _ext.MORE

_increment_version = getattr(torch.autograd.graph, "increment_version", None)


def require_tensor(tensor: object, function: str) -> None:
    """``TypeError`` naming the function and the type given if that is no tensor. What users call begins with it."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{function}: the argument 'tensor' must be a torch.Tensor, not {type(tensor).__name__}")


def submit(
    op: int,
    tensor: torch.Tensor,
    name: bytes | None,
    reduce_op: int = 0,
    root: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    flags: int = 0,
) -> int:
    """Submits an operation whose result is a new dense tensor on the device of ``tensor``. Returns the handle."""
    dtype = dtype_code(tensor)
    host, _, on_gpu = place(tensor)
    output = host_like(tensor)
    handle = _ext.submit(
        name,
        op,
        dtype,
        host.shape,
        host.data_ptr(),
        output.data_ptr(),
        reduce_op,
        root,
        prescale,
        postscale,
        flags,
    )
    device = tensor.device
    return remember(handle, (host, output), lambda: output.to(device) if on_gpu else output)


def submit_in_place(
    op: int,
    tensor: torch.Tensor,
    name: bytes | None,
    reduce_op: int = 0,
    root: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    flags: int = 0,
    bump: bool = True,
) -> int:
    """Submits an operation whose result replaces the values of ``tensor``. Returns the handle.

    ``bump``: tell autograd that the values have changed, so that a graph which still needs the old ones says so.
    """
    dtype = dtype_code(tensor)
    host, direct, _ = place(tensor)
    address = host.data_ptr()
    handle = _ext.submit(name, op, dtype, host.shape, address, address, reduce_op, root, prescale, postscale, flags)

    def finish() -> torch.Tensor:
        if not direct:
            tensor.detach().copy_(host)
        elif bump and _increment_version is not None and not tensor.is_inference():
            _increment_version(tensor)
        return tensor

    return remember(handle, (tensor, host), finish)


def submit_allgather(
    tensor: torch.Tensor, name: bytes | None, result: Callable[[torch.Tensor, tuple[int, ...]], object]
) -> int:
    """Submits an allgather. ``result(gathered, rows)`` makes what the handle gives; ``rows`` is each rank's first
    dimension.
    """
    dtype = dtype_code(tensor)
    host, _, on_gpu = place(tensor)
    handle = _ext.submit(name, ALLGATHER, dtype, host.shape, host.data_ptr(), 0, 0, 0, 1.0, 1.0, 0)
    device = tensor.device

    def finish() -> object:
        address, length, dims, rows, owner = _ext.take_output(handle)
        gathered = _adopt(address, length, dims, host.dtype, owner)
        return result(gathered.to(device) if on_gpu else gathered, rows)

    return remember(handle, host, finish)


def encode(name: str | None) -> bytes | None:
    return None if name is None else name.encode()


def _adopt(address: int, length: int, dims: tuple[int, ...], dtype: torch.dtype, owner: object) -> torch.Tensor:
    """A tensor over memory that the engine has allocated; the memory is freed with the tensor's storage."""
    if length == 0:
        return torch.empty(dims, dtype=dtype, device="cpu")
    memory = (ctypes.c_char * length).from_address(address)
    memory.owner = owner
    return torch.frombuffer(memory, dtype=dtype).view(dims)
