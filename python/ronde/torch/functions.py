# SPDX-License-Identifier: Apache-2.0
"""Bringing all ranks to the parameters of one, and Python objects between ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ronde.core.objects import allgather_object as _allgather_object
from ronde.core.objects import broadcast_object as _broadcast_object
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch.broadcast import broadcast_all_
from ronde.torch.submission import encode


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The root's object on every rank: pickled (with cloudpickle where it is installed), of any size."""
    return _broadcast_object(obj, root_rank, name, process_set)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The objects of all ranks, pickled, in rank order."""
    return _allgather_object(obj, name, process_set)


def broadcast_parameters(params: Any, root_rank: int, process_set: ProcessSet = global_process_set) -> None:
    """Replaces parameters and buffers by the root's, in place.

    ``params``: a ``state_dict()`` (taken in the order of its keys), or an iterable of tensors or of (name, tensor), as
    ``named_parameters()`` gives. Anything else is a ``ValueError``.
    """
    named = [(encode(name), tensor) for name, tensor in _named_tensors(params)]
    broadcast_all_(named, root_rank, process_set=process_set)


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
