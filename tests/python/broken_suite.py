# SPDX-License-Identifier: Apache-2.0
"""A suite that fails in known ways, for launch_test.py."""

import os


class BrokenSuite:
    def start(self) -> None:
        self.rank = int(os.environ["RONDE_RANK"])

    def stop(self) -> None:
        pass

    def check_a_passes(self) -> None:
        pass

    def check_b_fails_on_rank_1(self) -> None:
        assert self.rank != 1, "seven is not eight"

    def check_c_ends_the_process(self) -> None:
        os._exit(3)

    def check_d_never_runs(self) -> None:
        pass
