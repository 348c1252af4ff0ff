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

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ronde.core import engine
from ronde.core.handles import synchronize
from ronde.core.ops import ALLREDUCE, Average
from ronde.core.process_sets import ProcessSet
from ronde.core.window import Ready, State, StepClock, Window
from ronde.torch.compression import is_unchanged
from ronde.torch.gradient_names import gradient_name
from ronde.torch.placement import refuse_unsupported
from ronde.torch.submission import MORE, Call, call_in_place, send, send_together

_clock = StepClock()
_owners = WeakTensorKeyDictionary()  # parameter → (weak reference to the Reducer whose hooks it has, its flight)
_alive: weakref.WeakSet[Reducer] = weakref.WeakSet()


def _forget_all() -> None:
    for reducer in _alive:
        reducer.forget()
    for _, flight in _owners.values():  # also those of Reducers that are gone
        flight.handle = None


engine.at_shutdown(_forget_all)


class _Flight:
    """The reduction of one gradient, while it is under way. Outlives its Reducer: whoever takes the parameter over
    waits for it first, because the name is in flight. Must not refer to the parameter, which would never be freed.
    """

    __slots__ = ("handle", "restore")

    def __init__(self) -> None:
        self.handle: int | None = None
        self.restore: Callable[[torch.Tensor], None] | None = None

    def wait(self) -> None:
        """After Ctrl-C it is still under way and may be waited for again."""
        if self.handle is None:
            return
        try:
            reduced = synchronize(self.handle)
        except Exception:
            self.handle = self.restore = None
            raise
        restore, self.handle, self.restore = self.restore, None, None
        if restore is not None and reduced is not None:
            restore(reduced)


class _Group:
    """Parameters whose gradients are submitted together, in one order on all ranks, when the last of them is ready."""

    __slots__ = ("places", "ready", "slots")

    def __init__(self, members: Sequence[torch.nn.Parameter] = ()) -> None:
        self.places = {parameter: place for place, parameter in enumerate(members)}
        self.slots: list[_Slot] = []
        self.ready: set[_Slot] = set()

    def take_ready(self) -> list[_Slot]:
        ready = sorted(self.ready, key=lambda slot: self.places.get(slot.parameter, 0))
        self.ready.clear()
        return ready


class _Slot:
    """A parameter of a Reducer."""

    __slots__ = ("flight", "group", "hooks", "name", "node", "parameter", "taken_over")

    def __init__(self, parameter: torch.nn.Parameter, name: bytes, group: _Group) -> None:
        self.parameter = parameter
        self.name = name
        self.group = group
        self.flight = _Flight()
        self.hooks: list[Any] = []
        self.node: Any = None  # keeps the gradient accumulator, and so the hook on it, alive
        self.taken_over = False


