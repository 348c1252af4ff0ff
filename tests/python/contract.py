# SPDX-License-Identifier: Apache-2.0
"""What every framework's adapter promises: operations × dtypes × shapes × errors, the same on each.

An adapter joins with a subclass that says how to make a tensor and how to look into one. The oracle is NumPy in
float64 (or int64), which computes what all ranks gave from what each rank would give.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int32", "int64", "uint8", "int8", "int16", "uint16"]
COMPLEX = ["complex64", "complex128"]
SHAPES = [(), (1,), (5,), (3, 7), (2, 3, 4), (0,), (4, 0, 2), (1023,), (65537,), (300000,)]


class Contract:
    """Runs on every rank of a job; see launch.py."""

    hvd: Any  # the adapter's module

    # --- what an adapter gives ---

    def make(self, values: np.ndarray, dtype: str) -> Any:
        """A tensor of the framework with these values."""
        raise NotImplementedError

    def look(self, tensor: Any) -> np.ndarray:
        """The tensor's values, in float64, complex128 or int64."""
        raise NotImplementedError

    def unsupported(self) -> Any:
        """A tensor of a dtype that is not supported, and the name of that dtype."""
        raise NotImplementedError

    # --- life ---

    def start(self) -> None:
        self.hvd.init()
        self.rank, self.size = self.hvd.rank(), self.hvd.size()

    def stop(self) -> None:
        self.hvd.shutdown()

    # --- tools ---

    def given(self, rank: int, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
        """What a rank gives: small whole numbers (so that sums are exact in every dtype), or 0 and 1 for bool."""
        draw = np.random.default_rng([seed, rank, *shape])
        high = 2 if dtype == "bool" else 4
        return draw.integers(0, high, shape)

    def all_given(self, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
        return np.stack([self.given(rank, shape, dtype, seed) for rank in range(self.size)])

    def same(self, tensor: Any, expected: np.ndarray, what: str, tolerance: float = 0.0) -> None:
        found = self.look(tensor)
        assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
        worst = np.max(np.abs(found - expected), initial=0)
        assert worst <= tolerance, f"{what}: off by {worst}, allowed {tolerance}"

    def raises(self, kind: type[BaseException], call: Any, *parts: str) -> None:
        with pytest.raises(kind) as caught:
            call()
        for part in parts:
            assert part in str(caught.value), f"{part!r} is not in {caught.value}"

    # --- topology ---

    def check_topology(self) -> None:
        hvd = self.hvd
        assert hvd.is_initialized()
        assert 0 <= self.rank < self.size
        assert (hvd.local_rank(), hvd.local_size()) == (self.rank, self.size)
        assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
        assert hvd.is_homogeneous()

    # --- allreduce ---

    def check_allreduce_sum_of_every_dtype_and_shape(self) -> None:
        for dtype in [*FLOATS, *INTEGERS]:
            for shape in SHAPES:
                tensor = self.make(self.given(self.rank, shape, dtype), dtype)
                total = self.hvd.allreduce(tensor, op=self.hvd.Sum)
                self.same(total, self.all_given(shape, dtype).sum(0), f"sum {dtype} {shape}")
                self.same(tensor, self.given(self.rank, shape, dtype), f"input of {dtype} {shape}")

    def check_allreduce_average(self) -> None:
        for dtype, tolerance in [("float32", 1e-6), ("float64", 1e-14), ("float16", 2e-3), ("bfloat16", 2e-2)]:
            tensor = self.make(self.given(self.rank, (33,), dtype), dtype)
            average = self.all_given((33,), dtype).mean(0)
            self.same(self.hvd.allreduce(tensor), average, f"average {dtype}", tolerance)

    def check_integers_average_toward_zero(self) -> None:
        for dtype in INTEGERS:
            sign = 1 if dtype.startswith("uint") else -1
            given = self.all_given((33,), dtype) * sign
            average = self.hvd.allreduce(self.make(given[self.rank], dtype), op=self.hvd.Average)
            self.same(average, np.trunc(given.sum(0) / self.size), f"average {dtype}")

    def check_min_max_product(self) -> None:
        for dtype in [*FLOATS, *INTEGERS]:
            given = self.all_given((3, 5), dtype)
            for op, oracle in [(self.hvd.Min, np.min), (self.hvd.Max, np.max), (self.hvd.Product, np.prod)]:
                result = self.hvd.allreduce(self.make(given[self.rank], dtype), op=op)
                self.same(result, oracle(given, axis=0), f"op {op} {dtype}")

    def check_bool_is_and_or(self) -> None:
        given = self.all_given((64,), "bool")
        hvd = self.hvd
        for op, oracle in [(hvd.Min, np.min), (hvd.Product, np.min), (hvd.Max, np.max), (hvd.Sum, np.max)]:
            result = hvd.allreduce(self.make(given[self.rank], "bool"), op=op)
            self.same(result, oracle(given, axis=0), f"bool op {op}")
        self.raises(ValueError, lambda: hvd.allreduce(self.make(given[self.rank], "bool"), op=hvd.Average))

    def check_complex_numbers_are_added_averaged_and_moved(self) -> None:
        hvd = self.hvd
        for dtype in COMPLEX:
            given = self.all_given((3, 5), dtype) - 2j * self.all_given((3, 5), dtype, 1)
            tensor = self.make(given[self.rank], dtype)
            self.same(hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5), given.sum(0) / 2, f"sum {dtype}")
            self.same(hvd.allreduce(tensor), given.mean(0), f"average {dtype}", 1e-6)
            self.same(hvd.broadcast(tensor, self.size - 1), given[-1], f"broadcast {dtype}")
            self.same(hvd.allgather(tensor), given.reshape(-1, 5), f"allgather {dtype}")
            for op in (hvd.Min, hvd.Max, hvd.Product):
                self.raises(ValueError, lambda op=op, tensor=tensor: hvd.allreduce(tensor, op=op), dtype)

    def check_prescale_and_postscale(self) -> None:
        for dtype in ("float32", "float64", "int32", "int64"):
            given = self.all_given((17,), dtype)
            tensor = self.make(given[self.rank], dtype)
            result = self.hvd.allreduce(tensor, op=self.hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)
            self.same(result, given.sum(0), f"scaled {dtype}", 1e-6)

    def check_integer_sum_wraps(self) -> None:
        given = np.full((4,), 200)
        result = self.hvd.allreduce(self.make(given, "uint8"), op=self.hvd.Sum)
        self.same(result, np.full((4,), 200 * self.size % 256), "uint8 wraps")

    def check_large_int64_is_exact(self) -> None:
        big = np.array([2**53 + 1, -(2**53) - 1, 2**60])
        result = self.hvd.allreduce(self.make(big, "int64"), op=self.hvd.Max)
        self.same(result, big, "int64 beyond 2^53")

    def check_in_place(self) -> None:
        tensor = self.make(self.given(self.rank, (9,), "float32"), "float32")
        result = self.hvd.allreduce_(tensor, op=self.hvd.Sum)
        assert result is tensor
        self.same(tensor, self.all_given((9,), "float32").sum(0), "in place")

    def check_the_old_average_argument(self) -> None:
        import warnings

        tensor = self.make(np.full((2,), 3), "float32")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.same(self.hvd.allreduce(tensor, average=False), np.full((2,), 3 * self.size), "average=False")
        assert [entry.category for entry in caught] == [DeprecationWarning]
        self.raises(ValueError, lambda: self.hvd.allreduce(tensor, average=True, op=self.hvd.Sum), "not both")

    # --- handles ---

    def check_many_handles_in_different_orders(self) -> None:
        names = list(range(40))
        np.random.default_rng(self.rank).shuffle(names)
        handles = {
            n: self.hvd.allreduce_async(self.make(np.full((n,), n), "float32"), name=f"many.{n}", op=self.hvd.Sum)
            for n in names
        }
        for n in sorted(handles):
            self.same(self.hvd.synchronize(handles[n]), np.full((n,), n * self.size), f"many.{n}")

    def check_poll_and_synchronize(self) -> None:
        handle = self.hvd.allreduce_async(self.make(np.ones(3), "float32"), op=self.hvd.Sum)
        while not self.hvd.poll(handle):
            pass
        self.same(self.hvd.synchronize(handle), np.full(3, self.size), "polled")
        assert self.hvd.synchronize(handle) is None
        self.raises(ValueError, lambda: self.hvd.poll(handle), str(handle))

    # --- broadcast ---

    def check_broadcast_from_every_root(self) -> None:
        for dtype in [*FLOATS, *INTEGERS, "bool"]:
            for root in range(self.size):
                for shape in ((), (7,), (0,), (2, 3)):
                    tensor = self.make(self.given(self.rank, shape, dtype, root), dtype)
                    result = self.hvd.broadcast(tensor, root)
                    self.same(result, self.given(root, shape, dtype, root), f"broadcast {dtype} from {root}")
                    self.same(tensor, self.given(self.rank, shape, dtype, root), "input of broadcast")
                    self.hvd.broadcast_(tensor, root)
                    self.same(tensor, self.given(root, shape, dtype, root), f"broadcast_ {dtype} from {root}")

    def check_root_out_of_range(self) -> None:
        for root in (-1, self.size):
            self.raises(ValueError, lambda root=root: self.hvd.broadcast(self.make(np.ones(2), "float32"), root))

    # --- allgather ---

    def check_allgather_of_uneven_rows(self) -> None:
        for dtype in [*FLOATS, *INTEGERS, "bool"]:
            for rest in ((), (3,), (2, 2)):
                rows = [(rank * 2 + 1) % 4 for rank in range(self.size)]  # 1, 3, 1, 3
                given = [self.given(rank, (rows[rank], *rest), dtype) for rank in range(self.size)]
                gathered = self.hvd.allgather(self.make(given[self.rank], dtype))
                self.same(gathered, np.concatenate(given), f"allgather {dtype} {rest}")

    def check_allgather_with_ranks_that_give_nothing(self) -> None:
        for giver in range(self.size):
            mine = np.full((3 if self.rank == giver else 0, 2), giver)
            self.same(self.hvd.allgather(self.make(mine, "float32")), np.full((3, 2), giver), "one gives")
        empty = self.hvd.allgather(self.make(np.zeros((0, 2)), "float32"))
        self.same(empty, np.zeros((0, 2)), "nobody gives")

    def check_allgather_of_changing_rows_under_one_name(self) -> None:
        for step in range(5):
            mine = np.full((step + self.rank,), step)
            total = sum(step + rank for rank in range(self.size))
            gathered = self.hvd.allgather(self.make(mine, "int32"), name="changing")
            self.same(gathered, np.full((total,), step), f"step {step}")

    def check_allgather_of_a_scalar(self) -> None:
        self.raises(ValueError, lambda: self.hvd.allgather(self.make(np.array(1), "float32")))

    # --- reducescatter ---

    def rows_of(self, count: int, rank: int) -> slice:
        """A rank's part of the rows: the first ranks get those that are left over."""
        each, left = divmod(count, self.size)
        begin = rank * each + min(rank, left)
        return slice(begin, begin + each + (rank < left))

    def check_reducescatter_of_every_dtype_and_shape(self) -> None:
        for dtype in [*FLOATS, *INTEGERS, *COMPLEX]:
            for shape in ((1,), (5,), (12,), (7, 3), (0,), (4, 0, 2), (1023, 2), (30001, 9)):
                tensor = self.make(self.given(self.rank, shape, dtype), dtype)
                mine = self.hvd.reducescatter(tensor, op=self.hvd.Sum)
                expected = self.all_given(shape, dtype).sum(0)[self.rows_of(shape[0], self.rank)]
                self.same(mine, expected, f"reducescatter {dtype} {shape}")
                self.same(tensor, self.given(self.rank, shape, dtype), f"input of {dtype} {shape}")

    def check_reducescatter_with_every_operator_and_factor(self) -> None:
        hvd = self.hvd
        given = self.all_given((7, 2), "float64")
        here = self.rows_of(7, self.rank)
        tensor = self.make(given[self.rank], "float64")
        self.same(hvd.reducescatter(tensor), given.mean(0)[here], "the default is Average", 1e-14)
        for op, oracle in [(hvd.Min, np.min), (hvd.Max, np.max), (hvd.Product, np.prod)]:
            self.same(hvd.reducescatter(tensor, op=op), oracle(given, axis=0)[here], f"op {op}")
        scaled = hvd.reducescatter(tensor, op=hvd.Sum, prescale_factor=4.0, postscale_factor=0.25)
        self.same(scaled, given.sum(0)[here], "scaled", 1e-12)
        for dtype in ("int32", "int8", "uint16"):
            counts = self.all_given((7, 2), dtype)
            average = hvd.reducescatter(self.make(counts[self.rank], dtype), op=hvd.Average)
            self.same(average, np.trunc(counts.sum(0) / self.size)[here], f"average {dtype}")

    def check_reducescatter_of_a_scalar(self) -> None:
        self.raises(ValueError, lambda: self.hvd.reducescatter(self.make(np.array(1), "float32")))

    # --- alltoall ---

    def sent(self, sender: int, receiver: int, dtype: str = "float32") -> np.ndarray:
        """The rows that a rank has for another: (sender + 2 receiver) mod 4 of them, and so for some none."""
        return self.given(sender, ((sender + 2 * receiver) % 4, 3), dtype, receiver)

    def check_alltoall_of_uneven_splits(self) -> None:
        for dtype in [*FLOATS, *INTEGERS, *COMPLEX, "bool"]:
            outgoing = [self.sent(self.rank, receiver, dtype) for receiver in range(self.size)]
            incoming = [self.sent(sender, self.rank, dtype) for sender in range(self.size)]
            for_nobody = np.ones((2, 3), dtype=int)
            tensor = self.make(np.concatenate([*outgoing, for_nobody]), dtype)
            received, rows = self.hvd.alltoall(tensor, [len(part) for part in outgoing])
            self.same(received, np.concatenate(incoming), f"alltoall {dtype}")
            self.same(rows, np.array([len(part) for part in incoming]), "received splits")

    def check_alltoall_of_equal_parts(self) -> None:
        mine = np.repeat(np.arange(self.size), 2) + 10 * self.rank
        received = self.hvd.alltoall(self.make(mine, "int64"))
        self.same(received, np.repeat(np.arange(self.size) * 10 + self.rank, 2), "equal parts")
        self.same(self.hvd.alltoall(self.make(np.zeros((0, 4)), "float32")), np.zeros((0, 4)), "nothing at all")
        pair = self.hvd.synchronize(self.hvd.alltoall_async(self.make(mine, "int64")))
        assert len(pair) == 2, "the handle gives a pair in any case"
        self.same(pair[1], np.full(self.size, 2), "rows from each")

    def check_alltoall_of_changing_splits_under_one_name(self) -> None:
        for step in range(4):
            splits = [(self.rank + receiver + step) % 3 for receiver in range(self.size)]
            tensor = self.make(np.full((sum(splits),), self.rank), "int32")
            received, rows = self.hvd.alltoall(tensor, splits, name="changing splits")
            expected = [(sender + self.rank + step) % 3 for sender in range(self.size)]
            self.same(rows, np.array(expected), f"rows in step {step}")
            self.same(received, np.repeat(np.arange(self.size), expected), f"step {step}")

    def check_alltoall_of_many_rows(self) -> None:
        splits = [100_000 + 1000 * receiver for receiver in range(self.size)]
        mine = np.concatenate([np.full((n,), 100 * self.rank + r) for r, n in enumerate(splits)])
        received, _ = self.hvd.alltoall(self.make(mine, "float32"), splits)
        here = splits[self.rank]
        self.same(received, np.repeat(100.0 * np.arange(self.size) + self.rank, here), "many rows")

    def check_alltoall_between_two_ranks_only(self) -> None:
        """All rows of each rank are for the last one."""
        splits = [0] * (self.size - 1) + [5]
        received, rows = self.hvd.alltoall(self.make(np.full((5,), self.rank), "int32"), splits)
        last = self.rank == self.size - 1
        self.same(rows, np.full(self.size, 5 if last else 0), "rows")
        self.same(received, np.repeat(np.arange(self.size), 5 if last else 0), "to the last rank")

    def check_wrong_splits(self) -> None:
        ones = self.make(np.ones((3 * self.size, 2)), "float32")
        wrong = [[1] * (self.size + 1), [-1] + [1] * (self.size - 1), [3 * self.size + 1] + [0] * (self.size - 1)]
        for splits in wrong:
            self.raises(ValueError, lambda splits=splits: self.hvd.alltoall(ones, splits), "split")
        if self.size > 1:
            uneven = self.make(np.ones((self.size + 1,)), "float32")
            self.raises(ValueError, lambda: self.hvd.alltoall(uneven), f"{self.size + 1} rows", f"{self.size} ranks")
        self.raises(ValueError, lambda: self.hvd.alltoall(self.make(np.array(1), "float32")))
        self.same(self.hvd.alltoall(ones), np.ones((3 * self.size, 2)), "the next operation")

    # --- groups ---

    def check_grouped_allreduce(self) -> None:
        hvd = self.hvd
        kinds = [((3,), "float32"), ((2, 2), "float64"), ((), "int32"), ((0,), "float32"), ((70000,), "float32")]
        for name in (None, "group"):
            for _ in range(2):
                tensors = [self.make(self.given(self.rank, *kind), kind[1]) for kind in kinds]
                sums = hvd.grouped_allreduce(tensors, name=name, op=hvd.Sum)
                for total, tensor, kind in zip(sums, tensors, kinds, strict=True):
                    self.same(total, self.all_given(*kind).sum(0), f"grouped sum {kind}")
                    self.same(tensor, self.given(self.rank, *kind), f"input of {kind}")
                in_place = hvd.grouped_allreduce_(tensors, name=name, op=hvd.Sum)
                assert all(result is tensor for result, tensor in zip(in_place, tensors, strict=True))
                self.same(tensors[1], self.all_given(*kinds[1]).sum(0), "in place")

    def check_grouped_allgather_and_reducescatter(self) -> None:
        hvd = self.hvd
        given = [self.given(self.rank, (self.rank + k, 2), "float32", k) for k in range(3)]
        gathered = hvd.grouped_allgather([self.make(values, "float32") for values in given])
        for k, found in enumerate(gathered):
            all_rows = [self.given(rank, (rank + k, 2), "float32", k) for rank in range(self.size)]
            self.same(found, np.concatenate(all_rows), f"grouped allgather {k}")
        tensors = [self.make(self.given(self.rank, (5, k), "float32"), "float32") for k in range(3)]
        for k, found in enumerate(hvd.grouped_reducescatter(tensors, op=hvd.Sum)):
            expected = self.all_given((5, k), "float32").sum(0)[self.rows_of(5, self.rank)]
            self.same(found, expected, f"grouped reducescatter {k}")

    def check_one_handle_for_a_group(self) -> None:
        hvd = self.hvd
        handle = hvd.grouped_allreduce_async([self.make(np.full(k, k), "float32") for k in range(4)], op=hvd.Sum)
        while not hvd.poll(handle):
            pass
        for k, found in enumerate(hvd.synchronize(handle)):
            self.same(found, np.full(k, k * self.size), f"tensor {k}")
        assert hvd.synchronize(handle) is None

    def check_empty_groups(self) -> None:
        hvd = self.hvd
        assert list(hvd.grouped_allreduce([])) == list(hvd.grouped_allgather([])) == []
        handle = hvd.grouped_reducescatter_async([])
        assert hvd.poll(handle)
        assert hvd.synchronize(handle) == []

    def check_groups_that_differ_between_ranks(self) -> None:
        if self.size == 1:
            return
        hvd = self.hvd
        width = 4 if self.rank == self.size - 1 else 3
        tensors = [self.make(np.ones(5), "float32"), self.make(np.ones(width), "float32")]
        self.raises(hvd.MismatchError, lambda: hvd.grouped_allreduce(tensors, name="clash.group"), "clash.group_")
        self.raises(
            hvd.MismatchError,
            lambda: hvd.grouped_allgather([self.make(np.ones((1, width)), "float32")], name="clash.rows"),
            "clash.rows_1of1",
        )
        self.same(hvd.grouped_allreduce(tensors[:1], op=hvd.Max)[0], np.ones(5), "the next operation")

    # --- process sets ---

    def check_operations_of_a_process_set(self) -> None:
        hvd = self.hvd
        last = self.size - 1
        some = hvd.add_process_set(range(1, self.size)) if self.size > 1 else hvd.global_process_set
        if some.included():
            count = some.size()
            given = self.given(self.rank, (count * 2,), "float32")
            tensor = self.make(given, "float32")
            every = np.stack([self.given(rank, (count * 2,), "float32") for rank in some.ranks])
            here = some.rank()
            self.same(hvd.allreduce(tensor, process_set=some), every.mean(0), "average over the set", 1e-6)
            self.same(hvd.allgather(tensor, process_set=some), every.reshape(-1), "allgather")
            self.same(hvd.broadcast(tensor, last, process_set=some), every[-1], "the root is a rank of the job")
            scattered = hvd.reducescatter(tensor, op=hvd.Sum, process_set=some)
            self.same(scattered, every.sum(0)[2 * here : 2 * here + 2], "reducescatter")
            self.same(hvd.alltoall(tensor, process_set=some), every[:, 2 * here : 2 * here + 2].reshape(-1), "alltoall")
            grouped = hvd.grouped_allreduce([tensor, tensor], op=hvd.Sum, process_set=some)
            self.same(grouped[1], every.sum(0), "grouped")
            assert hvd.broadcast_object(self.rank, last, process_set=some) == last
            assert hvd.allgather_object(self.rank, process_set=some) == some.ranks
            hvd.barrier(process_set=some)
            if self.size > 1:
                self.raises(ValueError, lambda: hvd.broadcast(tensor, 0, process_set=some), "root rank 0")
        else:
            ones = self.make(np.ones(2), "float32")
            self.raises(ValueError, lambda: hvd.allreduce(ones, process_set=some), "rank 0 is not in ProcessSet(")
            self.raises(ValueError, some.rank, "rank 0")
        self.same(hvd.allreduce(self.make(np.ones(2), "float32"), op=hvd.Sum), np.full(2, self.size), "all ranks")
        assert hvd.remove_process_set(some) is (self.size > 1)

    def check_ids_texts_and_removal_of_process_sets(self) -> None:
        hvd = self.hvd
        assert hvd.global_process_set.process_set_id == 0
        assert hvd.global_process_set.ranks == list(range(self.size))
        assert not hvd.remove_process_set(hvd.global_process_set)
        if self.size < 3:
            return
        first, second = hvd.add_process_set([0, 1]), hvd.add_process_set([2, 0])
        assert str(second) == "ProcessSet(process_set_id=2, ranks=[0, 2], mpi_comm=None)"
        assert hvd.get_process_set_ids_and_ranks() == {0: list(range(self.size)), 1: [0, 1], 2: [0, 2]}
        assert hvd.remove_process_set(first)
        assert first.process_set_id is None
        assert not hvd.remove_process_set(first)
        ones = self.make(np.ones(2), "float32")
        self.raises(ValueError, lambda: hvd.allreduce(ones, process_set=first), "not registered")
        third = hvd.add_process_set(hvd.ProcessSet([1, 2]))
        assert third.process_set_id == 1, "a freed id is used again"
        if third.included():
            self.same(hvd.allreduce(ones, op=hvd.Sum, process_set=third), np.full(2, 2), "under the id of another")
        hvd.remove_process_set(third)
        hvd.remove_process_set(second)

    def check_process_sets_that_cannot_be(self) -> None:
        hvd = self.hvd
        for wrong in ([], [self.size], [-1], [0, 0], ["a"], [True], 5, list(range(self.size))):
            self.raises(ValueError, lambda wrong=wrong: hvd.add_process_set(wrong))
        if self.size > 2:
            odd = self.rank == self.size - 1
            self.raises(hvd.MismatchError, lambda: hvd.add_process_set([0, 1] if odd else [0, 2]), "add_process_set")
        self.raises(ValueError, lambda: hvd.allreduce(self.make(np.ones(1), "float32"), process_set=3), "ProcessSet")

    def check_overlapping_process_sets_at_once(self) -> None:
        """Each rank submits to its sets in its own order, and a set that waits holds up no other."""
        if self.size < 3:
            return
        hvd = self.hvd
        pairs = [hvd.add_process_set([i, (i + 1) % self.size]) for i in range(self.size)]
        mine = [pair for pair in pairs if pair.included()]
        order = mine if self.rank % 2 else mine[::-1]
        handles = {
            (pair, step): hvd.allreduce_async(
                self.make(np.full(50, self.rank), "float32"), name=f"s{step}", op=hvd.Sum, process_set=pair
            )
            for step in range(10)
            for pair in order
        }
        self.same(hvd.allreduce(self.make(np.ones(1), "float32"), op=hvd.Sum), np.full(1, self.size), "all ranks")
        for (pair, step), handle in handles.items():
            self.same(hvd.synchronize(handle), np.full(50, sum(pair.ranks)), f"{pair} step {step}")
        for pair in pairs:
            hvd.remove_process_set(pair)

    # --- barrier and objects ---

    def check_barrier(self) -> None:
        for _ in range(3):
            assert self.hvd.barrier() is None

    def check_broadcast_object(self) -> None:
        for root in range(self.size):
            mine = {"rank": self.rank, "text": "ä" * 1000, "nested": [1, (2, 3)]}
            assert self.hvd.broadcast_object(mine, root)["rank"] == root
            assert self.hvd.broadcast_object(mine, root, name="object")["nested"] == [1, (2, 3)]
        assert self.hvd.broadcast_object(None if self.rank else b"", 0) == b""

    def check_broadcast_of_an_object_that_cannot_be_pickled(self) -> None:
        error = TypeError if self.rank == 0 else self.hvd.HorovodInternalError
        self.raises(error, lambda: self.hvd.broadcast_object(threading.Lock(), 0))
        assert self.hvd.broadcast_object(self.rank, 0) == 0

    def check_allgather_object(self) -> None:
        gathered = self.hvd.allgather_object("x" * (1000 * self.rank))
        assert gathered == ["x" * (1000 * rank) for rank in range(self.size)]
        assert self.hvd.allgather_object(self.rank, name="number") == list(range(self.size))

    # --- errors ---

    def check_unsupported_dtype(self) -> None:
        tensor, name = self.unsupported()
        calls = [
            lambda: self.hvd.allreduce(tensor),
            lambda: self.hvd.allreduce_(tensor),
            lambda: self.hvd.broadcast(tensor, 0),
            lambda: self.hvd.allgather(tensor),
            lambda: self.hvd.reducescatter(tensor),
            lambda: self.hvd.alltoall(tensor),
            lambda: self.hvd.grouped_allreduce([tensor]),
        ]
        for call in calls:
            self.raises(ValueError, call, name, "float32")

    def check_a_name_with_a_null_character(self) -> None:
        """What follows it would not tell names apart."""
        for name in ("null\0", "null\0x" if self.rank else "null\0y"):
            self.raises(ValueError, lambda name=name: self.hvd.allreduce(self.make(np.ones(2), "float32"), name=name))
        self.raises(ValueError, lambda: self.hvd.broadcast_object(1, 0, name="null\0x"))

    def check_name_in_flight(self) -> None:
        if self.size == 1:
            return  # it is complete at once
        hvd = self.hvd
        last = self.rank == self.size - 1
        handle = None
        if not last:
            handle = hvd.allreduce_async(self.make(np.ones(3), "float32"), name="flight", op=hvd.Sum)
            again = lambda: hvd.allreduce_async(self.make(np.ones(3), "float32"), name="flight")  # noqa: E731
            self.raises(ValueError, again, "flight")
        hvd.barrier()
        if last:
            handle = hvd.allreduce_async(self.make(np.ones(3), "float32"), name="flight", op=hvd.Sum)
        self.same(hvd.synchronize(handle), np.full(3, self.size), "the first one goes on")

    def check_mismatches_are_told_on_every_rank(self) -> None:
        if self.size == 1:
            return
        hvd = self.hvd
        odd = self.rank == self.size - 1

        def shape() -> Any:
            return hvd.allreduce(self.make(np.ones(4 if odd else 3), "float32"), name="clash.shape")

        def dtype() -> Any:
            return hvd.allreduce(self.make(np.ones(3), "float64" if odd else "float32"), name="clash.dtype")

        def reduce_op() -> Any:
            op = hvd.Max if odd else hvd.Min
            return hvd.allreduce(self.make(np.ones(3), "float32"), name="clash.op", op=op)

        def scale() -> Any:
            return hvd.allreduce(self.make(np.ones(3), "float32"), name="clash.scale", prescale_factor=1.0 + odd)

        def root() -> Any:
            return hvd.broadcast(self.make(np.ones(3), "float32"), int(odd), name="clash.root")

        def operation() -> Any:
            tensor = self.make(np.ones(3), "float32")
            return hvd.allgather(tensor, name="clash.kind") if odd else hvd.allreduce(tensor, name="clash.kind")

        def columns() -> Any:
            return hvd.allgather(self.make(np.ones((2, 4 if odd else 3)), "float32"), name="clash.columns")

        clashes = {"shape": shape, "dtype": dtype, "op": reduce_op, "scale": scale, "root": root}
        for what, call in {**clashes, "kind": operation, "columns": columns}.items():
            self.raises(hvd.MismatchError, call, f"clash.{what}")
            total = hvd.allreduce(self.make(np.ones(3), "float32"), op=hvd.Sum)
            self.same(total, np.full(3, self.size), f"after clash.{what}")

    def check_results_are_equal_on_all_ranks_bit_by_bit(self) -> None:
        values = np.random.default_rng(self.rank).standard_normal(10007)
        for dtype in FLOATS:
            total = self.look(self.hvd.allreduce(self.make(values, dtype), op=self.hvd.Sum))
            everywhere = self.hvd.allgather_object(total.tobytes())
            assert all(other == everywhere[0] for other in everywhere), dtype

    # --- life, last because it ends the engine ---

    def check_zz_shutdown_and_init_again(self) -> None:
        for _ in range(3):
            self.hvd.shutdown()
            self.hvd.shutdown()
            assert not self.hvd.is_initialized()
            self.raises(ValueError, self.hvd.rank)
            self.raises(self.hvd.HorovodInternalError, lambda: self.hvd.allreduce(self.make(np.ones(2), "float32")))
            self.hvd.init()
            self.hvd.init()
            assert (self.hvd.rank(), self.hvd.size()) == (self.rank, self.size)
            total = self.hvd.allreduce(self.make(np.ones(2), "float32"), op=self.hvd.Sum)
            self.same(total, np.full(2, self.size), "after init")

    def check_zz_process_sets_of_init(self) -> None:
        hvd = self.hvd
        if self.size < 3:
            return
        pair, other = hvd.ProcessSet([1, 0]), hvd.ProcessSet([2])
        hvd.shutdown()
        assert pair.included() is None
        hvd.init(process_sets=[pair, other])
        assert (pair.process_set_id, other.process_set_id) == (1, 2)
        if pair.included():
            total = hvd.allreduce(self.make(np.ones(2), "float32"), op=hvd.Sum, process_set=pair)
            self.same(total, np.full(2, 2), "a set given to init")
        hvd.shutdown()
        assert (pair.process_set_id, other.process_set_id) == (None, None)
        self.raises(ValueError, lambda: hvd.init(process_sets=[[0, 1], [1, 0]]), "number 1", "already")
        assert not hvd.is_initialized()
        hvd.init(process_sets="dynamic")
