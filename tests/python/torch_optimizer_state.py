# SPDX-License-Identifier: Apache-2.0
"""Bringing all ranks to the state of one, and saving it. Runs on every rank; see launch.py."""

from __future__ import annotations

import copy
import io
import subprocess
import sys

import torch
from torch import nn
from torch_tools import TorchSuite, batches, loss_of

import ronde.torch as hvd
from ronde.core import handles


class StateSuite(TorchSuite):
    def check_resume_on_one_rank(self) -> None:
        """Rank 0 has trained alone; the others get its weights, its learning rate, its moments and its step count."""
        for make in (
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
            lambda p: torch.optim.RMSprop(p, lr=0.01),
        ):
            model, _ = self.twins(seed=self.rank)
            plain = make(model.parameters())
            if self.rank == 0:
                for batch in batches(3):
                    plain.zero_grad()
                    loss_of(model, batch).backward()
                    plain.step()
                plain.param_groups[0]["lr"] = 0.0123
                weights = [p.detach().clone() for p in model.parameters()]
                state = copy.deepcopy(plain.state_dict())
            plain.zero_grad()
            optimizer = hvd.DistributedOptimizer(plain, model.named_parameters())
            hvd.broadcast_parameters(model.state_dict(), 0)
            hvd.broadcast_optimizer_state(optimizer, 0)
            if self.rank == 0:
                assert all(torch.equal(p, w) for p, w in zip(model.parameters(), weights, strict=True))
                assert str(state) == str(optimizer.state_dict())
            assert optimizer.param_groups[0]["lr"] == 0.0123
            everywhere = hvd.allgather_object(str(optimizer.state_dict()))
            assert all(other == everywhere[0] for other in everywhere)
            self.agree(model)
            for batch in batches(2):
                optimizer.zero_grad()
                loss_of(model, self.mine(batch)).backward()
                optimizer.step()
            self.agree(model)

    def check_broadcast_of_a_state_that_is_empty(self) -> None:
        model, _ = self.twins()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (self.rank + 1))
        hvd.broadcast_optimizer_state(optimizer, self.size - 1)
        assert optimizer.param_groups[0]["lr"] == 0.1 * self.size
        assert not optimizer.state_dict()["state"]
        lbfgs = torch.optim.LBFGS(model.parameters())
        self.raises(ValueError, lambda: hvd.broadcast_optimizer_state(lbfgs, 0), "LBFGS")

    def check_broadcast_parameters_takes_buffers_and_lists(self) -> None:
        norm = nn.BatchNorm1d(3)
        norm.running_mean.fill_(self.rank)
        norm.num_batches_tracked.fill_(self.rank)
        hvd.broadcast_parameters(norm.state_dict(), self.size - 1)
        assert norm.running_mean.tolist() == [self.size - 1.0] * 3
        assert norm.num_batches_tracked.item() == self.size - 1
        tensors = [torch.full((2,), float(self.rank)), torch.full((2,), float(self.rank))]
        hvd.broadcast_parameters(tensors, 0)
        hvd.broadcast_parameters(list(norm.named_parameters()), 0)
        assert not torch.stack(tensors).any()
        for wrong in (3, "weights", torch.ones(2), {"state": {}}, [1.0]):
            self.raises(ValueError, lambda wrong=wrong: hvd.broadcast_parameters(wrong, 0))

    def check_broadcast_of_parameters_may_be_repeated_after_an_error(self) -> None:
        first, second = torch.full((2,), float(self.rank)), torch.full((3,), float(self.rank))
        unsupported = torch.zeros(2, dtype=torch.int8)
        for wrong in (
            {"a": first, "b": unsupported},
            {"a": first, "b": second.to("meta")},
            {"a": first, "b": torch.eye(2).to_sparse()},
            [("a", first), ("a", second)],
            [("a", first), ("b" * 2000, second)],
        ):
            self.raises(ValueError, lambda wrong=wrong: hvd.broadcast_parameters(wrong, 0))
        if self.rank == 1:
            self.raises(ValueError, lambda: hvd.broadcast_parameters({"a": first, "b": unsupported}, 0), "int8")
        hvd.broadcast_parameters({"a": first, "b": second}, 1)
        assert (second == 1).all()
        odd = torch.full((2 + self.rank % 2,), float(self.rank))
        self.raises(hvd.MismatchError, lambda: hvd.broadcast_parameters({"a": odd, "b": second}, 0), "'parameter.a'")
        assert not handles._pending
        hvd.broadcast_parameters({"a": first, "b": second}, 0)

    def check_state_loads_without_ronde(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters()), model.named_parameters())
        loss_of(model, self.mine(batches(1)[0])).backward()
        optimizer.step()
        if self.rank != 0:
            return
        saved = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, saved)
        program = (
            "import sys, io; sys.modules['ronde'] = None\n"
            "import torch\n"
            "s = torch.load(io.BytesIO(sys.stdin.buffer.read()), weights_only=True)\n"
            "print(len(s['model']), len(s['optimizer']['state']))\n"
        )
        told = subprocess.run(
            [sys.executable, "-c", program], input=saved.getvalue(), capture_output=True, check=True, timeout=60
        ).stdout.split()
        assert told == [str(len(model.state_dict())).encode(), str(len(list(model.parameters()))).encode()]
