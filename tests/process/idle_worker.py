# SPDX-License-Identifier: Apache-2.0
"""Does nothing for ten seconds; each rank says how often its engine's thread went to sleep meanwhile."""

import os
import time
from pathlib import Path

import torch

import ronde.torch as hvd

SECONDS = 10


def naps() -> int:
    for thread in Path("/proc/self/task").iterdir():
        if (thread / "comm").read_text().strip() == "ronde-loop":
            status = (thread / "status").read_text().splitlines()
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
    raise RuntimeError("there is no thread ronde-loop")


hvd.init()
hvd.allreduce(torch.ones(1000))
time.sleep(1)  # all come to rest
before = naps()
time.sleep(SECONDS)
os.write(1, f"{naps() - before}\n".encode())
hvd.barrier()
