# SPDX-License-Identifier: Apache-2.0
"""What the suites that train share: a small model, batches that are the same on all ranks, and ways to compare."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import ronde.torch as hvd

SAMPLES = 12  # divisible by 2, 3 and 4


def network(dtype: torch.dtype = torch.float64) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten()),
        *(nn.Linear(3 * 4 * 4, 10), nn.Tanh(), nn.Linear(10, 3)),
    ).to(dtype)


def batches(steps: int, dtype: torch.dtype = torch.float64) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The same on all ranks."""
    draw = torch.Generator().manual_seed(7)
    return [
        (
            torch.randn(SAMPLES, 1, 6, 6, generator=draw, dtype=torch.float64).to(dtype),
            torch.randn(SAMPLES, 3, generator=draw, dtype=torch.float64).to(dtype),
        )
        for _ in range(steps)
    ]


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    """One step."""
    optimizer.zero_grad()
    loss_of(model, batch).backward()
    optimizer.step()


def worst(one: nn.Module, other: nn.Module) -> float:
    """The greatest difference between two models' weights."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


class TorchSuite:
    """A suite on every rank; see launch.py."""

    def start(self) -> None:
        torch.set_num_threads(1)
        hvd.init()
        self.rank, self.size = hvd.rank(), hvd.size()

    def stop(self) -> None:
        hvd.shutdown()

    # --- tools ---

    def mine(self, batch: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return batch[0][self.rank :: self.size], batch[1][self.rank :: self.size]

    def twins(self, dtype: torch.dtype = torch.float64, seed: int = 3) -> tuple[nn.Module, nn.Module]:
        """A model to train on all ranks and its reference."""
        torch.manual_seed(seed)
        model = network(dtype)
        return model, copy.deepcopy(model)

    def agree(self, model: nn.Module) -> None:
        """All ranks have the same weights, bit by bit."""
        flat = torch.cat([p.detach().flatten() for p in model.parameters()])
        everywhere = hvd.allgather_object(flat.numpy().tobytes())
        assert all(other == everywhere[0] for other in everywhere)

    def raises(self, kind: type[BaseException], call, *parts: str) -> None:
        with pytest.raises(kind) as caught:
            call()
        for part in parts:
            assert part in str(caught.value), f"{part!r} is not in {caught.value}"
