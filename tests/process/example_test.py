# SPDX-License-Identifier: Apache-2.0
"""The examples, started as their users start them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

DIGITS = str(Path(__file__).resolve().parents[2] / "examples/torch_digits.py")
SECONDS = 240  # four times PyTorch from a cold disk, with eight loader workers, beside other work


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_the_digits_are_learned_by_four_ranks_with_equal_weights(launches, transport):
    command = [sys.executable, DIGITS, "--epochs", "5", "--check"]
    ended = launches.run("run", "-np", "4", *command, env={"RONDE_TRANSPORT": transport}, seconds=SECONDS)
    told = ended.out.decode()
    assert ended.status == 0, told + ended.err.decode(errors="replace")
    assert "[0] greatest difference between the weights of the ranks: 0\n" in told
    last = told.splitlines()[-1]
    result = re.fullmatch(r"\[0\] RESULT example=torch_digits ranks=4 accuracy=([0-9.]+) samples_per_s=([0-9.]+)", last)
    assert result, told
    assert float(result[1]) >= 0.97
    assert float(result[2]) > 0
    assert told.count("RESULT") == 1
