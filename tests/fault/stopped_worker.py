# SPDX-License-Identifier: Apache-2.0
"""Rank 2 is stopped while the others submit many small operations of new names; then it submits its own."""

import os

import notes
import torch

import ronde.torch as hvd

STOPPED = 2
OPERATIONS = 20_000  # of about 60 bytes of control each: many times what a control link may hold unread

hvd.init()
rank, size = hvd.rank(), hvd.size()
hvd.allreduce(torch.ones(1), name="everybody is here")
notes.write("pid", rank, os.getpid())
notes.wait_for("go on" if rank == STOPPED else "stopped")
handles = [
    hvd.allreduce_async(torch.full((3,), float(rank + i)), op=hvd.Sum, name=f"a rather long name of a small tensor {i}")
    for i in range(OPERATIONS)
]
notes.write("submitted", rank, True)
for i, handle in enumerate(handles):
    want = float(size * i + size * (size - 1) // 2)
    got = hvd.synchronize(handle)
    assert bool((got == want).all()), f"operation {i}: {got} instead of {want}"
notes.write("right", rank, True)
hvd.shutdown()
