# SPDX-License-Identifier: Apache-2.0
"""The other side of Job.note: what a worker writes down, whole or not at all."""

import json
import os
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])


def write(what, rank, value):
    scratch = FOLDER / f".{what}.{rank}"
    scratch.write_text(json.dumps(value))
    os.replace(scratch, FOLDER / f"{what}.{rank}")


def hold(rank):
    """Stays, and writes that it does, while the test's file hold.<rank> is there."""
    if (FOLDER / f"hold.{rank}").exists():
        write("held", rank, True)
        wait_for("go on")


def wait_for(what, seconds=120):
    """Until the test has made that file."""
    deadline = time.monotonic() + seconds
    while not (FOLDER / what).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the test did not say {what} within {seconds} s")
        time.sleep(0.01)
