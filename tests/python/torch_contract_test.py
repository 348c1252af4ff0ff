# SPDX-License-Identifier: Apache-2.0
import pytest

from launch import checks_of, expect

SUITE = ("torch_contract", "TorchContract")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_torch_keeps_the_contract(ranks, check):
    expect(*SUITE, check, ranks)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_torch_keeps_the_contract_over_tcp(check):
    expect(*SUITE, check, 3, RONDE_TRANSPORT="tcp")
