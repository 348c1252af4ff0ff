# SPDX-License-Identifier: Apache-2.0
"""``ronde.run(func, args, kwargs, np)``: a function on several ranks of this host, from a Python program.

The function and its results travel as files in a private folder, which is removed at the end. The ranks are started by
``ronde run``, so output, failures and signals are handled as there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

CALL_FILE = "call"
RESULT_FILE = "result.{rank}"


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    np: int = 1,
    env: dict[str, str] | None = None,
) -> list[Any]:
    """Calls ``func(*args, **kwargs)`` on ``np`` ranks and returns their results by rank.

    ``func`` calls ``init()`` itself if it wants to communicate. What it raises on the rank that fails first is
    raised here, with the rank's traceback as its cause's text; as a ``RuntimeError`` holding that text if it cannot
    be unpickled. ``sys.exit`` on a rank, whatever the status, is a ``RuntimeError`` naming both; ranks that end
    without a result (killed, ``os._exit``) are one naming the exit status.
    ``env``: further environment variables of the ranks.
    """
    import tempfile

    from ronde.core.pickles import dumps

    if np < 1:
        raise ValueError(f"np must be 1 or more, not {np}")
    with tempfile.TemporaryDirectory(prefix="ronde-run-") as folder:  # made with mode 0700
        write_whole(os.path.join(folder, CALL_FILE), dumps((func, tuple(args), dict(kwargs or {}))))
        # The ranks find the modules that this program finds.
        paths = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        status = _launch(np, folder, {**os.environ, "PYTHONPATH": paths, **(env or {})})
        return _results(folder, np, status)


def _launch(np: int, folder: str, env: dict[str, str]) -> int:
    """Runs ``ronde run`` to its end. It ends the job, and removes the folder, when this process is gone: it then sees
    the end of the pipe of which only this process has the other end.
    """
    import subprocess

    from ronde.program import path

    lifeline, held = os.pipe()
    try:
        options = ["--lifeline", str(lifeline), "--scratch", folder]
        command = [path(), "run", "-np", str(np), *options, "--", sys.executable, "-m", "ronde._call", folder]
        # In a session of its own a Ctrl-C comes from here alone, and not from the terminal as well.
        job = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, pass_fds=[lifeline], start_new_session=True)
        return _wait(job)
    finally:
        os.close(lifeline)
        os.close(held)


def _wait(job: Any) -> int:
    """Until the job has ended, also after Ctrl-C: the ranks may take their time, and a second one kills them."""
    import signal

    interrupt = None
    while True:
        try:
            status = job.wait()
        except KeyboardInterrupt as error:
            interrupt = error
            job.send_signal(signal.SIGINT)
        else:
            break
    if interrupt is not None:
        raise interrupt
    return status


def write_whole(file: str, data: bytes) -> None:
    """Writes a file that is either whole or not there."""
    with open(file + ".part", "xb") as out:
        out.write(data)
    os.rename(file + ".part", file)


def _results(folder: str, np: int, status: int) -> list[Any]:
    outcomes = [_read(os.path.join(folder, RESULT_FILE.format(rank=rank))) for rank in range(np)]
    failed = [(outcome["at"], rank) for rank, outcome in enumerate(outcomes) if outcome and outcome["failed"]]
    if failed:
        _, rank = min(failed)
        raise _exception(outcomes[rank], rank)
    lost = [rank for rank, outcome in enumerate(outcomes) if outcome is None]
    if lost or status != 0:
        raise RuntimeError(f"'ronde run' ended with status {status}; no result from rank(s) {lost}")
    return [_load(outcome["value"], rank) for rank, outcome in enumerate(outcomes) if outcome]


def _read(file: str) -> dict[str, Any] | None:
    import pickle

    try:
        with open(file, "rb") as source:
            return pickle.load(source)
    except FileNotFoundError:
        return None


def _load(data: bytes, rank: int) -> Any:
    import pickle

    try:
        return pickle.loads(data)
    except Exception as error:
        raise RuntimeError(f"the result of rank {rank} could not be unpickled: {error!r}") from error


def _exception(outcome: dict[str, Any], rank: int) -> BaseException:
    """What the rank raised, or a RuntimeError with its text, with the rank's traceback as the cause."""
    import pickle

    text = f"on rank {rank}:\n{outcome['text']}"
    if "exit" in outcome:
        left = RuntimeError(f"the function ended rank {rank} by sys.exit({outcome['exit']}) before it returned")
        left.__cause__ = RemoteTraceback(text)
        return left
    try:
        error = pickle.loads(outcome["value"]) if outcome["value"] is not None else None
    except Exception:  # unpickling runs code of the exception's class
        error = None
    if not isinstance(error, BaseException):
        return RuntimeError(f"a function failed {text}")
    error.__cause__ = RemoteTraceback(text)
    return error


class RemoteTraceback(Exception):
    """The traceback of an exception that a rank raised, as text."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])
