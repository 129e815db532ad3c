"""Signals at awkward moments, each in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pytest

from marginsieve.data.file_access import process_folder
from marginsieve.solvers.execution import parallel

START = """
import os, signal, sys, time, weakref
from marginsieve.cli.signals import signal_exit_code, end_on_signals, ignore_signals
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # both are ignored where the tests were started by nohup or behind "&"
signal.signal(signal.SIGINT, signal.default_int_handler)
end_on_signals()
me = os.getpid()
"""


def run(code, **settings):
    done = subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True, timeout=60, **settings)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_ends_alike(number):
    code = f"""
try:
    os.kill(me, {int(number)}); time.sleep(10)
except KeyboardInterrupt:
    sys.exit(signal_exit_code())
"""
    assert run(code) == (128 + number, "", "")


def test_later_signals_do_not_disturb_the_cleaning_up():
    code = """
try:
    try:
        os.kill(me, signal.SIGTERM); time.sleep(10)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(me, number)
        time.sleep(0.7)  # longer than the timer
        print("clean")
except KeyboardInterrupt:
    sys.exit(signal_exit_code())
"""
    assert run(code) == (143, "clean\n", "")


def test_a_generator_that_is_closed_meanwhile_is_not_disturbed():
    code = """
def rows():
    try:
        while True:
            yield 1
    finally:
        time.sleep(0.7)
        print("closed")
def work():
    for _ in rows():
        os.kill(me, signal.SIGHUP); time.sleep(10)
try:
    work()
except KeyboardInterrupt:
    sys.exit(signal_exit_code())
"""
    assert run(code) == (129, "closed\n", "")


def test_a_signal_within_a_callback_is_not_lost():
    code = """
class Thing: pass
thing = Thing()
def callback(_):
    os.kill(me, signal.SIGINT)
    for _ in range(100000): pass
ref = weakref.ref(thing, callback)
try:
    del thing
    time.sleep(10)
except KeyboardInterrupt:
    sys.exit(signal_exit_code())
"""
    since = time.monotonic()
    assert run(code) == (130, "", "")
    assert time.monotonic() - since < 8


def test_nothing_interrupts_the_very_end():
    code = """
import atexit
atexit.register(lambda: (os.kill(me, signal.SIGINT), time.sleep(0.1)))
ignore_signals()
"""
    assert run(code) == (0, "", "")


def test_the_command_is_interrupted_while_it_loads():
    code = """
import builtins, marginsieve.cli
real = builtins.__import__
def load(name, *values, **named):
    if name == "typer":
        os.kill(me, signal.SIGINT)
    return real(name, *values, **named)
builtins.__import__ = load
marginsieve.cli.main()
"""
    code, _, err = run(code)
    assert code == 130
    assert err == "error: interrupted\n"


def test_ignored_signals_stay_ignored():
    code = """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
end_on_signals()
os.kill(me, signal.SIGHUP)
print("on")
"""
    assert run(code)[1] == "on\n"


# -- workers -------------------------------------------------------------------------------------------------------


def _heard(array):
    return array.filename, signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_workers_share_in_our_scratch_folder_and_hear_no_terminal():
    large = np.zeros(400_000)
    for name, mask in parallel(2)(joblib.delayed(_heard)(large) for _ in range(2)):
        assert name.startswith(f"{process_folder()}{os.sep}")
        assert {signal.SIGINT, signal.SIGHUP} <= set(mask)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_the_next_command_removes_what_a_killed_group_shared(tmp_path):
    code = """
import joblib, numpy as np
from marginsieve.solvers.execution import parallel
def work(array):
    print("up", flush=True); time.sleep(60)
parallel(2)(joblib.delayed(work)(np.zeros(400_000)) for _ in range(2))
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", START + code], stdout=subprocess.PIPE, env=environment, start_new_session=True
    )
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert list(tmp_path.glob("marginsieve-scratch-*/joblib_*"))
    semaphores = f"sem.loky-{process.pid}-*"
    if os.path.isdir("/dev/shm"):  # F5: they stayed
        assert list(Path("/dev/shm").glob(semaphores))
        theirs = Path(f"/dev/shm/sem.loky-{os.getpid()}-theirs")
        theirs.write_bytes(b"")
    swept = "from marginsieve.data.file_access import sweep; sweep()"
    subprocess.run([sys.executable, "-c", swept], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []
    assert list(Path("/dev/shm").glob(f"joblib_memmapping_folder_{process.pid}_*")) == []
    if os.path.isdir("/dev/shm"):
        assert list(Path("/dev/shm").glob(semaphores)) == []
        assert theirs.exists()  # of a process that runs
        theirs.unlink()
