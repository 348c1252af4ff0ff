# SPDX-License-Identifier: Apache-2.0
"""What needs no engine: versions, imports, errors, rules, bookkeeping."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import ronde
from ronde import _ext
from ronde.core import errors, ops
from ronde.core.engine import failure_text
from ronde.core.window import Ready, State, StepClock, Window

ROOT = Path(__file__).parents[2]


def test_one_version_everywhere():
    assert _ext.version() == ronde.__version__
    assert f"VERSION {ronde.__version__}" in (ROOT / "CMakeLists.txt").read_text()


def test_import_ronde_is_light():
    program = (
        "import sys, ronde; print([m for m in ('torch', 'numpy', 'cloudpickle', 'ronde._ext') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "[]\n"


def test_errors_are_caught_by_the_names_users_know():
    assert ronde.RondeError is ronde.HorovodInternalError
    for name in ("MismatchError", "PeerLostError", "RankLeftError", "AbortedError", "DeadlineError", "EngineError"):
        error = getattr(ronde, name)
        assert issubclass(error, ronde.HorovodInternalError)
        assert str(error("what happened")) == "what happened"
    assert issubclass(errors.NotInitializedError, ValueError)
    assert issubclass(errors.DeadlineError, TimeoutError)
    assert errors.EXCEPTION_OF_CODE[1] is ValueError


def test_every_code_of_the_c_interface_has_its_class():
    header = (ROOT / "include/ronde/ronde.h").read_text()
    codes = header[header.index("RONDE_OK = 0") : header.index("} ronde_code")]
    assert codes.count("RONDE_") == len(errors.EXCEPTION_OF_CODE)


def test_numbers_are_those_of_the_c_interface():
    header = " ".join((ROOT / "include/ronde/ronde.h").read_text().split())
    for name, value in [
        ("AVERAGE", ops.Average),
        ("SUM", ops.Sum),
        ("MIN", ops.Min),
        ("MAX", ops.Max),
        ("PRODUCT", ops.Product),
    ]:
        assert f"RONDE_{name} = {value}" in header
    kinds = {"bfloat": "BF", "float": "F", "uint": "U", "int": "I", "complex": "C"}
    for name, value in ops.DTYPES.items():
        kind = name.rstrip("0123456789")
        short = "BOOL" if name == "bool" else kinds[kind] + name[len(kind) :]
        assert f"RONDE_{short} = {value}" in header
    for name in ("ALLREDUCE", "BROADCAST", "ALLGATHER", "BARRIER", "REDUCESCATTER", "ALLTOALL"):
        assert f"RONDE_{name} = {getattr(ops, name)}" in header


def test_average_and_op():
    assert ops.resolve_op(None, None) == ops.Average
    assert ops.resolve_op(None, ops.Max) == ops.Max
    with pytest.raises(ValueError, match="not both"):
        ops.resolve_op(False, ops.Sum)
    with pytest.raises(ValueError, match="unknown reduce operator 2"):
        ops.resolve_op(None, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert ops.resolve_op(True, None) == ops.Average
        assert ops.resolve_op(False, None) == ops.Sum
    assert [entry.category for entry in caught] == [DeprecationWarning] * 2


def test_text_of_a_failure_names_the_place():
    try:
        raise KeyError("x")
    except KeyError as error:
        text = failure_text(type(error), error, error.__traceback__)
    assert text.startswith("KeyError: 'x' (light_test.py:")
    assert text.endswith("in test_text_of_a_failure_names_the_place)")
    assert len(failure_text(ValueError, ValueError("long" * 10000), None)) <= 4000
    assert "\0" not in failure_text(ValueError, ValueError("a\0b"), None)


# --- the window of an optimizer ---


def window(keys="abc", passes=1):
    made = Window(keys, passes, StepClock())
    made.expect_all()
    return made


def test_the_gradient_that_completes_the_last_set_is_submitted_without_more():
    w = window()
    assert [w.gradient_ready(key) for key in "cab"] == [Ready.SUBMIT_MORE, Ready.SUBMIT_MORE, Ready.SUBMIT_LAST]
    assert w.is_complete
    w.stepped()
    assert [w.gradient_ready(key) for key in "ab"] == [Ready.SUBMIT_MORE] * 2
    assert w.missing() == ["c"]
    w.submitted_late("c")
    w.stepped()  # c did not become ready by itself: the next window does not expect it
    assert [w.gradient_ready(key) for key in "ba"] == [Ready.SUBMIT_MORE, Ready.SUBMIT_LAST]
    assert not w.is_complete


def test_passes_are_counted_for_each_parameter():
    w = window("ab", passes=3)
    assert [w.gradient_ready("a") for _ in range(3)] == [Ready.KEEP, Ready.KEEP, Ready.SUBMIT_MORE]
    assert [w.gradient_ready("b") for _ in range(3)] == [Ready.KEEP, Ready.KEEP, Ready.SUBMIT_LAST]
    w.stepped()
    assert w.gradient_ready("a") is Ready.KEEP
    w.stepped()  # a window that ends early does not shorten the next
    assert [w.gradient_ready("a") for _ in range(3)][-1] is not Ready.KEEP


def test_states():
    w = window("a")
    assert w.state is State.FRESH
    w.gradient_ready("a")
    assert w.state is State.OPEN
    w.settle()
    assert w.state is State.SETTLED
    assert w.gradient_ready("a") is Ready.SUBMIT_LAST  # a settled window may be begun anew
    w.stepped()
    assert w.state is State.FRESH


def test_a_window_is_abandoned_when_another_optimizer_steps():
    clock = StepClock()
    one, other = Window("a", 1, clock), Window("b", 1, clock)
    one.gradient_ready("a")
    assert not one.is_abandoned
    other.gradient_ready("b")
    other.stepped()
    assert one.is_abandoned
    one.restart()
    assert not one.is_abandoned


def test_a_forgotten_gradient_may_come_again():
    w = window("ab", passes=2)
    w.gradient_ready("a")
    w.gradient_ready("a")
    assert w.is_submitted("a")
    w.forget("a")
    assert not w.is_submitted("a")
    assert w.gradient_ready("a") is Ready.KEEP


@pytest.mark.parametrize("passes", [0, -1])
def test_passes_must_be_positive(passes):
    with pytest.raises(ValueError, match="backward_passes_per_step"):
        window(passes=passes)
