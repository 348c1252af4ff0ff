# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from job import Job


@pytest.fixture(params=["shm", "tcp"])
def transport(request):
    return request.param


@pytest.fixture
def start_job(tmp_path, transport):
    """start_job(worker, ranks): a Job over this transport, ended with the test."""
    jobs = []

    def start(worker, ranks=4, **env):
        if transport == "tcp":
            env["RONDE_TRANSPORT"] = "tcp"
        jobs.append(Job(tmp_path, ranks, worker, {"OMP_NUM_THREADS": "1", **env}))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()
