# SPDX-License-Identifier: Apache-2.0
"""An allgather whose output does not fit into rank 1: all ranks are told, and a new start is possible."""

import os
import resource

import torch

import ronde.torch as hvd

MIB = 1 << 20


def address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def say(text: str) -> None:
    os.write(1, f"rank {rank}: {text}\n".encode())  # in one piece


hvd.init()
rank = hvd.rank()
part = torch.ones(128 * MIB // 4)
hvd.allreduce(torch.ones(1))
limits = resource.getrlimit(resource.RLIMIT_AS)
if rank == 1:
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + 200 * MIB, limits[1]))
handles = [hvd.allgather_async(part, name="parts"), hvd.allreduce_async(torch.ones(1), name="behind")]
for handle in handles:
    try:
        hvd.synchronize(handle)
        say("no error")
    except hvd.HorovodInternalError as error:
        say(f"{type(error).__name__}: {error}")
resource.setrlimit(resource.RLIMIT_AS, limits)
hvd.shutdown()
hvd.init()
assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
say("goes on")
