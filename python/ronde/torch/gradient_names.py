# SPDX-License-Identifier: Apache-2.0
"""Under which names gradients meet those of the other ranks.

Rule. The gradient of a parameter that is called ``w`` is ``gradient.w``. If other parameters (other tensor objects)
were called ``w`` before in this process, as in the second network of a GAN, it is ``gradient.w#2``, ``gradient.w#3``,
… in the order in which they were first given to an optimizer. A parameter keeps its name when another optimizer
takes it over. Each process set counts for itself, since other ranks know nothing of what its members wrap for it.

So names depend on the order in which a program wraps parameters that are called the same, and on nothing else: not
on how many optimizers there are, nor on what has been collected already, which differs between ranks. An optimizer
made anew each epoch uses the same names again, and one more optimizer on one rank only disturbs the others only if
it calls other parameters the same before they are wrapped.
"""

from __future__ import annotations

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ronde.core.ops import LONGEST_NAME

_names = WeakTensorKeyDictionary()  # parameter → {(registration, what it is called): its name}
# Registration → {name: how many parameters wanted it}. Never shrinks: that would depend on collection.
_given: dict[int, dict[str, int]] = {}


def gradient_name(parameter: torch.nn.Parameter, called: str, registration: int = 0) -> bytes:
    """The name of the parameter's gradient in the process set of that registration. ``ValueError`` if it cannot be
    one.
    """
    known = _names.setdefault(parameter, {})
    key = (registration, called)
    if key not in known:
        known[key] = _unused(f"gradient.{called}", _given.setdefault(registration, {}))
    return _encoded(known[key])


def _unused(name: str, given: dict[str, int]) -> str:
    while True:
        number = given[name] = given.get(name, 0) + 1
        if number == 1:
            return name
        numbered = f"{name}#{number}"
        if numbered not in given:
            given[numbered] = 1
            return numbered


def _encoded(name: str) -> bytes:
    encoded = name.encode()
    if len(encoded) > LONGEST_NAME:
        raise ValueError(
            f"the name of a gradient has {len(encoded)} bytes, at most {LONGEST_NAME} are allowed: '{name[:60]}…'"
        )
    if b"\0" in encoded:
        raise ValueError(f"the name of a gradient has a null character: {name!r}")
    return encoded
