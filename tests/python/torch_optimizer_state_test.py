# SPDX-License-Identifier: Apache-2.0
import pytest

from launch import checks_of, expect

SUITE = ("torch_optimizer_state", "StateSuite")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_all_ranks_come_to_the_state_of_one(ranks, check):
    expect(*SUITE, check, ranks)
