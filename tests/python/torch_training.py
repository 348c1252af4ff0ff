# SPDX-License-Identifier: Apache-2.0
"""Training on several ranks equals training in one process with the whole batch. Runs on every rank; see launch.py.

Each check trains a reference in the same process with the plain optimizer and all samples, and a copy with the
distributed optimizer and this rank's share of them.
"""

from __future__ import annotations

import contextlib
import copy
import time
import warnings

import torch
from torch import nn
from torch_tools import SAMPLES, TorchSuite, batches, loss_of, train, worst

import ronde.torch as hvd
from ronde.core import engine


class TrainingSuite(TorchSuite):
    # --- tools ---

    def train(self, make, dtype=torch.float64, steps=20, scale=1.0, before_step=None, **options) -> float:
        """Trains both and says how far apart they are. `make(parameters)` gives a plain optimizer."""
        model, reference = self.twins(dtype)
        hvd.broadcast_parameters(model.state_dict(), 0)
        optimizer = hvd.DistributedOptimizer(make(model.parameters()), **options)
        plain = make(reference.parameters())
        for batch in batches(steps, dtype):
            optimizer.zero_grad()
            (loss_of(model, self.mine(batch)) * scale).backward()
            plain.zero_grad()
            loss_of(reference, batch).backward()
            if before_step:
                before_step(model)
                before_step(reference)
            optimizer.step()
            plain.step()
        self.agree(model)
        return worst(model, reference)

    # --- equality ---

    def check_sgd_with_momentum_in_float64(self) -> None:
        assert self.train(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)) <= 1e-12

    def check_sgd_with_momentum_in_float32(self) -> None:
        assert self.train(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), torch.float32) <= 1e-5

    def check_adam(self) -> None:
        assert self.train(lambda p: torch.optim.Adam(p, lr=0.01)) <= 1e-9

    def check_op_sum(self) -> None:
        make = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)  # noqa: E731
        assert self.train(make, scale=1 / self.size, op=hvd.Sum) <= 1e-12

    def check_gradient_predivide_factor(self) -> None:
        make = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)  # noqa: E731
        assert self.train(make, gradient_predivide_factor=float(self.size)) <= 1e-12

    def check_compression(self) -> None:
        make = lambda p: torch.optim.SGD(p, lr=0.1)  # noqa: E731
        assert 0 < self.train(make, torch.float32, compression=hvd.Compression.fp16) <= 1e-2
        assert 0 < self.train(make, torch.float32, compression=hvd.Compression.bf16) <= 5e-2

    def check_gradients_are_reduced_when_backward_returns(self) -> None:
        """So clipping needs no synchronize() by hand."""
        clip = lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.05)  # noqa: E731
        make = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)  # noqa: E731
        assert self.train(make, before_step=clip) <= 1e-12

    def check_synchronize_by_hand_and_skip(self) -> None:
        model, reference = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        plain = torch.optim.SGD(reference.parameters(), lr=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for batch in batches(5):
                optimizer.zero_grad()
                loss_of(model, self.mine(batch)).backward()
                optimizer.synchronize()
                nn.utils.clip_grad_value_(model.parameters(), 0.01)
                with optimizer.skip_synchronize():
                    optimizer.step()
                plain.zero_grad()
                loss_of(reference, batch).backward()
                nn.utils.clip_grad_value_(reference.parameters(), 0.01)
                plain.step()
        assert worst(model, reference) <= 1e-12

    def check_step_after_synchronize_warns(self) -> None:
        model, reference = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), op=hvd.Sum)
        plain = torch.optim.SGD(reference.parameters(), lr=0.1 * self.size)
        batch = batches(1)[0]
        loss_of(model, self.mine(batch)).backward()
        optimizer.synchronize()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            optimizer.step()
        assert len(caught) == 1
        assert "optimizer.step() called without optimizer.skip_synchronize()" in str(caught[0].message)
        loss_of(reference, batch).backward()
        plain.step()
        assert worst(model, reference) <= 1e-12, "the gradients were reduced twice"

    # --- accumulation ---

    def check_accumulating_eight_passes_with_a_remainder(self) -> None:
        """100 batches per epoch, 3 epochs: a window at the end of an epoch has only 4 passes."""
        model, reference = self.twins()
        make = lambda m: torch.optim.SGD(m.parameters(), lr=0.02, momentum=0.9)  # noqa: E731
        optimizer = hvd.DistributedOptimizer(make(model), model.named_parameters(), backward_passes_per_step=8)
        plain = make(reference)
        data = batches(100)
        for _ in range(3):
            for i, batch in enumerate(data):
                (loss_of(model, self.mine(batch)) / 8).backward()
                (loss_of(reference, batch) / 8).backward()
                if i % 8 == 7 or i == len(data) - 1:
                    optimizer.step()
                    optimizer.zero_grad()
                    plain.step()
                    plain.zero_grad()
        self.agree(model)
        assert worst(model, reference) <= 1e-10

    def check_one_reduction_per_accumulated_step(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), backward_passes_per_step=3)
        before = engine.counters()["tensors"]
        for batch in batches(3):
            loss_of(model, self.mine(batch)).backward()
        optimizer.step()
        assert engine.counters()["tensors"] - before == len(list(model.parameters()))

    def check_an_extra_backward_raises_and_touches_nothing(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
        batch = self.mine(batches(1)[0])
        loss_of(model, batch).backward()
        gradients = [p.grad.clone() for p in model.parameters()]
        self.raises(AssertionError, loss_of(model, batch).backward, "backward_passes_per_step")
        assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True))
        torch.autograd.grad(loss_of(model, batch), list(model.parameters()))  # this one is no backward() into .grad
        optimizer.step()
        optimizer.zero_grad()
        optimizer.set_backward_passes_per_step(2)
        loss_of(model, batch).backward()
        loss_of(model, batch).backward()
        self.raises(AssertionError, loss_of(model, batch).backward, "backward_passes_per_step=2")
        optimizer.step()
        self.raises(ValueError, lambda: optimizer.set_backward_passes_per_step(0))

    def check_gradients_thrown_away_by_the_model_may_be_computed_anew(self) -> None:
        model, reference = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        plain = torch.optim.SGD(reference.parameters(), lr=0.1)
        first, second = batches(2)
        loss_of(model, self.mine(first)).backward()
        model.zero_grad()
        loss_of(model, self.mine(second)).backward()
        optimizer.step()
        loss_of(reference, second).backward()
        plain.step()
        assert worst(model, reference) <= 1e-12

    # --- zero_grad ---

    def check_zero_grad_between_backward_and_step(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        batch = self.mine(batches(1)[0])
        loss_of(model, batch).backward()
        self.raises(AssertionError, optimizer.zero_grad, "before step()")
        optimizer.synchronize()
        optimizer.zero_grad()
        assert all(p.grad is None for p in model.parameters())
        loss_of(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        assert all(p.grad is not None and not p.grad.any() for p in model.parameters())

    # --- parameters that come and go ---

    def check_parameters_without_gradients(self) -> None:
        """Each rank uses another head; the heads of the others get zeros from it."""
        torch.manual_seed(4)
        heads = nn.ModuleList(nn.Linear(3, 1, bias=False).double() for _ in range(self.size))
        unused = nn.Linear(2, 2).double()
        before = [head.weight.detach().clone() for head in heads]
        unused_before = unused.weight.detach().clone()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*heads.parameters(), *unused.parameters()], lr=1.0))
        x = torch.ones(1, 3, dtype=torch.float64)
        for step in range(1, 4):
            optimizer.zero_grad()
            heads[self.rank](x).sum().backward()
            optimizer.step()
            assert unused.weight.grad is not None
            assert not unused.weight.grad.any()
            for head, start in zip(heads, before, strict=True):
                assert torch.allclose(head.weight, start - step / self.size, atol=1e-12)
        assert torch.equal(unused.weight, unused_before)

    def check_backward_passes_within_no_sync(self) -> None:
        """Any number of them, with one outside at the end or with step() alone, equals one big batch."""
        model, reference = self.twins()
        make = lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)  # noqa: E731
        optimizer = hvd.DistributedOptimizer(make(model), model.named_parameters())
        plain = make(reference)
        for step, parts in enumerate((1, 3, 2, 4)):
            some = batches(parts)
            for part, batch in enumerate(some):
                last = part == parts - 1 and step % 2 == 0
                with contextlib.nullcontext() if last else optimizer.no_sync():
                    before = engine.counters()["tensors"]
                    (loss_of(model, self.mine(batch)) / parts).backward()
                    sent = engine.counters()["tensors"] - before
                    assert last or sent == 0, "within no_sync() nothing is reduced"
                (loss_of(reference, batch) / parts).backward()
            optimizer.step()
            plain.step()
            optimizer.zero_grad()
            plain.zero_grad()
        assert worst(model, reference) <= 1e-12

    def check_groups_of_gradients(self) -> None:
        """Gradients of a group travel together; the order of the parameters and what has no gradient may differ."""
        model, reference = self.twins()
        parameters = list(model.named_parameters())
        lists = [[p for _, p in parameters[:2]], [parameters[5][1], parameters[3][1]]]
        for groups in (1, 2, 100, lists):
            own = parameters[::-1] if self.rank % 2 else parameters
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD([p for _, p in own], lr=0.1), own, groups=groups, gradient_predivide_factor=2.0
            )
            plain = torch.optim.SGD(reference.parameters(), lr=0.1)
            for batch in batches(3):
                train(model, optimizer, self.mine(batch))
                train(reference, plain, batch)
            assert worst(model, reference) <= 1e-12, groups
            # Not every gradient of a group is there.
            optimizer.zero_grad()
            plain.zero_grad()
            model[0](batch[0][self.rank :: self.size]).sum().backward()
            reference[0](batch[0]).sum().div(self.size).backward()
            optimizer.step()
            plain.step()
            assert worst(model, reference) <= 1e-12, groups

    def check_groups_that_cannot_be(self) -> None:
        model, _ = self.twins()
        make = lambda groups: hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), groups=groups)  # noqa: E731
        first = next(model.parameters())
        stranger = torch.zeros(1, requires_grad=True)
        for wrong in (-1, [[first, first]], [[first], [first]], [[stranger]], [["weight"]]):
            self.raises(ValueError, lambda wrong=wrong: make(wrong), "groups")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), num_groups=2)
        assert [entry.category for entry in caught] == [DeprecationWarning]

    def check_an_optimizer_of_a_process_set(self) -> None:
        """The first ranks but one train a model together; the last one trains its own without knowing of them."""
        some = hvd.add_process_set(range(self.size - 1)) if self.size > 2 else hvd.global_process_set
        model, reference = self.twins(seed=3 if some.included() else 4)
        if some.included() and some.rank() > 0:
            with torch.no_grad():
                model[0].weight += 1
        if some.included():
            hvd.broadcast_parameters(model.state_dict(), 0, process_set=some)
        make = lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)  # noqa: E731
        optimizer = hvd.DistributedOptimizer(make(model), model.named_parameters(), process_set=some)
        plain = make(reference)
        if some.included():
            hvd.broadcast_optimizer_state(optimizer, 0, process_set=some)
        for samples, goals in batches(5):
            share = slice(some.rank(), None, some.size()) if some.included() else slice(None)
            train(model, optimizer, (samples[share], goals[share]))
            train(reference, plain, (samples, goals))
        assert worst(model, reference) <= 1e-12
        hvd.remove_process_set(some)

    def check_frozen_parameters_and_new_groups(self) -> None:
        model, reference = self.twins()
        model[0].weight.requires_grad_(False)
        reference[0].weight.requires_grad_(False)
        make = lambda m: torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.1)  # noqa: E731
        optimizer, plain = hvd.DistributedOptimizer(make(model)), make(reference)
        for step, batch in enumerate(batches(6)):
            if step == 2:  # it comes back
                model[0].weight.requires_grad_(True)
                reference[0].weight.requires_grad_(True)
                optimizer.add_param_group({"params": [model[0].weight], "lr": 0.2})
                plain.add_param_group({"params": [reference[0].weight], "lr": 0.2})
            if step == 4:  # another one goes
                model[5].bias.requires_grad_(False)
                reference[5].bias.requires_grad_(False)
            train(model, optimizer, self.mine(batch))
            train(reference, plain, batch)
        assert worst(model, reference) <= 1e-12

    def check_a_step_without_backward_on_one_rank(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        if self.rank != 0:
            loss_of(model, self.mine(batches(1)[0])).backward()
        optimizer.step()
        self.agree(model)

    # --- several optimizers ---

    def check_an_optimizer_made_anew_each_epoch(self) -> None:
        model, reference = self.twins()
        plain = torch.optim.SGD(reference.parameters(), lr=0.1)
        kept = []
        for _ in range(3):
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
            )
            kept.append(optimizer)
            for batch in batches(4):
                before = engine.counters()["tensors"]
                train(model, optimizer, self.mine(batch))
                assert engine.counters()["tensors"] - before == len(list(model.parameters())), "doubled hooks"
                train(reference, plain, batch)
        self.agree(model)
        assert worst(model, reference) <= 1e-12
        self.raises(RuntimeError, kept[0].step, "made later")

    def check_a_dropped_optimizer_takes_its_hooks_along(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        del optimizer
        before = engine.counters()["tensors"]
        loss_of(model, self.mine(batches(1)[0])).backward()
        assert engine.counters()["tensors"] == before

    def gan(self, distributed: bool) -> list[torch.Tensor]:
        """The usual loop: the generator's backward pass runs through the discriminator, whose gradients are then
        zeroed.
        """
        torch.manual_seed(5)
        generator, discriminator = nn.Linear(2, 2).double(), nn.Linear(2, 1).double()
        d_optimizer = torch.optim.SGD(discriminator.parameters(), lr=0.1, momentum=0.9)
        g_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1, momentum=0.9)
        if distributed:
            d_optimizer = hvd.DistributedOptimizer(d_optimizer, discriminator.named_parameters())
            g_optimizer = hvd.DistributedOptimizer(g_optimizer, generator.named_parameters())
        draw = torch.Generator().manual_seed(6)
        for _ in range(10):
            noise = torch.randn(SAMPLES, 2, generator=draw, dtype=torch.float64)
            real = torch.randn(SAMPLES, 2, generator=draw, dtype=torch.float64)
            if distributed:
                noise, real = noise[self.rank :: self.size], real[self.rank :: self.size]
            d_optimizer.zero_grad()
            fake = generator(noise)
            (discriminator(fake.detach()) ** 2).mean().add(((discriminator(real) - 1) ** 2).mean()).backward()
            d_optimizer.step()
            g_optimizer.zero_grad()
            ((discriminator(fake) - 1) ** 2).mean().backward()
            g_optimizer.step()
        return [p.detach() for p in (*generator.parameters(), *discriminator.parameters())]

    def check_two_models_two_optimizers_same_names(self) -> None:
        for one, other in zip(self.gan(True), self.gan(False), strict=True):
            assert (one - other).abs().max() <= 1e-12

    def check_two_losses_with_retain_graph(self) -> None:
        def run(distributed: bool) -> list[torch.Tensor]:
            torch.manual_seed(8)
            encoder, head = nn.Linear(4, 4).double(), nn.Linear(4, 1).double()
            optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (encoder, head)]
            if distributed:
                optimizers = [
                    hvd.DistributedOptimizer(o, m.named_parameters(), backward_passes_per_step=2)
                    for o, m in zip(optimizers, (encoder, head), strict=True)
                ]
            x = torch.linspace(-1, 1, SAMPLES * 4, dtype=torch.float64).reshape(SAMPLES, 4)
            x = x[self.rank :: self.size] if distributed else x
            for _ in range(5):
                y = head(encoder(x))
                y.mean().backward(retain_graph=True)
                (y**2).mean().backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            return [p.detach() for m in (encoder, head) for p in m.parameters()]

        for one, other in zip(run(True), run(False), strict=True):
            assert (one - other).abs().max() <= 1e-12

    # --- mixed precision ---

    def check_bf16_autocast(self) -> None:
        model, _ = self.twins(torch.float32)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        losses = []
        for batch in batches(1, torch.float32) * 10:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_of(model, self.mine(batch))
            loss.backward()
            optimizer.step()
            losses.append(hvd.allreduce(loss.detach()).item())
        assert losses[-1] < losses[0]
        self.agree(model)

    def scaled(self, unscale: bool, unused: bool) -> None:
        """The stock loop. In step 2 one rank has an infinity: all skip it."""
        model, reference = self.twins(torch.float32)
        extra = [nn.Parameter(torch.zeros(3))] if unused else []
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([*model.parameters(), *extra], lr=0.1))
        plain = torch.optim.SGD(reference.parameters(), lr=0.1)
        scaler, other = (torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3) for _ in range(2))
        for step, batch in enumerate(batches(8, torch.float32)):
            poison = float("inf") if step == 2 and self.rank == self.size - 1 else 1.0
            optimizer.zero_grad()
            scaler.scale(loss_of(model, self.mine(batch)) * poison).backward()
            plain.zero_grad()
            other.scale(loss_of(reference, batch) * (float("inf") if step == 2 else 1.0)).backward()
            if unscale:
                for s, o, m in ((scaler, optimizer, model), (other, plain, reference)):
                    s.unscale_(o)
                    nn.utils.clip_grad_norm_(m.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
            other.step(plain)
            other.update()
            assert scaler.get_scale() == other.get_scale(), f"step {step}"
        self.agree(model)
        assert worst(model, reference) <= 1e-5

    def check_grad_scaler(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for unscale in (False, True):
                for unused in (False, True):
                    self.scaled(unscale, unused)

    # --- state ---

    def check_class_schedulers_and_state_dict(self) -> None:
        model, reference = self.twins()
        make = lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)  # noqa: E731
        optimizer, plain = hvd.DistributedOptimizer(make(model)), make(reference)
        assert type(optimizer).__name__ == "SGD"
        assert type(optimizer) is not torch.optim.SGD
        assert isinstance(optimizer, torch.optim.SGD)
        schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (optimizer, plain)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for step, batch in enumerate(batches(6)):
                if step == 3:
                    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
                train(model, optimizer, self.mine(batch))
                train(reference, plain, batch)
                for schedule in schedules:
                    schedule.step()
        assert worst(model, reference) <= 1e-12
        assert optimizer.state_dict().keys() == plain.state_dict().keys()

    def check_step_hooks_run_once(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        optimizer.load_state_dict(optimizer.state_dict())
        calls = []
        optimizer.register_step_post_hook(lambda *_: calls.append(1))
        loss_of(model, self.mine(batches(1)[0])).backward()
        optimizer.step()
        assert calls == [1]

    def check_a_closure_is_reduced_each_time(self) -> None:
        model, reference = self.twins()
        batch = batches(1)[0]

        def fit(m, optimizer, part):
            def closure():
                optimizer.zero_grad()
                loss = loss_of(m, part)
                loss.backward()
                return loss

            for _ in range(5):
                optimizer.step(closure)

        fit(model, hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1)), self.mine(batch))
        fit(reference, torch.optim.SGD(reference.parameters(), lr=0.1), batch)
        assert worst(model, reference) <= 1e-12

    # --- what it costs ---

    def check_few_batches_for_many_gradients(self) -> None:
        """161 gradients of ResNet-50's number, one rank slower: at most 20 batches per step, and no whole request
        twice.
        """
        parameters = [nn.Parameter(torch.ones(64 + i)) for i in range(161)]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=0.01))
        for step in range(5):
            optimizer.zero_grad()
            before = engine.counters()
            if self.rank == 0:
                time.sleep(0.02)
            sum((p * p).sum() for p in parameters).backward()
            optimizer.step()
            after = engine.counters()
            assert after["tensors"] - before["tensors"] == 161
            assert after["batches"] - before["batches"] <= 20
            if step >= 1:
                assert after["full_requests"] == before["full_requests"], f"step {step}"
