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