class Reducer:
    """The gradients of one optimizer."""

    def __init__(
        self,
        named: Iterable[tuple[str, torch.nn.Parameter]],
        compression: Any,
        op: int,
        passes: int,
        prescale: float,
        postscale: float,
        process_set: ProcessSet,
        groups: Sequence[Sequence[torch.nn.Parameter]] = (),
    ) -> None:
        """``groups``: parameters whose gradients are reduced together; the others are reduced one by one."""
        self._compression = compression
        self.op = op
        self._prescale = prescale
        self._postscale = postscale
        self.process_set = process_set
        self.holds = False  # backward passes only add to the gradients
        self._slots: dict[torch.nn.Parameter, _Slot] = {}
        self._groups = {p: group for members in groups for group in (_Group(members),) for p in members}
        self.window = Window((), passes, _clock)
        self.add(list(named))
        self.window.expect_all()
        _alive.add(self)

    def add(self, named: list[tuple[str, torch.nn.Parameter]]) -> None:
        """Hooks parameters; the hooks of other Reducers on them are removed. ``ValueError``, before anything has
        changed, if the gradient of one of them cannot be sent.
        """
        for name, parameter in named:
            refuse_unsupported(parameter, f"the gradient of the parameter '{name}' cannot be reduced")
        slots = [
            _Slot(
                parameter,
                gradient_name(parameter, name, self.process_set.registration),
                self._groups.setdefault(parameter, _Group()),
            )
            for name, parameter in named
        ]
        before = [_owners[slot.parameter] for slot in slots if slot.parameter in _owners]
        _wait_for_all(flight for _, flight in before)
        for slot in slots:
            self._hook(slot)

    def _hook(self, slot: _Slot) -> None:
        parameter = slot.parameter
        owner, _ = _owners.get(parameter, (None, None))
        other = owner() if owner is not None else None
        if other is not None:
            other.give_up(parameter)
        _owners[parameter] = (weakref.ref(self), slot.flight)
        self._slots[parameter] = slot
        slot.group.slots.append(slot)
        self.window.add(slot)
        # The accumulator's own pre-hook runs before .grad is touched, and not at all under autograd.grad().
        with torch.enable_grad():
            slot.node = parameter.view_as(parameter).grad_fn.next_functions[0][0]
        slot.hooks.append(slot.node.register_prehook(lambda _: self._before_accumulation(slot)))
        slot.hooks.append(parameter.register_post_accumulate_grad_hook(lambda _: self._after_accumulation(slot)))

    def give_up(self, parameter: torch.nn.Parameter) -> None:
        """Another Reducer, which has waited for what was under way, takes the parameter over."""
        slot = self._slots[parameter]
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
            slot.flight.wait()
            slot.group.ready.discard(slot)
            window.forget(slot)

    def _raise_extra_backward(self, slot: _Slot) -> None:
        raise AssertionError(
            f"backward() was called once more than backward_passes_per_step={self.window.passes} before step() or "
            f"synchronize(): the gradient '{slot.name.decode()}' has been submitted already. Raise "
            "backward_passes_per_step, or throw the gradients away with model.zero_grad(set_to_none=True); with "
            "set_to_none=False they would still be there"
        )

    def _after_accumulation(self, slot: _Slot) -> None:
        ready = self.window.gradient_ready(slot, counts=not self.holds)
        if ready is Ready.KEEP:
            return
        slot.group.ready.add(slot)
        if len(slot.group.ready) < len(slot.group.slots):
            return
        sent = slot.group.take_ready()
        try:
            self._submit(sent, MORE if ready is Ready.SUBMIT_MORE else 0)
        except Exception:
            for each in sent:
                self.window.forget(each)
            raise
        if self.window.is_complete:
            torch.autograd.Variable._execution_engine.queue_callback(self._await_all)

    # --- submitting and waiting --------------------------------------------------------------------------------------

    def _submit(self, slots: list[_Slot], flags: int) -> None:
        calls, restores = zip(*map(self._call, slots), strict=True)
        handles = [send(calls[0], flags)] if len(calls) == 1 else send_together(calls, flags)
        for slot, handle, restore in zip(slots, handles, restores, strict=True):
            slot.flight.handle, slot.flight.restore = handle, restore

    def _call(self, slot: _Slot) -> tuple[Call, Callable[[torch.Tensor], None] | None]:
        """The reduction of a gradient, and what puts its result back if it is not reduced in place."""
        gradient = slot.parameter.grad
        compressed, context = self._compression.compress(gradient)
        scales = (self._prescale, self._postscale)
        call = call_in_place(ALLREDUCE, compressed, slot.name, self.op, 0, *scales, self.process_set, bump=False)
        if is_unchanged(self._compression, gradient, compressed):
            return call, None
        decompress = self._compression.decompress
        return call, lambda reduced: gradient.copy_(decompress(reduced, context))

    def _restart(self) -> None:
        for slot in self._slots.values():
            slot.group.ready.clear()
        self.window.restart()

    def _await_all(self) -> None:
        """Waits for everything in flight."""
        try:
            _wait_for_all(slot.flight for slot in self._slots.values())
        except Exception:
            self._restart()
            raise

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
            slot.group.ready.add(slot)
            self.window.submitted_late(slot)
        # Also what was ready in time, but not all of its group.
        for slot in self._slots.values():
            if slot.group.ready:
                self._submit(slot.group.take_ready(), MORE)
        self._await_all()
        self.window.settle()

    def adopt(self, groups: list[dict[str, Any]]) -> None:
        """Hooks the parameters that were added, or made to require a gradient, since the last look."""
        places = ((g, i, p) for g, group in enumerate(groups) for i, p in enumerate(group["params"]))
        added = [(f"noname.{g}.{i}", p) for g, i, p in places if p.requires_grad and p not in self._slots]
        if added:
            self.add(added)

    def drop(self) -> None:
        """Throws the window away: waits until the engine has let go of the gradients, and starts anew."""
        self._await_all()
        self._restart()

    def forget(self) -> None:
        """Starts anew without a wait, when the engine has been shut down: nothing is in flight any more."""
        for slot in self._slots.values():
            slot.flight.handle = None
        self._restart()


def _wait_for_all(flights: Iterable[_Flight]) -> None:
    """Raises the first error only when nothing is left behind it."""
    first: Exception | None = None
    for flight in flights:
        try:
            flight.wait()
        except Exception as error:  # it is raised below
            first = first or error
    if first is not None:
        raise first


def _unhook(slot: _Slot) -> None:
    for hook in slot.hooks:
        hook.remove()
    slot.hooks.clear()
    slot.node = None
