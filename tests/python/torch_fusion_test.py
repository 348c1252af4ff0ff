# SPDX-License-Identifier: Apache-2.0
import pytest

from launch import checks_of, expect

SUITE = ("torch_fusion", "FusionSuite")
SMALL = {"RONDE_BATCH_BYTES": "4K"}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("env", [{}, {**SMALL, "RONDE_TRANSPORT": "tcp"}], ids=["default", "small-tcp"])
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_orders_do_not_matter(check, env):
    expect(*SUITE, check, 3, **env)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_orders_do_not_matter_with_a_hundred_seeds(ranks, transport):
    expect(*SUITE, "check_orders", ranks, SEEDS="100", RONDE_TRANSPORT=transport, **SMALL)
