# SPDX-License-Identifier: Apache-2.0
"""Reducing the gradients of one optimizer: hooks on its parameters, submissions, and the wait.

Idea. A hook on each parameter fires when a backward pass has finished its gradient, and submits an allreduce of it
in place. Communication so overlaps with the rest of the backward pass. When the last parameter has been submitted,
the end of that backward pass waits: from then on ``.grad`` holds the reduced gradients, so that clipping and
unscaling see them. Parameters that got no gradient are submitted (as zeros) by ``finish``, which ``step()`` and
``synchronize()`` call, so that ranks with different graphs stay in step.

Thread: hooks run in the thread that autograd runs them in (on CPU the caller of ``backward``); a Reducer is not for two
threads at once. Lifetime: a hook refers to its Reducer; ``remove_hooks`` (when the optimizer is dropped, or when
another one takes a parameter over) breaks that circle.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ronde.core import engine
from ronde.core.handles import synchronize
from ronde.core.ops import ALLREDUCE, Average
from ronde.core.window import Ready, State, StepClock, Window
from ronde.torch.compression import is_unchanged
from ronde.torch.dtypes import dtype_code
from ronde.torch.submission import MORE, submit_in_place

_clock = StepClock()
_instances = itertools.count()
_owners = WeakTensorKeyDictionary()  # parameter → weak reference to the Reducer whose hooks it has
_alive: weakref.WeakSet[Reducer] = weakref.WeakSet()


def _forget_all() -> None:
    for reducer in _alive:
        reducer.forget()


engine.at_shutdown(_forget_all)


class _Slot:
    """A parameter, and what is in flight for it."""

    __slots__ = ("handle", "hooks", "name", "node", "parameter", "restore", "taken_over")

    def __init__(self, parameter: torch.nn.Parameter, name: str) -> None:
        self.parameter = parameter
        self.name = name.encode()
        self.handle: int | None = None
        self.restore: Callable[[torch.Tensor], None] | None = None
        self.hooks: list[Any] = []
        self.node: Any = None  # keeps the gradient accumulator, and so the hook on it, alive
        self.taken_over = False


class Reducer:
    """The gradients of one optimizer. Names are unique by construction: they begin with the number of the instance."""

    def __init__(
        self,
        named: Iterable[tuple[str, torch.nn.Parameter]],
        compression: Any,
        op: int,
        passes: int,
        prescale: float,
        postscale: float,
    ) -> None:
        self._instance = next(_instances)
        self._compression = compression
        self.op = op
        self._prescale = prescale
        self._postscale = postscale
        self._slots: dict[torch.nn.Parameter, _Slot] = {}
        self.window = Window((), passes, _clock)
        for name, parameter in named:
            self.add(parameter, name)
        self.window.expect_all()
        _alive.add(self)

    def add(self, parameter: torch.nn.Parameter, name: str) -> None:
        """Hooks a parameter. ``ValueError`` if its dtype is not supported. Another Reducer's hooks on it are
        removed.
        """
        dtype_code(parameter)
        owner = _owners.get(parameter)
        other = owner() if owner is not None else None
        if other is not None:
            other.give_up(parameter)
        _owners[parameter] = weakref.ref(self)
        slot = _Slot(parameter, f"gradient.{self._instance}.{name}")
        self._slots[parameter] = slot
        self.window.add(slot)
        # The accumulator's own pre-hook runs before .grad is touched, and not at all under autograd.grad().
        with torch.enable_grad():
            slot.node = parameter.view_as(parameter).grad_fn.next_functions[0][0]
        slot.hooks.append(slot.node.register_prehook(lambda _: self._before_accumulation(slot)))
        slot.hooks.append(parameter.register_post_accumulate_grad_hook(lambda _: self._after_accumulation(slot)))

    def __contains__(self, parameter: torch.nn.Parameter) -> bool:
        return parameter in self._slots

    def give_up(self, parameter: torch.nn.Parameter) -> None:
        """Another optimizer takes the parameter over."""
        slot = self._slots[parameter]
        self._await(slot)
        slot.taken_over = True
        _unhook(slot)

    def remove_hooks(self) -> None:
        """The optimizer is gone: its parameters are nobody's."""
        for slot in self._slots.values():
            _unhook(slot)

    # --- hooks -------------------------------------------------------------------------------------------------------

    def _before_accumulation(self, slot: _Slot) -> None:
        window = self.window
        parameter = slot.parameter
        kept = parameter.grad is not None  # the reduced gradient is still there, and would be added to
        if window.is_abandoned:
            if kept and self.op != Average and any(map(window.is_submitted, self._slots.values())):
                self._raise_extra_backward(slot)
            self.drop()
        elif window.state is State.OPEN and window.is_submitted(slot):
            if kept:
                self._raise_extra_backward(slot)
            self._await(slot)
            window.forget(slot)

    def _raise_extra_backward(self, slot: _Slot) -> None:
        raise AssertionError(
            f"backward() was called once more than backward_passes_per_step={self.window.passes} before step() or "
            f"synchronize(): the gradient '{slot.name.decode()}' has been submitted already. Raise "
            "backward_passes_per_step, or call zero_grad() on the model to throw the gradients away"
        )

    def _after_accumulation(self, slot: _Slot) -> None:
        ready = self.window.gradient_ready(slot)
        if ready is Ready.KEEP:
            return
        try:
            self._submit(slot, MORE if ready is Ready.SUBMIT_MORE else 0)
        except Exception:
            self.window.forget(slot)
            raise
        if self.window.is_complete:
            torch.autograd.Variable._execution_engine.queue_callback(self._await_all)

    # --- submitting and waiting --------------------------------------------------------------------------------------

    def _submit(self, slot: _Slot, flags: int) -> None:
        gradient = slot.parameter.grad
        compressed, context = self._compression.compress(gradient)
        slot.handle = submit_in_place(
            ALLREDUCE, compressed, slot.name, self.op, 0, self._prescale, self._postscale, flags, bump=False
        )
        slot.restore = None
        if not is_unchanged(self._compression, gradient, compressed):
            decompress = self._compression.decompress
            slot.restore = lambda reduced: gradient.copy_(decompress(reduced, context))

    def _await(self, slot: _Slot) -> None:
        """Waits for what is in flight for the parameter. After Ctrl-C it is still in flight and may be waited for
        again.
        """
        if slot.handle is None:
            return
        try:
            reduced = synchronize(slot.handle)
        except Exception:
            slot.handle = None
            raise
        slot.handle = None
        if slot.restore is not None and reduced is not None:
            slot.restore(reduced)

    def _await_all(self) -> None:
        """Waits for everything in flight, and raises the first error only then: nothing of ours is left behind it."""
        first: Exception | None = None
        for slot in self._slots.values():
            try:
                self._await(slot)
            except Exception as error:  # it is raised below
                first = first or error
        if first is not None:
            self.window.restart()
            raise first

    def finish(self, groups: list[dict[str, Any]]) -> None:
        """Reduces what has not been reduced in this window and waits for all of it: ``.grad`` is then the same on
        all ranks.

        ``groups`` are the optimizer's parameter groups; parameters in them that are new get their hooks here.
        """
        if self.window.state is State.SETTLED:
            return
        self.adopt(groups)
        for slot in self.window.missing():
            parameter = slot.parameter
            if slot.taken_over:
                raise RuntimeError(
                    f"the parameter of '{slot.name.decode()}' belongs to a DistributedOptimizer that was made later; "
                    "step that one, or make one optimizer for all of them"
                )
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self._submit(slot, MORE)
            self.window.submitted_late(slot)
        self._await_all()
        self.window.settle()

    def adopt(self, groups: list[dict[str, Any]]) -> None:
        """Hooks the parameters that were added, or made to require a gradient, since the last look."""
        for g, group in enumerate(groups):
            for i, parameter in enumerate(group["params"]):
                if parameter.requires_grad and parameter not in self._slots:
                    self.add(parameter, f"noname.{g}.{i}")

    def drop(self) -> None:
        """Throws the window away: waits until the engine has let go of the gradients, and starts anew."""
        self._await_all()
        self.window.restart()

    def forget(self) -> None:
        """Starts anew without a wait, when the engine has been shut down: nothing is in flight any more."""
        for slot in self._slots.values():
            slot.handle = None
        self.window.restart()


def _unhook(slot: _Slot) -> None:
    for hook in slot.hooks:
        hook.remove()
    slot.hooks.clear()
    slot.node = None
