# SPDX-License-Identifier: Apache-2.0
"""That a suite's failure is seen: on which rank, with its text, and what did not run."""

import pytest

from launch import expect

SUITE = ("broken_suite", "BrokenSuite")


def test_a_check_that_passes_on_all_ranks_passes():
    expect(*SUITE, "check_a_passes", 2)


def test_a_failure_on_one_rank_is_shown():
    with pytest.raises(AssertionError, match=r"(?s)--- rank 1.*seven is not eight") as caught:
        expect(*SUITE, "check_b_fails_on_rank_1", 2)
    assert "--- rank 0" not in str(caught.value)


@pytest.mark.parametrize("check", ["check_c_ends_the_process", "check_d_never_runs"])
def test_what_did_not_run_fails(check):
    with pytest.raises(AssertionError, match="did not run"):
        expect(*SUITE, check, 2)
