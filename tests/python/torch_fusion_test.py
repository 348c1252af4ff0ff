# SPDX-License-Identifier: Apache-2.0
import pytest

from launch import checks_of, expect

SUITE = ("torch_fusion", "FusionSuite")
SMALL = {"RONDE_BATCH_BYTES": "4K", "RONDE_HOLD": "1", "RONDE_SLOT_BYTES": "4K", "RONDE_SEGMENT_BYTES": "1K"}
TCP, SHM = {**SMALL, "RONDE_TRANSPORT": "tcp"}, {**SMALL, "RONDE_TRANSPORT": "shm"}
JOBS = {"default-3": (3, {}), "tcp-2": (2, TCP), "tcp-3": (3, TCP), "tcp-4": (4, TCP), "shm-4": (4, SHM)}
SECONDS_FOR_A_HUNDRED = 2400


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("ranks", "env"), JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_orders_do_not_matter(check, ranks, env):
    expect(*SUITE, check, ranks, **env)


@pytest.mark.long
@pytest.mark.timeout(SECONDS_FOR_A_HUNDRED + 100)
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("env", [SHM, TCP], ids=["shm", "tcp"])
@pytest.mark.parametrize("check", checks_of(*SUITE))
def test_orders_do_not_matter_with_a_hundred_seeds(check, ranks, env):
    expect(*SUITE, check, ranks, SECONDS_FOR_A_HUNDRED, SEEDS="100", **env)
