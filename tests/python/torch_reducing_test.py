# SPDX-License-Identifier: Apache-2.0
import pytest

from launch import checks_of, expect

SUITE = ("torch_reducing", "ReducingSuite")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_gradients_are_reduced(ranks, check):
    expect(*SUITE, check, ranks)
