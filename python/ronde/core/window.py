# SPDX-License-Identifier: Apache-2.0
"""The bookkeeping of one optimizer's gradients between two steps. It knows no framework and starts nothing.

A *window* is what lies between two steps. In it the gradient of each parameter becomes ready `passes` times
(gradients are summed locally), is then submitted, and is complete when the optimizer has synchronized. States:

    FRESH    nothing happened since the last step
    OPEN     a backward pass has made gradients ready
    SETTLED  all gradients are reduced and in place; step() is what comes next

A backward pass for one model may run through the parameters of another, as a generator's does through its
discriminator. The other optimizer's window is then opened although nobody will step it: once a different optimizer
has stepped, an open window is *abandoned*, and its gradients may be zeroed or computed anew.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable


class State(enum.Enum):
    FRESH = 0
    OPEN = 1
    SETTLED = 2


class Ready(enum.Enum):
    """What to do with a gradient that has become ready."""

    KEEP = 0  # more passes follow
    SUBMIT_MORE = 1  # submit, further submits of this step follow
    SUBMIT_LAST = 2  # submit; with it all that became ready in the last step have


class StepClock:
    """Counts the steps of all distributed optimizers of the process."""

    def __init__(self) -> None:
        self.steps = 0


class Window:
    """Keys are whatever names a parameter; they are few and known, and may be added later."""

    def __init__(self, keys: Iterable[Hashable], passes: int, clock: StepClock) -> None:
        self._clock = clock
        self._left: dict[Hashable, int] = dict.fromkeys(keys, 0)
        self._expected: set[Hashable] = set(self._left)  # became ready in the last step
        self._ready: set[Hashable] = set()  # became ready in this one
        self._submitted: set[Hashable] = set()
        self._opened_at = 0
        self.set_passes(passes)

    def set_passes(self, passes: int) -> None:
        """Backward passes per step, ≥ 1 (else ``ValueError``). Starts the window anew."""
        if passes <= 0:
            raise ValueError(f"backward_passes_per_step must be 1 or more, not {passes}")
        self.passes = passes
        self.restart()

    def restart(self) -> None:
        """Back to FRESH, without a step: what became ready is forgotten."""
        self.state = State.FRESH
        self._left = dict.fromkeys(self._left, self.passes)
        self._submitted.clear()
        self._ready.clear()
        self._awaited = set(self._expected)

    def add(self, key: Hashable) -> None:
        """A parameter that was not there before."""
        self._left[key] = self.passes

    def expect_all(self) -> None:
        """Before the first step: every parameter is expected to become ready."""
        self._expected = set(self._left)
        self.restart()

    def is_submitted(self, key: Hashable) -> bool:
        return key in self._submitted

    @property
    def is_abandoned(self) -> bool:
        """Open, but another optimizer has stepped since: the gradients were by-products of its backward pass."""
        return self.state is State.OPEN and self._clock.steps != self._opened_at

    @property
    def is_complete(self) -> bool:
        """Every parameter has been submitted."""
        return len(self._submitted) == len(self._left)

    def missing(self) -> list[Hashable]:
        """What has not been submitted in this window, in the order of the parameters."""
        return [key for key in self._left if key not in self._submitted]

    def forget(self, key: Hashable) -> None:
        """The gradient of ``key`` was thrown away by the user: it may become ready again."""
        self._submitted.discard(key)
        self._left[key] = self.passes

    def gradient_ready(self, key: Hashable, counts: bool = True) -> Ready:
        """A backward pass has added to the gradient of ``key``. One that does not count only opens the window."""
        if self.state is State.SETTLED:
            self.restart()
        if self.state is State.FRESH:
            self.state = State.OPEN
            self._opened_at = self._clock.steps
        if not counts:
            return Ready.KEEP
        self._left[key] -= 1
        if self._left[key] > 0:
            return Ready.KEEP
        self._ready.add(key)
        self._submitted.add(key)
        completes = self._awaited == {key}
        self._awaited.discard(key)
        return Ready.SUBMIT_LAST if completes else Ready.SUBMIT_MORE

    def submitted_late(self, key: Hashable) -> None:
        """``key`` was submitted because the step needs it, not because a backward pass made it ready."""
        self._submitted.add(key)

    def settle(self) -> None:
        """All gradients are reduced and in place."""
        self.state = State.SETTLED

    def stepped(self) -> None:
        """The optimizer has stepped: what became ready is what is expected in the next window."""
        if self._ready:
            self._expected = set(self._ready)
        self._clock.steps += 1
        self.restart()
