# SPDX-License-Identifier: Apache-2.0
"""One rank of a suite: run_suite.py MODULE CLASS FOLDER. Leaves FOLDER/RANK with a line [check, failure] per check."""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from launch import checks_of


def main(module: str, name: str, folder: str) -> None:
    suite = getattr(importlib.import_module(module), name)()
    suite.start()
    with open(Path(folder) / os.environ.get("RONDE_RANK", "0"), "w") as found:
        for check in checks_of(module, name):
            failure = ""
            try:
                getattr(suite, check)()
            except (Exception, pytest.fail.Exception):
                failure = traceback.format_exc()
            print(json.dumps([check, failure]), file=found, flush=True)
    suite.stop()


main(*sys.argv[1:])
