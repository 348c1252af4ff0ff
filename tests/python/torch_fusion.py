# SPDX-License-Identifier: Apache-2.0
"""Many tensors at once, in another order on each rank, over small batches. Runs on every rank; see launch.py.

SEEDS in the environment says how many seeds are tried.
"""

from __future__ import annotations

import os
import random
import time

import torch

import ronde.torch as hvd
from ronde.core import engine
from ronde.core.ops import ALLREDUCE
from ronde.torch.submission import MORE, submit_in_place

TENSORS = 300


class FusionSuite:
    def start(self) -> None:
        torch.set_num_threads(1)
        hvd.init()
        self.rank, self.size = hvd.rank(), hvd.size()

    def stop(self) -> None:
        hvd.shutdown()

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
            handles[i] = submit_in_place(ALLREDUCE, tensor, f"{seed % 2}.{i}".encode(), op, flags=flags)
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
