# SPDX-License-Identifier: Apache-2.0
"""The PyTorch adapter where it needs no other rank: compression, dtypes, placement, names, and size 1."""

import copy
import pickle
import warnings

import pytest
import torch

import ronde.torch as hvd
from ronde.core.ops import DTYPES
from ronde.torch import placement
from ronde.torch.dtypes import CODE_OF, dtype_code
from ronde.torch.gradient_names import gradient_name
from ronde.torch.optimizer import _named


@pytest.fixture
def alone(monkeypatch):
    """This process as rank 0 of 1."""
    for name in ("RONDE_RANK", "RONDE_SIZE", "RONDE_STORE"):
        monkeypatch.delenv(name, raising=False)
    hvd.init()
    yield
    hvd.shutdown()


@pytest.mark.parametrize(
    ("compression", "dtype"), [(hvd.Compression.fp16, torch.float16), (hvd.Compression.bf16, torch.bfloat16)]
)
def test_compression_casts_floats_and_leaves_the_rest(compression, dtype):
    x = torch.tensor([1.0, 2.5, -3.0])
    small, context = compression.compress(x)
    assert small.dtype == dtype
    back = compression.decompress(small, context)
    assert back.dtype == torch.float32
    assert torch.equal(back, x)
    whole = torch.tensor([1, 2])
    same, context = compression.compress(whole)
    assert same is whole
    assert compression.decompress(same, context).dtype == torch.int64


def test_no_compression_is_the_same_tensor():
    x = torch.ones(2)
    assert hvd.Compression.none.compress(x)[0] is x
    assert hvd.Compression.none.decompress(x, None) is x


def test_dtypes():
    assert len(CODE_OF) == len(DTYPES)
    assert dtype_code(torch.zeros(1, dtype=torch.bfloat16)) == 3
    with pytest.raises(ValueError, match=r"torch.complex32 .*float32.*bool"):
        dtype_code(torch.zeros(1, dtype=torch.complex32))


def test_cuda_tensors_are_staged_and_others_are_not():
    assert placement.is_staged("cuda")
    assert not placement.is_staged("cpu")
    assert not placement.is_staged("mps")


def test_staging_is_announced_once(alone, monkeypatch, capfd):
    monkeypatch.setattr(placement, "is_staged", lambda device_type: device_type == "cpu")
    monkeypatch.setattr(placement._Told, "staging", False)
    for _ in range(2):
        x = torch.arange(6.0).reshape(2, 3).t()
        placed = placement.place(x)
        assert (placed.direct, placed.on_gpu) == (False, True)
        assert placed.host.is_contiguous()
        assert torch.equal(placed.host, x)
    assert capfd.readouterr().err.count("pinned host memory") == 1


def test_dense_cpu_tensors_are_used_as_they_are():
    x = torch.ones(2, 3)
    assert placement.place(x).host is x
    assert placement.place(x).direct
    assert not placement.place(x.t()).direct
    negative = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert negative.is_neg()
    assert torch.equal(placement.place(negative).host, negative.resolve_neg())


def test_names_of_parameters():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert [name for name, _ in _named(optimizer, None)] == ["noname.0.0", "noname.0.1"]
    assert [name for name, _ in _named(optimizer, model.named_parameters())] == ["weight", "bias"]
    with pytest.raises(ValueError, match="name all of them"):
        _named(optimizer, list(model.named_parameters())[:1])
    with pytest.raises(ValueError, match="a name twice: x"):
        _named(optimizer, [("x", p) for p in model.parameters()])
    with pytest.raises(ValueError, match="tuples"):
        _named(optimizer, list(model.parameters()))


def test_names_of_gradients():
    one, other, third = (torch.nn.Parameter(torch.ones(1)) for _ in range(3))
    assert gradient_name(one, "rule.w") == b"gradient.rule.w"
    assert gradient_name(other, "rule.w") == b"gradient.rule.w#2"
    assert gradient_name(one, "rule.w") == b"gradient.rule.w"
    assert gradient_name(one, "rule.v") == b"gradient.rule.v"
    del other  # names do not depend on what is still there
    assert gradient_name(third, "rule.w") == b"gradient.rule.w#3"
    given = {gradient_name(torch.nn.Parameter(torch.ones(1)), name) for name in ("x", "x#2", "x", "x", "x#2", "x#3")}
    assert len(given) == 6
    for wrong in ("x" * 1016, "n\0x", "\ud800"):
        with pytest.raises(ValueError, match="bytes|null|surrogates"):
            gradient_name(one, wrong)
    assert len(gradient_name(one, "x" * 1015)) == 1024


def test_options_that_do_not_fit(alone):
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    with pytest.raises(ValueError, match="op=Average only"):
        hvd.DistributedOptimizer(optimizer, op=hvd.Sum, gradient_predivide_factor=2.0)
    for factor in (0, 0.0, -1.0, float("inf"), float("nan"), 5e-324):
        with pytest.raises(ValueError, match="gradient_predivide_factor must be a positive"):
            hvd.DistributedOptimizer(optimizer, gradient_predivide_factor=factor)
    with pytest.raises(ValueError, match="backward_passes_per_step"):
        hvd.DistributedOptimizer(optimizer, backward_passes_per_step=0)
    with pytest.raises(ValueError, match="unknown reduce operator 2"):
        hvd.DistributedOptimizer(optimizer, op=2)


def test_init_takes_the_arguments_of_old_scripts(alone):
    for nothing in (None, [], ()):
        hvd.init(comm=nothing, process_sets=nothing)
    with pytest.raises(ValueError, match=r"comm=\[0, 1\].*ronde run -np"):
        hvd.init([0, 1])
    hvd.shutdown()
    hvd.init(process_sets="dynamic")
    hvd.shutdown()
    with pytest.raises(ValueError, match=r"init\(process_sets=...\): number 0: rank 'a'|'a' is none"):
        hvd.init(process_sets=[["a"]])


def test_before_init_the_error_is_a_value_error():
    hvd.shutdown()
    with pytest.raises(ValueError, match="init"):
        hvd.DistributedOptimizer(torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1))
    with pytest.raises(hvd.HorovodInternalError, match="init"):
        hvd.allreduce(torch.ones(2))


def test_with_one_rank_there_are_no_hooks(alone):
    model = torch.nn.Linear(2, 2)
    reference = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    assert not model.weight._post_accumulate_grad_hooks
    for m, o in ((model, optimizer), (reference, plain)):
        m(torch.ones(1, 2)).sum().backward()
        m(torch.ones(1, 2)).sum().backward()
        o.step()
        o.zero_grad()
    assert torch.equal(model.weight, reference.weight)
    optimizer.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with optimizer.skip_synchronize():
            optimizer.step()


def test_a_distributed_optimizer_is_not_copied(alone):
    model = torch.nn.Linear(2, 2)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"state_dict\(\)"):
            copying(optimizer)
    assert copy.deepcopy(optimizer.state_dict()) == optimizer.state_dict()


def test_the_wrapper_keeps_state_and_options_of_what_it_wraps(alone):
    model = torch.nn.Linear(2, 2)
    plain = torch.optim.Adam(model.parameters(), lr=0.25)
    model(torch.ones(1, 2)).sum().backward()
    plain.step()
    optimizer = hvd.DistributedOptimizer(plain)
    assert str(optimizer.state_dict()) == str(plain.state_dict())
    assert repr(optimizer) == repr(plain)
    again = hvd.DistributedOptimizer(optimizer)
    assert type(again) is type(optimizer)
    assert type(again).__mro__[2] is torch.optim.Adam
