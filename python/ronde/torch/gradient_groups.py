# SPDX-License-Identifier: Apache-2.0
"""Which gradients of an optimizer are reduced together."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ronde.core.errors import HorovodInternalError
from ronde.core.objects import allgather_object
from ronde.core.process_sets import ProcessSet

Named = list[tuple[str, torch.nn.Parameter]]


def grouped(named: Named, groups: int | Sequence[Sequence[torch.Tensor]] | None) -> list[list[str]]:
    """The groups as the user asked for them, by name. ``ValueError`` for a negative number, something that is no
    parameter of the optimizer, and a parameter in two groups. Parameters that need no gradient are left out.
    """
    if groups is None or (isinstance(groups, int) and groups == 0):
        return []
    if isinstance(groups, int):
        if groups < 0:
            raise ValueError(f"groups must be a number of groups or lists of parameters, not {groups}")
        return _chunks([name for name, _ in named], groups)
    names = {parameter: name for name, parameter in named}
    seen: set[torch.Tensor] = set()
    for number, group in enumerate(groups):
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError(f"groups: group {number} has a {type(parameter).__name__} that is no parameter")
            if parameter in seen:
                raise ValueError(f"groups: the parameter '{names.get(parameter)}' is given twice")
            if parameter.requires_grad and parameter not in names:
                raise ValueError(f"groups: group {number} has a tensor that the optimizer does not have")
            seen.add(parameter)
    return [[names[parameter] for parameter in group if parameter in names] for group in groups]


def agreed(parts: list[list[str]], named: Named, process_set: ProcessSet) -> list[list[torch.nn.Parameter]]:
    """The groups of the set's first rank. All ranks of the set call it if one of them has groups.

    ``HorovodInternalError`` on all ranks if one lacks a parameter of a group, or has groups where another has none.
    """
    if not parts:
        return []
    told = allgather_object((parts, [name for name, _ in named]), name="ronde.gradient_groups", process_set=process_set)
    wanted = told[0][0]
    for rank, (_, names) in zip(process_set.ranks, told, strict=True):
        missing = sorted({name for part in wanted for name in part} - set(names))
        if missing:
            raise HorovodInternalError(
                f"groups: rank {rank} has no parameter '{missing[0]}', which rank {process_set.ranks[0]} has in a group"
            )
    parameters = dict(named)
    return [[parameters[name] for name in part] for part in wanted if part]


def _chunks(names: list[str], number: int) -> list[list[str]]:
    """So many parts, whose sizes differ by one at most."""
    each, left = divmod(len(names), number)
    ends = [(i + 1) * each + min(i + 1, left) for i in range(number)]
    return [names[begin:end] for begin, end in zip([0, *ends], ends, strict=False) if end > begin]
