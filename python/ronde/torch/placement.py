# SPDX-License-Identifier: Apache-2.0
"""Where a tensor's bytes are, for an engine that wants them dense, row-major and in the memory of the host.

A dense CPU tensor is used as it is. Any other CPU tensor goes through a dense temporary. A CUDA tensor is *staged*:
copied to pinned host memory by PyTorch on its current stream, and back when the operation is complete. (Without a
GPU only the choice of that branch can be tested.)
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import torch

from ronde.core import engine
from ronde.core.ops import MOST_DIMENSIONS
from ronde.torch.dtypes import dtype_code


class Placed(NamedTuple):
    """``host`` holds the tensor's values, dense, in host memory; ``direct``: it *is* the tensor."""

    host: torch.Tensor
    direct: bool
    on_gpu: bool


class _Told:
    staging = False


def is_staged(device_type: str) -> bool:
    """Whether tensors of this kind of device are copied through host memory."""
    return device_type == "cuda"


def refuse_unsupported(tensor: torch.Tensor, what: str = "the tensor cannot be sent") -> None:
    """``ValueError`` for what no operation takes: a dtype, a layout, a device, too many dimensions. Its text begins
    with ``what``.
    """
    try:
        dtype_code(tensor)
        _refuse_place(tensor)
        if tensor.dim() > MOST_DIMENSIONS:
            raise ValueError(f"at most {MOST_DIMENSIONS} dimensions are supported, not {tensor.dim()}")
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def place(tensor: torch.Tensor) -> Placed:
    """Where the engine finds the values of ``tensor``. ``ValueError`` if it is sparse or on an unsupported device."""
    _refuse_place(tensor)
    device_type = tensor.device.type
    if is_staged(device_type):
        _tell_staging(device_type)
        host = host_like(tensor)
        host.copy_(tensor.detach())
        return Placed(host, direct=False, on_gpu=True)
    if tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj():
        return Placed(tensor, direct=True, on_gpu=False)
    return Placed(tensor.detach().resolve_conj().resolve_neg().contiguous(), direct=False, on_gpu=False)


def host_like(tensor: torch.Tensor) -> torch.Tensor:
    """An uninitialised dense tensor of the same shape and dtype in host memory, pinned if the tensor is on a GPU."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=tensor.device.type == "cuda")


def _refuse_place(tensor: torch.Tensor) -> None:
    if tensor.layout is not torch.strided:
        raise ValueError(
            f"only dense tensors are supported, not {tensor.layout}: use .to_dense() (for an embedding: sparse=False)"
        )
    if tensor.device.type != "cpu" and not is_staged(tensor.device.type):
        raise ValueError(f"tensors on device '{tensor.device}' are not supported; supported are cpu and cuda")


def _tell_staging(device_type: str) -> None:
    if _Told.staging:
        return
    _Told.staging = True
    if engine.rank() == 0:
        print(f"ronde: {device_type} tensors are copied through pinned host memory", file=sys.stderr)
