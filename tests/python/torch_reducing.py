# SPDX-License-Identifier: Apache-2.0
"""How gradients get to the other ranks: their names, compressors, closures, and what is refused before they set out.
Runs on every rank; see launch.py.
"""

from __future__ import annotations

import time

import torch
from torch import nn
from torch_tools import TorchSuite, batches, loss_of, train, worst

import ronde.torch as hvd


class InPlaceCompressor:
    """A user's compressor that gives back the very tensor that it was given."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, None]:
        return tensor.div_(1024), None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: None) -> torch.Tensor:
        return tensor.mul_(1024)


class ReducingSuite(TorchSuite):
    # --- names ---

    def some_steps(self, model, optimizer, seed: int = 0) -> None:
        for batch in batches(2 + seed)[seed:]:
            train(model, optimizer, self.mine(batch))

    def check_an_optimizer_made_anew_where_the_old_one_is_kept_on_one_rank(self) -> None:
        """Names must not depend on what has been collected; nor may a gradient that is still under way matter."""
        for compression in (hvd.Compression.none, hvd.Compression.fp16):
            model, _ = self.twins()
            unused = nn.Parameter(torch.zeros(3, dtype=torch.float64))  # so that windows stay open after backward()
            kept = []
            for epoch in range(4):
                optimizer = hvd.DistributedOptimizer(
                    torch.optim.SGD([*model.parameters(), unused], lr=0.1, momentum=0.9),
                    [*model.named_parameters("anew"), ("unused", unused)],
                    compression=compression,
                )
                self.some_steps(model, optimizer, epoch)
                if epoch % 2:
                    optimizer.zero_grad()
                    time.sleep(0.1 if self.rank == 1 else 0)
                    loss_of(model, self.mine(batches(1)[0])).backward()
                if self.rank == 1:
                    kept.append(optimizer)
                del optimizer
            self.agree(model)

    def check_an_optimizer_made_anew_after_a_restart(self) -> None:
        model, _ = self.twins()
        unused = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        for epoch in range(3):
            plain = torch.optim.SGD([*model.parameters(), unused], lr=0.1)
            optimizer = hvd.DistributedOptimizer(plain, [*model.named_parameters("again"), ("unused", unused)])
            self.some_steps(model, optimizer, epoch)
            optimizer.zero_grad()
            loss_of(model, self.mine(batches(1)[0])).backward()
            del optimizer
            hvd.barrier()
            hvd.shutdown()
            hvd.init()
            handles = [hvd.allreduce_async(torch.ones(1), name=f"restarted.{i}", op=hvd.Sum) for i in range(20)]
            plain.zero_grad()
            self.some_steps(model, hvd.DistributedOptimizer(plain, backward_passes_per_step=1), epoch)
            assert all(hvd.synchronize(handle).item() == self.size for handle in handles)
        self.agree(model)

    # --- what is refused ---

    def check_gradients_that_cannot_be_reduced_are_refused_before_anything_is_hooked(self) -> None:
        weight = nn.Parameter(torch.ones(2))
        for name, wrong, text in (
            ("w" * 1020, nn.Parameter(torch.ones(2)), "1029 bytes"),
            ("n\0w", nn.Parameter(torch.ones(2)), "null"),
            ("c", nn.Parameter(torch.ones(2, dtype=torch.complex32)), "complex32"),
            ("s", nn.Parameter(torch.eye(2).to_sparse()), "sparse"),
            ("d", nn.Parameter(torch.ones([1] * 17)), "not 17"),
            ("m", nn.Parameter(torch.ones(2, device="meta")), "meta"),
        ):
            plain = torch.optim.SGD([weight, wrong], lr=0.1)
            named = [("fine", weight), (name, wrong)]
            self.raises(ValueError, lambda p=plain, n=named: hvd.DistributedOptimizer(p, n), text)
            assert not weight._post_accumulate_grad_hooks
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.1), [("fine", weight)])
        group = {"params": [nn.Parameter(torch.ones(2, dtype=torch.complex32))]}
        self.raises(ValueError, lambda: optimizer.add_param_group(group), "noname.1.0", "complex32")
        assert len(optimizer.param_groups) == 1

    def check_gradients_that_are_only_zeroed_count_as_kept(self) -> None:
        model, _ = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), op=hvd.Sum)
        loss_of(model, self.mine(batches(1)[0])).backward()
        model.zero_grad(set_to_none=False)
        again = loss_of(model, self.mine(batches(1)[0]))
        self.raises(AssertionError, again.backward, "model.zero_grad(set_to_none=True)", "set_to_none=False")
        model.zero_grad(set_to_none=True)
        loss_of(model, self.mine(batches(1)[0])).backward()
        optimizer.step()
        self.agree(model)

    # --- compressors ---

    def check_a_compressor_that_works_in_place_is_undone(self) -> None:
        model, reference = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), compression=InPlaceCompressor)
        plain = torch.optim.SGD(reference.parameters(), lr=0.1)
        for batch in batches(3):
            train(model, optimizer, self.mine(batch))
            train(reference, plain, batch)
        assert worst(model, reference) <= 1e-12

    # --- closures ---

    def fit(self, model, optimizer, part, share=1, result=lambda loss: loss) -> list:
        """What five steps with a closure return."""

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, part) / share
            loss.backward()
            return result(loss)

        return [optimizer.step(closure) for _ in range(5)]

    def check_lbfgs_takes_the_way_of_one_process(self) -> None:
        """Its line search branches on the loss: every rank must see that of all samples."""
        batch = batches(1)[0]
        for op, share in ((hvd.Average, 1), (hvd.Sum, self.size)):
            model, reference = self.twins()
            one, other = (
                torch.optim.LBFGS(m.parameters(), max_iter=6, line_search_fn="strong_wolfe") for m in (model, reference)
            )
            losses = self.fit(model, hvd.DistributedOptimizer(one, op=op), self.mine(batch), share)
            expected = self.fit(reference, other, batch)
            self.agree(model)
            assert worst(model, reference) <= 1e-8
            assert all(abs(a - b) <= 1e-8 for a, b in zip(losses, expected, strict=True))

    def check_closures_return_the_loss_of_all_and_other_things_as_they_are(self) -> None:
        batch = batches(1)[0]
        thing = {"loss": 1}
        model, reference = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.0))
        expected = loss_of(reference, batch).item()
        for result, kind in ((torch.Tensor.float, torch.Tensor), (torch.Tensor.item, float)):
            for loss in self.fit(model, optimizer, self.mine(batch), result=result):
                assert isinstance(loss, kind)
                assert abs(loss - expected) <= 1e-6
        for other in (None, thing, "text", 3, torch.tensor(3), torch.ones(2)):
            assert self.fit(model, optimizer, self.mine(batch), result=lambda _, o=other: o)[0] is other

    def check_zz_one_more_optimizer_on_one_rank_disturbs_nobody(self) -> None:
        """Last, because ranks number what has no name: that of later optimizers would not meet."""

        def wrap(model, named):
            names = model.named_parameters("one_more") if named else None
            return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), names)

        for named, named_extra, of_same_model in ((False, False, True), (True, True, True), (True, False, False)):
            model, other = self.twins()
            if self.rank == 0:
                wrap(model if of_same_model else other, named_extra)
            optimizer = wrap(model, named)
            self.some_steps(model, optimizer)
            self.agree(model)
