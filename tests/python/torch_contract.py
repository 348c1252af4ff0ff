# SPDX-License-Identifier: Apache-2.0
"""PyTorch's adapter under the contract, and what only PyTorch promises: gradients, layouts, staging."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from contract import Contract

import ronde.torch as hvd
from ronde.torch import placement


class TorchContract(Contract):
    hvd = hvd

    def make(self, values: np.ndarray, dtype: str) -> torch.Tensor:
        return torch.tensor(np.asarray(values)).to(getattr(torch, dtype))

    def look(self, tensor: torch.Tensor) -> np.ndarray:
        kinds = {tensor.is_floating_point(): torch.float64, tensor.is_complex(): torch.complex128}
        return tensor.detach().to(kinds.get(True, torch.int64)).numpy()

    def unsupported(self) -> Any:
        return torch.zeros(2, dtype=torch.float8_e5m2), "float8_e5m2"

    # --- gradients ---

    def check_gradient_of_allreduce(self) -> None:
        for op, factor in ((hvd.Sum, self.size), (hvd.Average, 1)):
            x = torch.full((2, 3), float(self.rank), dtype=torch.float64, requires_grad=True)
            y = hvd.allreduce(x, op=op, prescale_factor=3.0, postscale_factor=0.5)
            weight = torch.full((2, 3), self.rank + 1.0, dtype=torch.float64)
            (y * weight).sum().backward()
            mean = (self.size + 1) / 2
            self.same(x.grad, np.full((2, 3), 1.5 * mean * factor), f"gradient of op {op}", 1e-12)

    def check_gradient_of_named_allreduce_and_of_its_gradient(self) -> None:
        x = torch.full((3,), 2.0, dtype=torch.float64, requires_grad=True)
        y = hvd.allreduce(x, name="twice", op=hvd.Sum)
        (first,) = torch.autograd.grad((y**2).sum(), x, create_graph=True)
        self.same(first, np.full(3, 4.0 * self.size**2), "first", 1e-12)
        (second,) = torch.autograd.grad(first.sum(), x)
        self.same(second, np.full(3, 2.0 * self.size**2), "second", 1e-12)

    def check_min_and_max_have_no_gradient(self) -> None:
        x = torch.ones(2, requires_grad=True)
        y = hvd.allreduce(x, op=hvd.Max)
        self.raises(NotImplementedError, lambda: y.sum().backward(), "Max")

    def check_gradient_of_allgather(self) -> None:
        x = torch.full((self.rank + 1, 2), 1.0, dtype=torch.float64, requires_grad=True)
        y = hvd.allgather(x)
        rows = torch.arange(len(y), dtype=torch.float64)[:, None]
        (y * rows * (self.rank + 1)).sum().backward()
        before = self.rank * (self.rank + 1) // 2
        mine = np.arange(before, before + self.rank + 1)[:, None] * np.ones((1, 2))
        self.same(x.grad, mine * (self.size + 1) / 2, "gradient of allgather", 1e-12)

    def check_gradient_of_broadcast(self) -> None:
        root = self.size - 1
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        (hvd.broadcast(x, root) * (self.rank + 1)).sum().backward()
        expected = (self.size + 1) / 2 if self.rank == root else 0
        self.same(x.grad, np.full(3, expected), "gradient of broadcast", 1e-12)

    def check_gradient_of_reducescatter(self) -> None:
        rows = 2 * self.size + 1
        for op, factor in ((hvd.Sum, 1.0), (hvd.Average, 1.0 / self.size)):
            for name in (None, f"scattered.{op}"):
                x = torch.ones(rows, 2, dtype=torch.float64, requires_grad=True)
                y = hvd.reducescatter(x, name=name, op=op, prescale_factor=3.0, postscale_factor=0.5)
                (y * (self.rank + 1)).sum().backward()
                weights = np.zeros((rows, 2))
                for rank in range(self.size):
                    weights[self.rows_of(rows, rank)] = rank + 1
                self.same(x.grad, 1.5 * factor * weights, f"gradient of op {op}", 1e-12)
        y = hvd.reducescatter(x, op=hvd.Min)
        self.raises(NotImplementedError, lambda: y.sum().backward(), "Min")

    def check_gradient_of_alltoall(self) -> None:
        splits = torch.tensor([receiver + 1 for receiver in range(self.size)])
        x = torch.ones(int(splits.sum()) + 1, 2, dtype=torch.float64, requires_grad=True)
        y, rows = hvd.alltoall(x, splits)
        assert (rows.dtype, rows.requires_grad) == (torch.int32, False)
        (y * (self.rank + 1)).sum().backward()
        expected = np.concatenate([*(np.full((r + 1, 2), r + 1) for r in range(self.size)), np.zeros((1, 2))])
        self.same(x.grad, expected, "gradient of alltoall", 1e-12)

    def check_gradients_of_groups(self) -> None:
        mean = (self.size + 1) / 2
        x, z = (torch.ones(n, dtype=torch.float64, requires_grad=True) for n in (3, 2 * self.size))
        both = hvd.grouped_allreduce([x, z], name="group with gradients", op=hvd.Sum, prescale_factor=2.0)
        (sum(part.sum() for part in both) * (self.rank + 1)).backward()
        self.same(x.grad, np.full(3, 2 * mean * self.size), "grouped allreduce", 1e-12)
        self.same(z.grad, np.full(2 * self.size, 2 * mean * self.size), "grouped allreduce", 1e-12)
        x.grad = z.grad = None
        both = hvd.grouped_allgather([x, z])
        (sum(part.sum() for part in both) * (self.rank + 1)).backward()
        self.same(x.grad, np.full(3, mean), "grouped allgather", 1e-12)
        x.grad = z.grad = None
        _, scattered = hvd.grouped_reducescatter([x, z], op=hvd.Sum)
        (scattered.sum() * (self.rank + 1)).backward()
        self.same(z.grad, np.repeat(np.arange(self.size) + 1.0, 2), "grouped reducescatter", 1e-12)

    def check_splits_as_tensors(self) -> None:
        mine = torch.arange(self.size, dtype=torch.float32)
        for splits in (torch.ones(self.size, dtype=torch.int32), torch.ones(self.size, dtype=torch.int64)):
            received, rows = hvd.alltoall(mine, splits)
            self.same(received, np.full(self.size, self.rank), "splits of a tensor")
            assert rows.device == splits.device
        for wrong in (torch.ones(self.size), torch.ones(self.size, 1, dtype=torch.int32)):
            self.raises(ValueError, lambda wrong=wrong: hvd.alltoall(mine, wrong), "splits")

    def check_lazily_conjugated_tensors(self) -> None:
        x = torch.tensor([1 + 2j, 3 - 4j]).conj()
        assert x.is_conj()
        self.same(hvd.allreduce(x, op=hvd.Sum), self.size * np.array([1 - 2j, 3 + 4j]), "sum of conjugates")
        hvd.allreduce_(x, op=hvd.Sum)
        self.same(x.resolve_conj(), self.size * np.array([1 - 2j, 3 + 4j]), "in place")

    def check_compression(self) -> None:
        x = torch.full((3,), 1.0 + self.rank)
        for compression in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
            y = hvd.allreduce(x, compression=compression)
            assert y.dtype == torch.float32
            self.same(y, np.full(3, (self.size + 1) / 2), f"{compression}")

    # --- layouts ---

    def check_tensors_that_are_not_contiguous(self) -> None:
        for cut in (
            lambda: torch.arange(12.0).reshape(3, 4).t(),
            lambda: torch.arange(24.0).reshape(4, 6)[:, ::2],
            lambda: torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last),
        ):
            values = cut().numpy().copy()
            for rank_dependent in (cut() + self.rank,):
                expected = values * self.size + sum(range(self.size))
                self.same(hvd.allreduce(rank_dependent, op=hvd.Sum), expected, "out of place")
                strides = rank_dependent.stride()
                result = hvd.allreduce_(rank_dependent, op=hvd.Sum)
                assert result is rank_dependent
                assert result.stride() == strides
                self.same(result, expected, "in place")
        whole = torch.zeros(4, 4)
        whole[:, 1] = self.rank
        hvd.broadcast_(whole[:, 1], self.size - 1)
        self.same(whole.sum(0), np.array([0, 4.0 * (self.size - 1), 0, 0]), "a column of a matrix")

    def check_in_place_tells_autograd(self) -> None:
        x = torch.ones(3, requires_grad=True)
        y = x * 1
        loss = (y * y).sum()  # saves y
        hvd.allreduce_(y, op=hvd.Sum)
        self.raises(RuntimeError, loss.backward, "modified by an inplace operation")

    def check_sparse_and_meta_tensors(self) -> None:
        self.raises(ValueError, lambda: hvd.allreduce(torch.eye(3).to_sparse()), "sparse")
        self.raises(ValueError, lambda: hvd.allreduce(torch.ones(3, device="meta")), "meta")

    def check_the_staged_way_with_cpu_tensors(self) -> None:
        """Without a GPU: CPU tensors are made to take the way of CUDA tensors."""
        chosen = placement.is_staged
        placement.is_staged = lambda device_type: device_type == "cpu"
        try:
            x = torch.full((2, 3), float(self.rank + 1))
            total = self.size * (self.size + 1) / 2
            self.same(hvd.allreduce(x, op=hvd.Sum), np.full((2, 3), total), "out of place")
            hvd.allreduce_(x, op=hvd.Sum)
            self.same(x, np.full((2, 3), total), "in place")
            rows = hvd.allgather(torch.full((2,), float(self.rank)))
            self.same(rows, np.repeat(np.arange(self.size), 2), "allgather")
            self.same(hvd.broadcast_(torch.tensor(self.rank), 0), np.array(0), "broadcast")
        finally:
            placement.is_staged = chosen

    def check_another_default_device(self) -> None:
        ones, empty = torch.ones(3), torch.ones(0, 2)
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
        if self.rank == 0:
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        torch.set_default_device("meta")
        try:
            self.same(hvd.allreduce(ones), np.ones(3), "allreduce")
            self.same(hvd.broadcast(ones, 0), np.ones(3), "broadcast")
            self.same(hvd.allgather(ones), np.ones(3 * self.size), "allgather")
            self.same(hvd.allgather(empty), np.ones((0, 2)), "empty allgather")
            self.same(hvd.allreduce_(torch.ones(3, 2, device="cpu").t()), np.ones((2, 3)), "in place")
            assert hvd.allgather_object(self.rank) == list(range(self.size))
            hvd.broadcast_parameters(model.state_dict(), 0)
            hvd.broadcast_optimizer_state(optimizer, 0)
        finally:
            torch.set_default_device(None)
        assert all(tensor.device.type == "cpu" for value in optimizer.state.values() for tensor in value.values())

    def check_a_gathered_tensor_outlives_its_handle(self) -> None:
        parts = [hvd.allgather(torch.full((1000,), float(step))) for step in range(20)]
        for step, part in enumerate(parts):
            self.same(part.clone(), np.full(1000 * self.size, step), f"step {step}")
            part += 1  # its memory is ordinary memory

    # --- what is no tensor ---

    def check_what_is_no_tensor_is_told_by_function_argument_and_type(self) -> None:
        for function in (hvd.allreduce, hvd.allreduce_, hvd.allreduce_async, hvd.allreduce_async_):
            self.refuses(function, [1, 2], op=hvd.Sum)
        for function in (hvd.broadcast, hvd.broadcast_, hvd.broadcast_async, hvd.broadcast_async_):
            self.refuses(function, np.ones(2), root_rank=0)
        for function in (hvd.allgather, hvd.allgather_async):
            self.refuses(function, None, name="rows")
        for function in (hvd.reducescatter, hvd.reducescatter_async, hvd.alltoall, hvd.alltoall_async):
            self.refuses(function, "x")
        self.refuses(hvd.allreduce, [1, 2], compression=hvd.Compression.fp16)
        self.same(hvd.allreduce(torch.ones(2), op=hvd.Sum), np.full(2, self.size), "the next operation")

    def refuses(self, function: Any, wrong: Any, **options: Any) -> None:
        """On one rank only, so that a submission in spite of the error would be seen by the others."""
        if self.rank == 0:
            told = f"{function.__name__}: the argument 'tensor' must be a torch.Tensor, not {type(wrong).__name__}"
            self.raises(TypeError, lambda: function(wrong, **options), told)

    # --- many bytes ---

    def check_bytes_of_some_megabytes(self) -> None:
        x = torch.arange(3_000_001, dtype=torch.float32) % 1000 + self.rank
        expected = x.numpy().astype(np.float64) * self.size
        expected += sum(rank - self.rank for rank in range(self.size))
        self.same(hvd.allreduce(x, op=hvd.Sum), expected, "12 MB")
        data = bytes(range(256)) * 20_000
        assert hvd.broadcast_object(data if self.rank == 0 else None, 0) == data
