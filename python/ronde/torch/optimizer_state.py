# SPDX-License-Identifier: Apache-2.0
"""Giving all ranks the optimizer state of one.

Idea. The root describes its state: the same nested dicts with a *hole* in the place of each tensor. The description
travels as one pickle, the tensors follow as broadcasts. The others write what arrives into what they have: the
dicts of the groups and of the state, and tensors of the right shape and dtype, stay the objects that they are,
because learning-rate schedulers hold them, and so does the plain optimizer that a distributed one was made from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ronde.core import engine
from ronde.core.errors import HorovodInternalError
from ronde.core.objects import allgather_object, broadcast_object
from ronde.core.process_sets import ProcessSet, global_process_set
from ronde.torch.broadcast import broadcast_all_
from ronde.torch.placement import refuse_unsupported


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: Any = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Gives every rank of the set the root's optimizer state: options of the parameter groups, step counts, moments.

    The state is sent as it is, dtypes included, and no step is taken, so that after a resume on the root alone all
    ranks equal the root. It is written in place: schedulers, and the optimizer that this one was made from, see it.
    May be called at any time, also between ``backward()`` and ``step()``. An optimizer without state only gets the
    root's options. ``model`` is accepted for compatibility and not needed.

    ``ValueError`` for LBFGS, whose state belongs to no single parameter, and on a rank whose parameter groups are of
    other sizes than the root's; the other ranks then raise ``HorovodInternalError``, and nothing has changed.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state does not support LBFGS: its state belongs to no single parameter")
    is_root = engine.rank() == root_rank
    sender = _Sender()
    state = broadcast_object(sender.describe(optimizer) if is_root else None, root_rank, process_set=process_set)
    receiver = _Receiver()
    trouble = None if is_root else _trouble(lambda: receiver.prepare(optimizer, state))
    _agree(trouble, root_rank, process_set)
    tensors = sender.tensors if is_root else receiver.tensors
    named = [(None, tensors[number].detach()) for number in range(len(tensors))]
    broadcast_all_(named, root_rank, bump=False, process_set=process_set)
    if not is_root:
        receiver.write(optimizer)


class _Hole(NamedTuple):
    """A tensor of the root's state."""

    number: int  # in the order in which the tensors travel; −1: this one is here, for no broadcast can carry it
    shape: tuple[int, ...]
    dtype: torch.dtype
    on_host: bool  # although the parameter is not
    tensor: torch.Tensor | None


class _State(NamedTuple):
    """What the root sends. Tensors are holes."""

    sizes: list[int]  # of the groups
    groups: list[dict[str, Any]]  # without their parameters
    of_parameters: dict[int, Any]  # by the place of the parameter
    others: dict[Any, Any]


