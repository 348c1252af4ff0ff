# SPDX-License-Identifier: Apache-2.0
import pytest

from launch import checks_of, expect

SUITE = ("torch_training", "TrainingSuite")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_training_equals_one_process(ranks, check):
    expect(*SUITE, check, ranks)
