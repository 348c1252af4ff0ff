# SPDX-License-Identifier: Apache-2.0
"""Ronde for PyTorch: ``import ronde.torch as hvd``.

The names and their meaning are those that Horovod's users know. Nothing here is compiled against PyTorch: the
engine gets addresses, and works on any PyTorch from 2.1 on.
"""

from ronde.core.engine import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)
from ronde.core.errors import (
    AbortedError,
    DeadlineError,
    EngineError,
    HorovodInternalError,
    MismatchError,
    NotInitializedError,
    PeerLostError,
    RankLeftError,
    ResourceExhaustedError,
    RondeError,
    SystemCallError,
    UnsupportedError,
)
from ronde.core.handles import poll, synchronize
from ronde.core.ops import Average, Max, Min, Product, Sum
from ronde.core.process_sets import (
    ProcessSet,
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    remove_process_set,
)
from ronde.torch.allgather import allgather, allgather_async
from ronde.torch.allreduce import allreduce, allreduce_, allreduce_async, allreduce_async_
from ronde.torch.alltoall import alltoall, alltoall_async
from ronde.torch.barrier import barrier
from ronde.torch.broadcast import broadcast, broadcast_, broadcast_async, broadcast_async_
from ronde.torch.compression import Compression
from ronde.torch.functions import (
    allgather_object,
    broadcast_object,
    broadcast_parameters,
)
from ronde.torch.grouped import (
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
)
from ronde.torch.optimizer import DistributedOptimizer
from ronde.torch.optimizer_state import broadcast_optimizer_state
from ronde.torch.reducescatter import reducescatter, reducescatter_async
from ronde.torch.sync_batch_norm import SyncBatchNorm

__all__ = [
    "AbortedError",
    "Average",
    "Compression",
    "DeadlineError",
    "DistributedOptimizer",
    "EngineError",
    "HorovodInternalError",
    "Max",
    "Min",
    "MismatchError",
    "NotInitializedError",
    "PeerLostError",
    "ProcessSet",
    "Product",
    "RankLeftError",
    "ResourceExhaustedError",
    "RondeError",
    "Sum",
    "SyncBatchNorm",
    "SystemCallError",
    "UnsupportedError",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "cross_rank",
    "cross_size",
    "get_process_set_ids_and_ranks",
    "global_process_set",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "remove_process_set",
    "shutdown",
    "size",
    "synchronize",
]
