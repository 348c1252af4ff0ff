# SPDX-License-Identifier: Apache-2.0
"""Bringing all ranks to the state of one: parameters, optimizer state, Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from ronde.core import engine
from ronde.core.objects import allgather_object as _allgather_object
from ronde.core.objects import broadcast_object as _broadcast_object
from ronde.torch.broadcast import broadcast_all_
from ronde.torch.dtypes import CODE_OF
from ronde.torch.submission import encode


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None) -> Any:
    """The root's object on every rank: pickled (with cloudpickle where it is installed), of any size."""
    return _broadcast_object(obj, root_rank, name)


def allgather_object(obj: Any, name: str | None = None) -> list[Any]:
    """The objects of all ranks, pickled, in rank order."""
    return _allgather_object(obj, name)


def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Replaces parameters and buffers by the root's, in place.

    ``params``: a ``state_dict()`` (taken in the order of its keys), or an iterable of tensors or of (name, tensor), as
    ``named_parameters()`` gives. Anything else is a ``ValueError``.
    """
    broadcast_all_([(encode(name), tensor) for name, tensor in _named_tensors(params)], root_rank)


def _named_tensors(params: Any) -> list[tuple[str | None, torch.Tensor]]:
    if isinstance(params, dict):
        entries: list[Any] = sorted(params.items())
    elif isinstance(params, Iterable) and not isinstance(params, (str, bytes, torch.Tensor)):
        entries = [entry if isinstance(entry, tuple) else (None, entry) for entry in params]
    else:
        raise ValueError(f"broadcast_parameters takes a state_dict or a list of tensors, not {type(params).__name__}")
    named = []
    for name, tensor in entries:
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"broadcast_parameters takes tensors, but {name!r} is a {type(tensor).__name__}; an optimizer's state "
                "goes through broadcast_optimizer_state, other objects through broadcast_object"
            )
        named.append((None if name is None else f"parameter.{name}", tensor))
    return named


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, model: Any = None) -> None:
    """Gives every rank the root's optimizer state: options of the parameter groups, step counts, moments.

    The state is sent as it is and no step is taken, so that after a resume on the root alone all ranks equal the
    root. An optimizer without state only gets the root's options. ``model`` is accepted for compatibility and not
    needed. LBFGS, whose state belongs to no single parameter, is a ``ValueError``.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state does not support LBFGS: its state belongs to no single parameter")
    is_root = engine.rank() == root_rank
    tensors: list[torch.Tensor] = []
    skeleton = _map_tensors(optimizer.state_dict(), lambda tensor: _take_out(tensor, tensors)) if is_root else None
    skeleton = _broadcast_object(skeleton, root_rank)
    if not is_root:
        state = _map_tensors(skeleton, lambda tensor: tensor, lambda hole: _fill(hole, tensors))
    broadcast_all_([(None, tensor) for tensor in tensors], root_rank, bump=False)
    if not is_root:
        optimizer.load_state_dict(state)


class _Hole(NamedTuple):
    """Where a tensor has been taken out of a state."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def _take_out(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> Any:
    if tensor.dtype not in CODE_OF or tensor.layout is not torch.strided:
        return tensor  # it travels in the pickle
    tensors.append(tensor.detach())
    return _Hole(tuple(tensor.shape), tensor.dtype)


def _fill(hole: _Hole, tensors: list[torch.Tensor]) -> torch.Tensor:
    tensors.append(torch.empty(hole.shape, dtype=hole.dtype))
    return tensors[-1]


def _map_tensors(value: Any, of_tensor: Callable, of_hole: Callable | None = None) -> Any:
    """A copy of nested dicts, lists and tuples with tensors and holes replaced, in one order on all ranks."""
    if isinstance(value, torch.Tensor):
        return of_tensor(value)
    if isinstance(value, _Hole):
        return of_hole(value) if of_hole else value
    if isinstance(value, dict):
        return {key: _map_tensors(item, of_tensor, of_hole) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_map_tensors(item, of_tensor, of_hole) for item in value)
    return value
