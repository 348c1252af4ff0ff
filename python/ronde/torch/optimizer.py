# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: any PyTorch optimizer, with the gradients of all ranks reduced before each step.

The result is an instance of a class made at run time that has the name of the wrapped optimizer's class and
inherits from it: learning-rate schedulers, checkpoints and ``isinstance`` see that optimizer. It shares the state
and the parameter groups of the one it was made from, and its ``state_dict()`` knows nothing of Ronde.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from ronde.core import engine
from ronde.core.ops import REDUCE_OP_NAMES, Average, Sum
from ronde.core.process_sets import ProcessSet, global_process_set, is_taking_part
from ronde.core.window import State
from ronde.torch.allreduce import allreduce
from ronde.torch.compression import Compression
from ronde.torch.dtypes import CODE_OF
from ronde.torch.gradient_groups import agreed, grouped
from ronde.torch.gradients import Reducer


def DistributedOptimizer(  # the name that users know
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.nn.Parameter]] | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | Sequence[Sequence[torch.Tensor]] | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.optim.Optimizer:
    """Wraps ``optimizer`` so that ``step()`` uses gradients reduced over all ranks of ``process_set``.

    ``named_parameters``: ``model.named_parameters()``. Gradients meet those of the other ranks under these names (or
    under their places in the optimizer), in the way that ``gradient_names`` describes: each rank may have more
    optimizers for other models, and an optimizer may be made anew. Names given twice, or given for some parameters
    only, are a ``ValueError``, and so is a parameter whose gradient cannot be reduced.
    ``compression``: what gradients travel as.
    ``backward_passes_per_step``: gradients are summed locally over so many ``backward()`` calls before they are
    reduced; one more before ``step()`` is an ``AssertionError``, fewer are allowed.
    ``op``: Average, Sum, Min, Max or Product. ``gradient_predivide_factor`` f, with Average only: gradients are
    divided by f before the sum and by size/f after it.

    ``groups``: parameters whose gradients are reduced together, when the last of them is ready: a number of nearly
    equal groups, or lists of parameters, each in one list; those in none are reduced one by one. All ranks group by
    name as the first rank does, which they hear when the optimizer is made. ``num_groups`` is the old way to give the
    number.

    With one rank, and on a rank that is not in the set, no hooks are made and nothing is reduced. Raises ``ValueError``
    if ``init()`` has not been called.
    """
    if op not in REDUCE_OP_NAMES:
        raise ValueError(f"unknown reduce operator {op!r}")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is meant for op=Average only")
    if backward_passes_per_step <= 0:
        raise ValueError(f"backward_passes_per_step must be 1 or more, not {backward_passes_per_step}")
    f = gradient_predivide_factor
    if not (f > 0 and math.isfinite(f) and math.isfinite(1.0 / f)):
        raise ValueError(f"gradient_predivide_factor must be a positive finite number, not {f}")
    if num_groups != 0:
        warnings.warn("the argument 'num_groups' is deprecated: use groups", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    named = _named(optimizer, named_parameters)
    parts = grouped(named, groups)
    wrapped = _rewrapped(optimizer)
    if engine.size() > 1 and is_taking_part(process_set) and process_set.size() > 1:
        reducer = Reducer(
            named, compression, op, backward_passes_per_step, 1.0 / f, f, process_set, agreed(parts, named, process_set)
        )
        wrapped._reducer = reducer
        weakref.finalize(wrapped, reducer.remove_hooks).atexit = False
    return wrapped


def _named(
    optimizer: torch.optim.Optimizer, named_parameters: Iterable[tuple[str, torch.nn.Parameter]] | None
) -> list[tuple[str, torch.nn.Parameter]]:
    """(name, parameter) for each parameter of the optimizer that requires a gradient, in the optimizer's order."""
    groups = [group["params"] for group in optimizer.param_groups]
    places = {p: f"noname.{g}.{i}" for g, group in enumerate(groups) for i, p in enumerate(group)}
    if named_parameters is not None:
        names = _checked(list(named_parameters))
        unnamed = [place for p, place in places.items() if p not in names]
        if unnamed:
            raise ValueError(
                f"named_parameters names {len(places) - len(unnamed)} of the optimizer's {len(places)} parameters; "
                "name all of them, or none"
            )
        places = {p: names[p] for p in places}
    return [(name, p) for p, name in places.items() if p.requires_grad]


def _checked(named: list[Any]) -> dict[torch.nn.Parameter, str]:
    if any(not isinstance(entry, tuple) for entry in named):
        raise ValueError("named_parameters must be tuples (name, parameter), as model.named_parameters() gives")
    seen: set[str] = set()
    twice = {name for name, _ in named if name in seen or seen.add(name)}
    if twice:
        raise ValueError(f"named_parameters gives a name twice: {', '.join(sorted(twice))}")
    return {p: name for name, p in named}


def _rewrapped(optimizer: torch.optim.Optimizer) -> Any:
    base = type(optimizer)
    if issubclass(base, _Distributed):  # an optimizer that is wrapped already is wrapped anew, not twice
        base = base.__mro__[2]
    wrapped = object.__new__(_class_for(base))
    attributes = dict(optimizer.__dict__)
    attributes.pop("_reducer", None)
    attributes.pop("step", None)  # a scheduler's wrapper around the step of the other object
    wrapped.__dict__.update(attributes)
    wrapped._should_synchronize = True
    wrapped._synchronized = False
    return wrapped


def _loss_of_all(loss: Any, op: int, process_set: ProcessSet) -> Any:
    if isinstance(loss, float):
        return allreduce(torch.tensor(loss, dtype=torch.float64, device="cpu"), op=op, process_set=process_set).item()
    is_one = isinstance(loss, torch.Tensor) and loss.dim() == 0
    if is_one and loss.dtype.is_floating_point and loss.dtype in CODE_OF:
        return allreduce(loss.detach(), op=op, process_set=process_set)
    return loss


@functools.cache
def _class_for(base: type) -> type:
    body = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    return type(base.__name__, (_Distributed, base), body)


class _Distributed:
    """What a distributed optimizer does differently. Stands before the optimizer's class; has no ``__init__``."""

    _reducer: Reducer | None = None

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The parameter groups of the optimizer."""
        # torch.amp.GradScaler reads the gradients through here, before step(): they must be reduced by then, and it
        # must find the same infinities on all ranks.
        if self._reducer is not None and sys._getframe(1).f_code.co_name == "_unscale_grads_":
            self._reducer.finish(self.__dict__["param_groups"])
        return self.__dict__["param_groups"]

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.__dict__["param_groups"] = groups

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Changes after how many backward passes gradients are reduced; a window that has begun starts anew."""
        if self._reducer is not None:
            self._reducer.drop()
            self._reducer.window.set_passes(passes)
        elif passes <= 0:
            raise ValueError(f"backward_passes_per_step must be 1 or more, not {passes}")

    def synchronize(self) -> None:
        """Waits until all gradients are reduced and in ``.grad``. Then change them as you like and step with
        ``with optimizer.skip_synchronize(): optimizer.step()``."""
        if self._reducer is not None:
            self._reducer.finish(self.param_groups)
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within it ``step()`` takes the gradients as they are."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it any number of backward passes only add to the gradients. They are reduced with those of the next
        backward pass outside of it, or by ``step()``.
        """
        if self._reducer is None:
            yield
            return
        before, self._reducer.holds = self._reducer.holds, True
        try:
            yield
        finally:
            self._reducer.holds = before

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Reduces the gradients and lets the optimizer step.

        A ``closure``'s gradients are reduced each time it is called, and so is the loss that it returns (a float or a
        tensor without dimensions): to the ranks' Sum if gradients are summed, else to their Average. An optimizer
        that looks at the loss, as LBFGS does, so decides alike on all ranks. Other results are handed on as they are.
        """
        if self._should_synchronize:
            if self._synchronized and not self._is_open():
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() after optimizer.synchronize(): the "
                    "gradients are reduced already and are not reduced again; say so with "
                    "'with optimizer.skip_synchronize(): optimizer.step()'",
                    stacklevel=2,
                )
            elif closure is None or self._is_open():
                self.synchronize()
        elif self._is_open():
            raise AssertionError(
                "step() within skip_synchronize(), but the gradients are not reduced: call synchronize()"
            )
        self._synchronized = False
        result = super().step() if closure is None else super().step(self._synchronizing(closure))
        if self._reducer is not None:
            self._reducer.window.stepped()
        return result

    # The optimizer's own step, called from this one, runs the step hooks that users have registered: once is enough.
    step.hooked = True

    def _is_open(self) -> bool:
        return self._reducer is not None and self._reducer.window.state is State.OPEN

    def _synchronizing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def run_and_reduce() -> Any:
            loss = closure()
            if self._reducer is None:
                return loss
            self._reducer.finish(self.param_groups)
            return _loss_of_all(loss, Sum if self._reducer.op == Sum else Average, self._reducer.process_set)

        return run_and_reduce

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Resets the gradients. ``AssertionError`` between ``backward()`` and ``step()`` or ``synchronize()``: the
        reduction is under way, and gradients would be lost on one rank only.
        """
        if self._reducer is not None:
            if self._is_open() and not self._reducer.window.is_abandoned:
                raise AssertionError(
                    "zero_grad() was called after backward() but before step() or synchronize(): the gradients are "
                    "being reduced. Call step() or synchronize() first"
                )
            self._reducer.drop()
        self._synchronized = False
        super().zero_grad(*args, **kwargs)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the optimizer's state. Gradients that are under way are waited for and not used."""
        if self._reducer is not None:
            self._reducer.drop()
        self._synchronized = False
        super().load_state_dict(state_dict)

    def __reduce_ex__(self, protocol: int) -> Any:
        """A copy would reduce nothing and let the ranks drift apart unnoticed."""
        raise TypeError(
            "a distributed optimizer cannot be copied or pickled: save and load its state_dict(), and wrap a new "
            "optimizer with DistributedOptimizer() where one is needed"
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group; its gradients are reduced like the others."""
        super().add_param_group(param_group)
        if self._reducer is None:
            return
        try:
            self._reducer.adopt(self.param_groups)
        except ValueError:
            self.param_groups.pop()
            raise
