"""Ctrl-C ends a command in silence, and a parent that is killed its workers."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from processes import seconds

import bittern as bt
from bittern.io import leftovers

X = np.random.default_rng(0).standard_normal((60, 5))
CODES = bt.Codes.from_bits(np.random.default_rng(1).random((20, 64)) < 0.5)


def end_of(program):
    """The exit code of a program in Python, what it prints, and what it complains of."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=seconds(60),
    )
    return done.returncode, done.stdout, done.stderr


STARTING = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "bittern.cli":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
from bittern.__main__ import main
sys.meta_path.insert(0, Interrupt())
main()
"""


def test_ctrl_c_while_it_starts_prints_no_traceback():
    assert end_of(STARTING) == (-signal.SIGINT, "", "")


def test_ctrl_c_just_after_the_imports_ends_the_command(monkeypatch, capsys):
    import bittern.cli
    from bittern.__main__ import main

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # which main replaces
    monkeypatch.setattr(bittern.cli, "main", lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(SystemExit, match="130"):
            main()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert capsys.readouterr() == ("", "")


DROPPED = """
import os, signal, sys, time
import bittern.cli
from bittern.__main__ import main

class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

def work():
    Callback()
    print("dropped", flush=True)
    time.sleep(600)

signal.signal(signal.SIGINT, signal.default_int_handler)
bittern.cli.main = work
main()
"""


def test_ctrl_c_in_a_callback_is_not_lost_and_prints_no_traceback():
    assert end_of(DROPPED) == (130, "dropped\n", "")


HALF_MADE = """
import os, signal
import bittern.cli
from bittern.__main__ import main

class Handle:
    def __init__(self, interrupted):
        if interrupted:
            os.kill(os.getpid(), signal.SIGINT)
        self.number = 1

    def __del__(self):
        del self.number

def work():
    Handle(False)
    Handle(True)

signal.signal(signal.SIGINT, signal.default_int_handler)
bittern.cli.main = work
main()
"""


def test_what_ctrl_c_left_half_made_prints_no_traceback():
    assert end_of(HALF_MADE) == (130, "", "")


def chained(stopped, *errors):
    """The last of these errors, each raised where the one before was caught."""
    caught = stopped
    for error in errors:
        error.__context__, caught = caught, error
    return caught


def test_ctrl_c_that_a_library_made_another_error_of_is_no_error(monkeypatch, run):
    import bittern.cli.app  # noqa: F401

    def stopped(_):
        raise chained(KeyboardInterrupt(), ValueError("bad value"), ImportError("cannot load"))

    monkeypatch.setattr(sys.modules["bittern.cli.app"], "_program", stopped)
    assert run("index") == (130, "", "bittern: stopped.\n")


def test_what_went_wrong_after_ctrl_c_is_said(monkeypatch, run):
    import bittern.cli.app  # noqa: F401

    def stopped(_):
        raise chained(KeyboardInterrupt(), bt.FileError("a.npz: the disk is full."))

    monkeypatch.setattr(sys.modules["bittern.cli.app"], "_program", stopped)
    assert run("index") == (2, "", "bittern: a.npz: the disk is full.\n")


def test_ctrl_c_while_a_class_is_made_is_no_error(monkeypatch, run):
    import bittern.cli.app  # noqa: F401

    def stopped(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:  # what Python makes of it in __set_name__
            raise RuntimeError("Error calling __set_name__ on 'cached_property'") from error

    monkeypatch.setattr(sys.modules["bittern.cli.app"], "_program", stopped)
    assert run("index") == (130, "", "bittern: stopped.\n")


def test_processes_take_no_module_from_the_current_folder(tmp_path):
    # A stranger's folder may hold a duckdb.py beside the data.
    for module in ("duckdb", "multiprocessing", "pickle", "numpy"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('taken from the current folder')")
    CODES.save(tmp_path / "c.npz")
    bt.hashing.LSH(8).fit(X).save(tmp_path / "m.npz")
    bt.scale.Shards.create(tmp_path / "s", vectors=X.astype(np.float32), shard_size=40)
    with bt.store.create(tmp_path / "a.bittern", 64) as collection:
        collection.add(CODES)
    (tmp_path / "copy.bittern").write_bytes((tmp_path / "a.bittern").read_bytes())
    script = "from bittern.__main__ import main; main()"  # as the command that pip installs
    for words in (
        ("index", "add", "copy.bittern", "--from", "c.npz"),
        ("shards", "encode", "s", "m.npz", "--processes", "1"),
    ):
        done = subprocess.run(
            [sys.executable, "-P", "-c", script, *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 0, done.stderr


WORKER = """
import os, sys, time
from bittern.parallel import run_tasks

def prepare():
    return work

def work(task):
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    list(run_tasks(prepare, [1], 1, owner="test"))
"""


def test_a_worker_dies_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WORKER)
    parent = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.communicate(timeout=seconds(60))
    end = time.monotonic() + seconds(10)
    while leftovers._is_alive(worker) and time.monotonic() < end:
        time.sleep(0.01)
    assert not leftovers._is_alive(worker)
