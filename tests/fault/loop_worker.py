# SPDX-License-Identifier: Apache-2.0
"""Allreduces of 64 MB without end. Writes pid, steps (as they pass), and the error that ended it.
Where the test has made hold.<rank> it stays before its next one."""

import os
import time

import notes
import torch

import ronde.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
notes.write("pid", rank, os.getpid())
tensor = torch.full((16 << 20,), float(rank + 1))
steps = 0
try:
    while True:
        notes.hold(rank)
        total = hvd.allreduce(tensor, op=hvd.Sum, name="big")
        steps += 1
        assert total[0] == total[-1] == size * (size + 1) / 2, f"wrong sum {total[0]} in step {steps}"
        notes.write("steps", rank, steps)
except hvd.HorovodInternalError as error:
    notes.write("error", rank, {"time": time.monotonic(), "kind": type(error).__name__, "text": str(error)})
