# SPDX-License-Identifier: Apache-2.0
"""Rank 1 fails in a way that looks like a clean leave at first: leave_then_fail_worker.py HOW."""

import sys

import torch

import ronde.torch as hvd


def train() -> None:
    hvd.allreduce(torch.ones(1))
    if hvd.rank() == 1:
        if how == "exit":
            sys.exit("disk quota exceeded")
        if how == "status":
            sys.exit(5)
        raise ValueError("no such column")
    hvd.allreduce(torch.ones(1))


how = sys.argv[1]
hvd.init()
if how == "finally":
    try:
        train()
    finally:
        hvd.shutdown()
elif how == "caught":
    how = "status"
    try:
        train()
    except hvd.HorovodInternalError:
        sys.exit(9)
else:
    train()
