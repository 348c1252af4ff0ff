# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from pretend import Network


@pytest.fixture
def make_network(tmp_path):
    """make_network(n): a Network of n hosts, gone at the end of the test."""
    made = []

    def make(count):
        folder = tmp_path / f"network{len(made)}"
        folder.mkdir()
        made.append(Network(count, folder))
        return made[-1]

    yield make
    for network in made:
        network.close()
