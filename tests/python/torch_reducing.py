# SPDX-License-Identifier: Apache-2.0
"""How gradients get to the other ranks: their names, compressors, closures, and what is refused before they set out.
Runs on every rank; see launch.py.
"""

from __future__ import annotations

import torch
from torch_tools import TorchSuite, batches, loss_of, worst

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
    # --- compressors ---

    def check_a_compressor_that_works_in_place_is_undone(self) -> None:
        model, reference = self.twins()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), compression=InPlaceCompressor)
        plain = torch.optim.SGD(reference.parameters(), lr=0.1)
        for batch in batches(3):
            optimizer.zero_grad()
            loss_of(model, self.mine(batch)).backward()
            optimizer.step()
            plain.zero_grad()
            loss_of(reference, batch).backward()
            plain.step()
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
