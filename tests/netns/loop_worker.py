# SPDX-License-Identifier: Apache-2.0
"""Allreduces until something fails or the file FOLDER/stop is there; leaves steps.R, and error.R if it failed."""

import json
import os
import sys
import time
from pathlib import Path

import torch

import ronde.torch as hvd

folder = Path(sys.argv[1])
hvd.init()
rank, size = hvd.rank(), hvd.size()
(folder / f"pid.{rank}").write_text(str(os.getpid()))


def write(what, value):
    (folder / f".{what}.{rank}").write_text(json.dumps(value))
    os.replace(folder / f".{what}.{rank}", folder / f"{what}.{rank}")


steps = 0
try:
    while hvd.allreduce(torch.tensor([float((folder / "stop").exists())]), op=hvd.Max, name="stop")[0] == 0:
        total = hvd.allreduce(torch.full((1 << 18,), float(rank + 1)), op=hvd.Sum, name="big")
        assert total[0] == total[-1] == size * (size + 1) / 2
        steps += 1
        write("steps", steps)
except hvd.HorovodInternalError as error:
    write("error", {"time": time.monotonic(), "kind": type(error).__name__, "text": str(error)})
