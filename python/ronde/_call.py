# SPDX-License-Identifier: Apache-2.0
"""``python -m ronde._call FOLDER``: one rank of ``ronde.run``. Calls the function of the folder and leaves what it
gave.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import traceback
from typing import Any

from ronde.core.pickles import dumps
from ronde.run import CALL_FILE, RESULT_FILE, write_whole


def main(folder: str) -> None:
    rank = int(os.environ.get("RONDE_RANK", "0"))
    file = os.path.join(folder, RESULT_FILE.format(rank=rank))
    try:
        with open(os.path.join(folder, CALL_FILE), "rb") as source:
            func, args, kwargs = pickle.load(source)
        value = dumps(func(*args, **kwargs))
    except BaseException as error:
        write_whole(file, pickle.dumps(_failure(error)))
        raise
    write_whole(file, pickle.dumps({"failed": False, "value": value}))


def _failure(error: BaseException) -> dict[str, Any]:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if isinstance(error, SystemExit):  # raised anew, it would end the program that called ronde.run
        return {"failed": True, "exit": "" if error.code is None else repr(error.code), "text": text, "at": time.time()}
    try:
        value = dumps(error)
    except Exception:  # pickling runs code of the exception's class
        value = None
    return {"failed": True, "value": value, "text": text, "at": time.time()}


if __name__ == "__main__":
    main(sys.argv[1])
