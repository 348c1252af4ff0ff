# SPDX-License-Identifier: Apache-2.0
import pytest

from launch import checks_of, expect

SUITE = ("torch_batch_norm", "BatchNormSuite")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_batches_are_normalised_as_one(ranks, check):
    expect(*SUITE, check, ranks)
