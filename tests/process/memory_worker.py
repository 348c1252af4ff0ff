# SPDX-License-Identifier: Apache-2.0
"""Sums of every size; rank 0 says that they were right, and over what they went."""

import torch

import ronde.torch as hvd
from ronde.core import engine

hvd.init()
for size in (1, 1000, 5_000_000):
    total = hvd.allreduce(torch.full((size,), float(hvd.rank() + 1)), op=hvd.Sum)
    assert torch.all(total == hvd.size() * (hvd.size() + 1) / 2)
hvd.barrier()
if hvd.rank() == 0:
    print("sums are right", engine.counters()["data_bytes_sent"] > 0)
hvd.shutdown()