class _Sender:
    """Takes the tensors out of a state."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self._holes: dict[int, _Hole] = {}  # by the identity of the tensor: one that stands in two places travels once

    def describe(self, optimizer: torch.optim.Optimizer) -> _State:
        places = _places(optimizer)
        of_parameters, others = {}, {}
        for key, value in optimizer.state.items():
            if not isinstance(key, torch.Tensor):
                others[key] = self._take_out(value, torch.device("cpu"))
            elif key in places:
                of_parameters[places[key]] = self._take_out(value, key.device)
        groups = [self._take_out(_options(group), _device_of(group)) for group in optimizer.param_groups]
        return _State(_sizes(optimizer), groups, of_parameters, others)

    def _take_out(self, value: Any, home: torch.device) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._holes:
                self._holes[id(value)] = self._hole(value, home)
            return self._holes[id(value)]
        if isinstance(value, dict):
            return {key: self._take_out(item, home) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self._take_out(item, home) for item in value)
        return value

    def _hole(self, tensor: torch.Tensor, home: torch.device) -> _Hole:
        on_host = tensor.device.type == "cpu" and home.type != "cpu"
        if _trouble(lambda: refuse_unsupported(tensor)):
            return _Hole(-1, tuple(tensor.shape), tensor.dtype, on_host, tensor.detach().cpu())
        self.tensors.append(tensor)
        return _Hole(len(self.tensors) - 1, tuple(tensor.shape), tensor.dtype, on_host, None)


class _Receiver:
    """Fills the holes, and then puts the values in their places."""

    def __init__(self) -> None:
        self.tensors: dict[int, torch.Tensor] = {}  # where each that travels is received
        self._used: set[int] = set()
        self._state: _State | None = None  # without holes

    def prepare(self, optimizer: torch.optim.Optimizer, state: _State) -> None:
        """Chooses where the tensors go; changes nothing. ``ValueError`` if the state does not fit the optimizer."""
        if _sizes(optimizer) != state.sizes:
            raise ValueError(
                f"the parameter groups of this rank's optimizer have {_sizes(optimizer)} parameters, those of the "
                f"root's have {state.sizes}"
            )
        parameters = list(_places(optimizer))
        of_parameters = {
            place: self._fill(value, optimizer.state.get(parameters[place]), parameters[place].device)
            for place, value in state.of_parameters.items()
        }
        groups = [
            self._fill(options, group, _device_of(group))
            for options, group in zip(state.groups, optimizer.param_groups)
        ]
        host = torch.device("cpu")
        others = {key: self._fill(value, optimizer.state.get(key), host) for key, value in state.others.items()}
        for tensor in self.tensors.values():
            refuse_unsupported(tensor)
        self._state = _State(state.sizes, groups, of_parameters, others)

    def write(self, optimizer: torch.optim.Optimizer) -> None:
        state = self._state
        for group, options in zip(optimizer.param_groups, state.groups):
            kept = {"params": group["params"]}
            if "param_names" in group:
                kept["param_names"] = group["param_names"]
            _replace(group, {**kept, **options})
        places = _places(optimizer)
        values = {parameter: state.of_parameters[p] for parameter, p in places.items() if p in state.of_parameters}
        values.update(state.others)
        foreign = {key: value for key, value in optimizer.state.items() if _is_foreign(key, places)}
        for key, value in values.items():
            here = optimizer.state.get(key)
            if isinstance(here, dict) and isinstance(value, dict):
                _replace(here, value)
                values[key] = here
        _replace(optimizer.state, {**values, **foreign})

    def _fill(self, value: Any, here: Any, home: torch.device) -> Any:
        """``value`` with tensors for its holes; ``here`` is what this rank has in its place."""
        if isinstance(value, _Hole):
            return self._tensor_for(value, here, home)
        if isinstance(value, dict):
            known = here if isinstance(here, dict) else {}
            return {key: self._fill(item, known.get(key), home) for key, item in value.items()}
        if type(value) in (list, tuple):
            known = here if type(here) is type(value) and len(here) == len(value) else [None] * len(value)
            return type(value)(self._fill(item, one, home) for item, one in zip(value, known))
        return value

    def _tensor_for(self, hole: _Hole, here: Any, home: torch.device) -> torch.Tensor:
        home = torch.device("cpu") if hole.on_host else home
        if hole.tensor is not None:
            return hole.tensor.to(home)
        if hole.number not in self.tensors:
            fits = isinstance(here, torch.Tensor) and (tuple(here.shape), here.dtype) == (hole.shape, hole.dtype)
            if not fits or id(here) in self._used:  # one of this rank's tensors cannot take two of the root's
                here = torch.empty(hole.shape, dtype=hole.dtype, device=home)
            self._used.add(id(here))
            self.tensors[hole.number] = here
        return self.tensors[hole.number]


def _agree(trouble: Exception | None, root_rank: int, process_set: ProcessSet) -> None:
    """Raises on all ranks if one of them has trouble."""
    text = None if trouble is None else f"{type(trouble).__name__}: {trouble}"
    told = allgather_object(text, process_set=process_set)
    if trouble is not None:
        raise trouble
    for rank, text in zip(process_set.ranks, told, strict=True):
        if text is not None:
            raise HorovodInternalError(f"rank {rank} cannot take the optimizer state of rank {root_rank}: {text}")


def _trouble(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:  # the caller raises it, or acts on it
        return error
    return None


def _sizes(optimizer: torch.optim.Optimizer) -> list[int]:
    return [len(group["params"]) for group in optimizer.param_groups]


def _places(optimizer: torch.optim.Optimizer) -> dict[torch.Tensor, int]:
    """The optimizer's parameters, in order, and their numbers."""
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return {parameter: place for place, parameter in enumerate(dict.fromkeys(parameters))}


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != "params"}


def _device_of(group: dict[str, Any]) -> torch.device:
    return group["params"][0].device if group["params"] else torch.device("cpu")


def _is_foreign(key: Any, places: dict[torch.Tensor, int]) -> bool:
    """Whether a key of the state is a parameter that is in no group."""
    return isinstance(key, torch.Tensor) and key not in places


def _replace(target: dict[Any, Any], content: dict[Any, Any]) -> None:
    """Gives a dict another content; the dict stays the same object."""
    target.clear()
    target.update(content)
