# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNorm against batch normalisation of the whole batch in one process. Runs on every rank; see launch.py."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch_tools import TorchSuite

import ronde.torch as hvd

CHANNELS = 5


class BatchNormSuite(TorchSuite):
    def shares(self) -> list[slice]:
        """Samples of each rank: another number on each, on the last none if there are more than two."""
        counts = [rank + 2 for rank in range(self.size)]
        if self.size > 2:
            counts[-1] = 0
        ends = [sum(counts[: rank + 1]) for rank in range(self.size)]
        return [slice(end - count, end) for count, end in zip(counts, ends, strict=True)]

    def compare(self, shape: tuple[int, ...], kind: type[nn.Module], dtype=torch.float64, tolerance=1e-12, **options):
        shares = self.shares()
        draw = torch.Generator().manual_seed(5)
        whole = torch.randn(shares[self.size - 1].stop, CHANNELS, *shape, generator=draw, dtype=torch.float64) * 3 + 100
        weights = torch.randn(whole.shape, generator=draw, dtype=torch.float64)
        synced = hvd.SyncBatchNorm(CHANNELS, **options).to(dtype)
        plain = kind(CHANNELS, **options).to(dtype)
        if synced.affine:
            for module in (synced, plain):
                nn.init.constant_(module.weight, 1.5)
                nn.init.constant_(module.bias, -0.5)
        here = shares[self.rank]
        for step in range(2):
            x = (whole[here] + step).to(dtype).requires_grad_()
            y = (whole + step).to(dtype).requires_grad_()
            found, expected = synced(x), plain(y)
            self.close(found, expected[here], tolerance)
            (found * weights[here].to(dtype)).sum().backward()
            (expected * weights.to(dtype)).sum().backward()
            self.close(x.grad, y.grad[here], tolerance)
        for name in ("running_mean", "running_var"):
            if getattr(plain, name) is not None:
                self.close(getattr(synced, name), getattr(plain, name), tolerance * 100)
        if synced.affine:
            for name in ("weight", "bias"):
                total = hvd.allreduce(getattr(synced, name).grad, op=hvd.Sum)
                self.close(total, getattr(plain, name).grad, tolerance * 100)
        if plain.running_mean is not None:
            synced.eval(), plain.eval()
            self.close(synced(x), plain(x), tolerance * 100)

    def close(self, found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
        assert found.shape == expected.shape
        worst = (found - expected).abs().max().item() if found.numel() else 0.0
        assert worst <= tolerance, f"off by {worst}, allowed {tolerance}"

    def check_one_dimension(self) -> None:
        self.compare((), nn.BatchNorm1d)
        self.compare((7,), nn.BatchNorm1d)

    def check_two_and_three_dimensions(self) -> None:
        self.compare((4, 3), nn.BatchNorm2d)
        self.compare((2, 3, 2), nn.BatchNorm3d)

    def check_options(self) -> None:
        self.compare((3,), nn.BatchNorm1d, affine=False)
        self.compare((3,), nn.BatchNorm1d, momentum=None)
        self.compare((3,), nn.BatchNorm1d, track_running_stats=False, eps=1e-3)

    def check_float32(self) -> None:
        self.compare((4, 4), nn.BatchNorm2d, dtype=torch.float32, tolerance=2e-4)

    def check_a_converted_model_trains_as_one_process_with_the_whole_batch(self) -> None:
        torch.manual_seed(3)
        make = lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))  # noqa: E731
        reference = make().double()
        model = hvd.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(reference))
        assert isinstance(model[1], hvd.SyncBatchNorm)
        assert list(model.state_dict()) == list(reference.state_dict())
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        plain = torch.optim.SGD(reference.parameters(), lr=0.1)
        for step in range(3):
            whole = torch.randn(12, 1, 6, 6, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
            for network, chosen, batch in (
                (model, optimizer, whole[self.rank :: self.size]),
                (reference, plain, whole),
            ):
                chosen.zero_grad()
                (network(batch) ** 2).mean().backward()
                chosen.step()
        for found, expected in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
            self.close(found.double(), expected.double(), 1e-11)

    def check_too_few_values(self) -> None:
        layer = hvd.SyncBatchNorm(CHANNELS)
        one = torch.ones(1 if self.rank == 0 else 0, CHANNELS)
        with pytest.raises(ValueError, match="more than (one|1) value"):
            layer(one)
        with pytest.raises(ValueError, match="at least 2 dimensions"):
            layer(torch.ones(CHANNELS))
