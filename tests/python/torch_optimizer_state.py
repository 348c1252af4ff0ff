# SPDX-License-Identifier: Apache-2.0
"""Bringing all ranks to the state of one, and saving it. Runs on every rank; see launch.py."""

from __future__ import annotations

import copy
import io
import subprocess
import sys

import torch
from torch import nn
from torch_tools import SAMPLES, TorchSuite, batches, loss_of, train, worst

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
                    train(model, plain, batch)
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
                train(model, optimizer, self.mine(batch))
            self.agree(model)

    def check_broadcast_of_a_state_that_is_empty(self) -> None:
        model, _ = self.twins()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (self.rank + 1))
        hvd.broadcast_optimizer_state(optimizer, self.size - 1)
        assert optimizer.param_groups[0]["lr"] == 0.1 * self.size
        assert not optimizer.state_dict()["state"]
        lbfgs = torch.optim.LBFGS(model.parameters())
        self.raises(ValueError, lambda: hvd.broadcast_optimizer_state(lbfgs, 0), "LBFGS")

    def check_schedulers_of_the_plain_optimizer_stay_in_force(self) -> None:
        """A scheduler made on what is then wrapped holds its groups: the broadcast must not replace them."""
        for wrapped_is_sent in (True, False):
            model, _ = self.twins()
            plain = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            schedule = torch.optim.lr_scheduler.StepLR(plain, 1, 0.5)
            optimizer = hvd.DistributedOptimizer(plain, model.named_parameters())
            hvd.broadcast_optimizer_state(optimizer if wrapped_is_sent else plain, 0)
            for batch in batches(4):
                train(model, optimizer, self.mine(batch))
                schedule.step()
            assert optimizer.param_groups[0]["lr"] == schedule.get_last_lr()[0] == 0.1 / 16
            assert plain.state is optimizer.state
            self.agree(model)

    def check_broadcast_of_state_between_backward_and_step(self) -> None:
        model, _ = self.twins(seed=self.rank)
        unused = nn.Parameter(torch.zeros(3, dtype=torch.float64))  # so that the window stays open after backward()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*model.parameters(), unused], lr=0.1, momentum=0.9))
        for step, batch in enumerate(batches(4)):
            optimizer.zero_grad()
            loss_of(model, self.mine(batch)).backward()
            if step == 1:
                hvd.broadcast_parameters(model.state_dict(), 0)
                hvd.broadcast_optimizer_state(optimizer, 0)
            optimizer.step()
        self.agree(model)

    def check_objects_of_the_state_stay_and_get_the_values_of_the_root(self) -> None:
        root = self.size - 1
        model, _ = self.twins()
        rate = torch.tensor(0.01 * (self.rank + 1))  # one tensor in both groups
        groups = [{"params": model[0].parameters()}, {"params": model[3].parameters(), "weight_decay": self.rank}]
        optimizer = torch.optim.Adam(groups, lr=rate)
        loss_of(model[:4], (batches(1)[0][0], torch.zeros(SAMPLES, 10))).backward()
        optimizer.step()
        optimizer.zero_grad()

        def objects() -> list[int]:
            state = optimizer.state
            tensors = [tensor for values in state.values() for tensor in values.values()]
            lists = [group["params"] for group in optimizer.param_groups]
            return [id(thing) for thing in (state, *state.values(), *tensors, *optimizer.param_groups, *lists)]

        for values in optimizer.state.values():
            values["exp_avg"].fill_(self.rank)
            values["step"].fill_(self.rank + 3)
        before = objects()
        hvd.broadcast_optimizer_state(optimizer, root)
        assert objects() == before
        assert all(group["lr"] is rate for group in optimizer.param_groups)
        assert rate == torch.tensor(0.01 * self.size)
        assert optimizer.param_groups[1]["weight_decay"] == root
        for values in optimizer.state.values():
            assert (values["exp_avg"] == root).all()
            assert values["step"] == root + 3

    def check_state_that_only_the_root_or_only_the_others_have(self) -> None:
        for stepped in ("root", "others"):
            model, _ = self.twins()
            tensor_rate = (stepped == "root") == (self.rank == 0)
            optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.25) if tensor_rate else 0.5)
            if tensor_rate:
                optimizer.param_groups[0]["of_one"] = True
                loss_of(model, batches(1)[0]).backward()
                optimizer.step()
            (group,) = optimizer.param_groups
            hvd.broadcast_optimizer_state(optimizer, 0)
            assert optimizer.param_groups[0] is group
            assert ("of_one" in group, len(optimizer.state)) == ((True, 6) if stepped == "root" else (False, 0))
            assert isinstance(group["lr"], torch.Tensor) == (stepped == "root")
            everywhere = hvd.allgather_object(str(optimizer.state_dict()))
            assert all(other == everywhere[0] for other in everywhere)

    def check_state_keeps_its_dtypes_and_shapes(self) -> None:
        """A master copy in float32 beside a parameter in bfloat16, what no broadcast carries, lists, other keys."""
        weight = nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        master = torch.tensor([1.0000001, 2.0000002, 3.0, 4.0])
        sent = {
            "master": master,
            "twice": [master, torch.tensor(7)],
            "bytes": torch.tensor([-1, 2], dtype=torch.int8),
            "complex": (torch.tensor([1 + 2j]), None),
            "sparse": torch.eye(2).to_sparse(),
            "count": 3,
        }
        if self.rank == 0:
            optimizer.state[weight] = sent
            optimizer.state["all"] = {"norm": torch.tensor(2.5, dtype=torch.float64)}
        else:
            optimizer.state[weight] = {"master": master.bfloat16(), "old": 1}
        hvd.broadcast_optimizer_state(optimizer, 0)
        found = optimizer.state[weight]
        assert str(found) == str(sent)
        assert (found["master"].dtype, found["bytes"].dtype) == (torch.float32, torch.int8)
        assert torch.equal(found["master"], master)
        assert found["twice"][0] is found["master"]
        assert optimizer.state["all"]["norm"] == 2.5

    def check_groups_that_differ_are_told_on_every_rank(self) -> None:
        model, _ = self.twins()
        parts = [{"params": [p]} for p in model.parameters()] if self.rank == 1 else model.parameters()
        optimizer = torch.optim.SGD(parts, lr=0.1 * (self.rank + 1))
        kind = ValueError if self.rank == 1 else hvd.HorovodInternalError
        self.raises(kind, lambda: hvd.broadcast_optimizer_state(optimizer, 0), "[1, 1, 1, 1, 1, 1]", "[6]")
        assert optimizer.param_groups[0]["lr"] == 0.1 * (self.rank + 1)
        again = torch.optim.SGD(model.parameters(), lr=0.1 * (self.rank + 1))
        hvd.broadcast_optimizer_state(again, 0)
        assert again.param_groups[0]["lr"] == 0.1

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
        unsupported = torch.zeros(2, dtype=torch.complex32)
        for wrong in (
            {"a": first, "b": unsupported},
            {"a": first, "b": second.to("meta")},
            {"a": first, "b": torch.eye(2).to_sparse()},
            [("a", first), ("a", second)],
            [("a", first), ("b" * 2000, second)],
        ):
            self.raises(ValueError, lambda wrong=wrong: hvd.broadcast_parameters(wrong, 0))
        if self.rank == 1:
            self.raises(
                ValueError,
                lambda: hvd.broadcast_parameters({"a": first, "b": unsupported}, 0),
                "parameter.b",
                "complex32",
            )
        hvd.broadcast_parameters({"a": first, "b": second}, 1)
        assert (second == 1).all()
        odd = torch.full((2 + self.rank % 2,), float(self.rank))
        self.raises(hvd.MismatchError, lambda: hvd.broadcast_parameters({"a": odd, "b": second}, 0), "'parameter.a'")
        assert not handles._pending
        hvd.broadcast_parameters({"a": first, "b": second}, 0)

    def check_state_loaded_between_backward_and_step(self) -> None:
        model, reference = self.twins()
        unused = nn.Parameter(torch.zeros(3, dtype=torch.float64))  # so that the window stays open after backward()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*model.parameters(), unused], lr=0.1, momentum=0.9))
        plain = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
        first, second, third = batches(3)
        for batch in (first, third):
            train(model, optimizer, self.mine(batch))
            train(reference, plain, batch)
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer.zero_grad()
            loss_of(model, self.mine(second)).backward()
            optimizer.load_state_dict(saved)
        assert worst(model, reference) <= 1e-12

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
