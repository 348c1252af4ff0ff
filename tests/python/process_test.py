# SPDX-License-Identifier: Apache-2.0
"""What a process of the job may do to itself: fork, be interrupted, fail, start again. Without a framework, so
ranks start fast.
"""

import os
import signal
import subprocess
import sys
import time

from launch import free_port, run_script, start_by_hand

PREAMBLE = """
import os, signal, sys, threading, time
from ronde.core import engine, handles, ops
from ronde.core.objects import allgather_object, broadcast_object
from ronde.core.errors import *
from ronde import _ext
def barrier():
    handle = _ext.submit(None, ops.BARRIER, 6, (), 0, 0, 0, 0, 1.0, 1.0, 0, 0)
    return handles.remember(handle, None, lambda _: "passed")
"""


def run(ranks, source, **env):
    return run_script(ranks, PREAMBLE + source, **env)


def test_without_a_launcher_a_script_is_rank_0_of_1():
    source = PREAMBLE + "engine.init(); print(engine.rank(), engine.size(), allgather_object('x'))"
    env = {name: value for name, value in os.environ.items() if not name.startswith("RONDE_")}
    told = subprocess.run(
        [sys.executable, "-c", source], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout == "0 1 ['x']\n"


def test_calls_before_init_say_so():
    ended = run(
        1,
        """
try: engine.rank()
except NotInitializedError as error: assert isinstance(error, (ValueError)) and "init()" in str(error)
else: sys.exit(3)
assert not engine.is_initialized()
engine.shutdown()
""",
    )
    assert ended.status == 0, ended.stderr


def test_init_and_shutdown_a_hundred_times():
    ended = run(
        2,
        """
for n in range(100):
    engine.init()
    assert allgather_object((n, engine.rank())) == [(n, 0), (n, 1)]
    engine.shutdown()
""",
    )
    assert ended.status == 0, ended.stderr


def test_a_rank_that_is_done_first_may_leave_while_the_others_finish_over_tcp():
    """Its connections end while rank 0 still runs what was decided before the leave."""
    ended = run(
        3,
        """
import ctypes
ones = (ctypes.c_float * 2)(1, 1)
address = ctypes.addressof(ones)
for n in range(15):
    engine.init()
    handle = _ext.submit(None, ops.ALLREDUCE, 0, (2,), address, address, ops.Max, 0, 1.0, 1.0, 0, 0)
    handles.synchronize(handles.remember(handle, ones, lambda _: None))
    engine.shutdown()
""",
        RONDE_TRANSPORT="tcp",
    )
    assert ended.status == 0, ended.stderr


def test_a_forked_child_is_told_both_pids_and_the_parent_goes_on():
    ended = run(
        2,
        """
engine.init()
parent = os.getpid()
handle = barrier()
child = os.fork()
if child == 0:
    status = 1
    try:
        poll, wait = (lambda: handles.poll(handle)), (lambda: handles.synchronize(handle))
        for call in (engine.rank, engine.init, lambda: broadcast_object(1), poll, wait):
            try: call()
            except NotInitializedError as error:
                assert str(parent) in str(error) and str(os.getpid()) in str(error), error
            else: raise SystemExit("no error")
        assert not engine.is_initialized()
        engine.shutdown()
        status = 0
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert handles.synchronize(handle) == "passed"
assert allgather_object(engine.rank()) == [0, 1]
""",
    )
    assert ended.status == 0, ended.stderr


def test_ctrl_c_inside_synchronize_raises_and_the_handle_survives():
    ended = run(
        2,
        """
engine.init()
if engine.rank() == 0:
    handle = barrier()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try: handles.synchronize(handle)
    except KeyboardInterrupt: interrupted = True
    else: sys.exit(3)
    broadcast = allgather_object  # rank 1 comes only now
    assert handles.synchronize(handle) == "passed"
else:
    time.sleep(1.5)
    assert handles.synchronize(barrier()) == "passed"
assert allgather_object(engine.rank()) == [0, 1]
""",
    )
    assert ended.status == 0, ended.stderr


def test_a_wait_with_a_limit_leaves_the_handle_alive():
    ended = run(
        2,
        """
engine.init()
if engine.rank() == 0:
    handle = barrier()
    started = time.monotonic()
    try: handles.synchronize(handle, timeout=0.3)
    except TimeoutError as error: assert not isinstance(error, HorovodInternalError)
    else: sys.exit(3)
    assert 0.2 < time.monotonic() - started < 2
    assert not handles.poll(handle)
    assert handles.synchronize(handle) == "passed"
else:
    time.sleep(1)
    handles.synchronize(barrier())
""",
    )
    assert ended.status == 0, ended.stderr


def test_other_threads_run_while_one_waits():
    ended = run(
        2,
        """
engine.init()
if engine.rank() == 0:
    ticks = []
    def tick():
        while len(ticks) < 20: ticks.append(1); time.sleep(0.01)
    thread = threading.Thread(target=tick); thread.start()
    handles.synchronize(barrier())
    assert len(ticks) == 20, len(ticks)
else:
    time.sleep(1)
    handles.synchronize(barrier())
""",
    )
    assert ended.status == 0, ended.stderr


def test_several_threads_wait_at_once():
    ended = run(
        2,
        """
engine.init()
results = []
def work(k):
    for n in range(50):
        results.append(allgather_object((k, n, engine.rank()), name=f"thread {k}") == [(k, n, 0), (k, n, 1)])
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert results == [True] * 200
""",
    )
    assert ended.status == 0, ended.stderr


def test_an_exception_is_told_to_the_others_with_its_text():
    ended = run(
        3,
        """
engine.init()
if engine.rank() == 1:
    raise KeyError("no such column")
try: handles.synchronize(barrier())
except PeerLostError as error:
    print("CAUGHT", error, flush=True)
    sys.exit(5)
""",
    )
    assert ended.status == 1, ended.stderr
    caught = [line for line in ended.stdout.splitlines() if "CAUGHT" in line]
    assert len(caught) == 2, ended.stdout + ended.stderr
    assert all("rank 1" in line and "no such column" in line for line in caught), caught


def test_a_rank_that_has_left_is_named():
    ended = run(
        2,
        """
engine.init()
allgather_object(1)
if engine.rank() == 1:
    engine.shutdown()
    time.sleep(2)
    sys.exit(0)
try: handles.synchronize(barrier())
except RankLeftError as error: assert "rank 1" in str(error), error
else: sys.exit(3)
""",
    )
    assert ended.status == 0, ended.stderr


def test_shutdown_forgets_handles():
    ended = run(
        2,
        """
engine.init()
handle = barrier()
engine.shutdown()
assert handles.synchronize(handle) is None
engine.init()
assert allgather_object(engine.rank()) == [0, 1]
""",
    )
    assert ended.status == 0, ended.stderr


def test_ctrl_c_while_others_have_not_arrived(tmp_path):
    source = PREAMBLE + "print('waiting', flush=True)\nengine.init()"
    process = start_by_hand(0, 2, source, f"127.0.0.1:{free_port()}", tmp_path / "key")
    assert process.stdout.readline() == "waiting\n"
    time.sleep(1)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in stderr
