# SPDX-License-Identifier: Apache-2.0
"""A container's /dev/shm of 1 MB: shared memory here has no files, so it does not matter."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RONDE = str(Path(sys.executable).with_name("ronde"))


def test_a_dev_shm_of_one_megabyte_changes_nothing():
    worker = ROOT / "tests/process/memory_worker.py"
    ended = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            'mount -t tmpfs -o size=1m tmpfs /dev/shm && df -k /dev/shm >&2 && exec "$@"',
        ]
        + ["sh", RONDE, "run", "-np", "3", "--no-prefix", sys.executable, str(worker)],
        env={**os.environ, "RONDE_TRANSPORT": "shm"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert " 1024 " in ended.stderr.splitlines()[1], "the file system is small"
    assert ended.stdout == "sums are right False\n"
    assert "warning" not in ended.stderr
