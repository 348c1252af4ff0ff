# SPDX-License-Identifier: Apache-2.0
"""Many tensors at once, in another order on each rank, with one rank slower than the others. Runs on every rank; see
launch.py.

SEEDS in the environment says how many seeds each check tries.
"""

from __future__ import annotations

import copy
import os
import random
import time

import torch
from torch import nn
from torch_tools import SAMPLES, TorchSuite

import ronde.torch as hvd
from ronde.core import engine
from ronde.core.ops import ALLREDUCE
from ronde.torch.submission import MORE, call_in_place, send

TENSORS = 300
STEPS = 20


def sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def loss_of(parameters: list[nn.Parameter], samples: torch.Tensor, order: list[int]) -> torch.Tensor:
    """The mean over the samples. Gradients become ready in the opposite of this order."""
    weights = torch.cat([parameters[i].reshape(-1) for i in order])
    goals = torch.cat([torch.full((parameters[i].numel(),), i / TENSORS, dtype=samples.dtype) for i in order])
    return ((samples[:, None] * weights - goals) ** 2).sum() / len(samples)


class FusionSuite(TorchSuite):
    def submit_all(self, seed: int) -> dict[int, int]:
        """300 tensors with few different shapes and dtypes, in this rank's own order, with random MORE flags and
        pauses.
        """
        draw = random.Random(f"{seed} {self.rank}")
        order = list(range(TENSORS))
        draw.shuffle(order)
        slow = seed % self.size == self.rank
        handles = {}
        for place, i in enumerate(order):
            dtype = (torch.float32, torch.float64, torch.int64)[i % 3]
            tensor = torch.full((1 + i % 5, 1 + i % 60), i + self.rank, dtype=dtype)
            flags = MORE if draw.random() < 0.8 and place != TENSORS - 1 else 0
            op = hvd.Sum if i % 2 else hvd.Max
            handles[i] = send(call_in_place(ALLREDUCE, tensor, f"{seed % 2}.{i}".encode(), op), flags)
            if slow and draw.random() < 0.02:
                time.sleep(0.001)
        return handles

    def expected(self, i: int) -> int:
        return i * self.size + sum(range(self.size)) if i % 2 else i + self.size - 1

    def check_orders(self) -> None:
        for seed in range(int(os.environ.get("SEEDS", "12"))):
            handles = self.submit_all(seed)
            waiting = list(handles)
            random.Random(seed * 7 + self.rank).shuffle(waiting)
            for i in waiting:
                result = hvd.synchronize(handles[i])
                assert (result == self.expected(i)).all(), f"seed {seed}, tensor {i}: {result}"

    def check_training_with_hooks_firing_in_any_order(self) -> None:
        for seed in range(int(os.environ.get("SEEDS", "1"))):
            for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
                before = engine.counters()
                apart = self.train(seed, dtype)
                assert apart <= tolerance, f"seed {seed}: {dtype} weights are {apart} apart"
                self.look_at_batches(before, engine.counters())

    def train(self, seed: int, dtype: torch.dtype) -> float:
        """Trains 300 parameters, many of equal shape, with this rank's share of the samples, and again in one process
        with all samples; how far apart the weights are. Each rank draws a new order for each step.
        """
        torch.manual_seed(seed)
        data = torch.randn(STEPS, SAMPLES, dtype=torch.float64).to(dtype)
        parameters = [nn.Parameter(torch.randn(1 + i % 7, 3, dtype=torch.float64).to(dtype)) for i in range(TENSORS)]
        reference = copy.deepcopy(parameters)
        optimizer = hvd.DistributedOptimizer(sgd(parameters))
        plain = sgd(reference)
        if seed % self.size == self.rank:
            for p in parameters[::100]:
                p.register_hook(lambda _: time.sleep(0.002))
        draw = random.Random(f"{seed} {self.rank}")
        for samples in data:
            optimizer.zero_grad()
            loss_of(parameters, samples[self.rank :: self.size], draw.sample(range(TENSORS), TENSORS)).backward()
            optimizer.step()
            plain.zero_grad()
            loss_of(reference, samples, list(range(TENSORS))).backward()
            plain.step()
        return max((a - b).abs().max().item() for a, b in zip(parameters, reference, strict=True))

    def look_at_batches(self, before: dict[str, int], after: dict[str, int]) -> None:
        """That many gradients shared a batch, and that a small limit of it (4K, used over TCP) was in force."""
        tensors, batches = (after[what] - before[what] for what in ("tensors", "batches"))
        assert tensors == STEPS * TENSORS
        assert batches <= tensors / 5
        if os.environ.get("RONDE_TRANSPORT") == "tcp":
            assert batches >= 3 * STEPS

    def check_no_whole_request_from_the_second_step_on(self) -> None:
        for step in range(6):
            before = engine.counters()["full_requests"]
            handles = [hvd.allreduce_async(torch.ones(3), name=f"known.{i}") for i in range(20)]
            handles += [hvd.allreduce_async(torch.ones(4), op=hvd.Sum) for _ in range(20)]
            handles += [
                hvd.allgather_async(torch.ones(step + self.rank, 2), name="rows"),
                hvd.allgather_async(torch.ones(step, 3)),
            ]
            for handle in handles:
                hvd.synchronize(handle)
            if step > 0:
                assert engine.counters()["full_requests"] == before, f"step {step}"
