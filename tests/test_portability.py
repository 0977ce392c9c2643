"""Locks between processes, and the package where Python lacks what only POSIX systems have."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import run_python, seconds

import bittern as bt
from bittern.io.locks import locked
from bittern.store import duckfile

# What Windows lacks; Python's own modules do without them there, and most of them do here.
WITHOUT_POSIX = """
import os, signal, sys

for name in ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog"):
    sys.modules[name] = None
for name in ("fork", "sched_getaffinity", "getuid", "geteuid", "getpgid", "killpg", "fchmod"):
    delattr(os, name)
for name in ("SIGHUP", "SIGUSR1", "pthread_sigmask", "alarm", "setitimer"):
    delattr(signal, name)
"""

PROTOCOL = """
title = "Two classes"
n_bits = [4]
runs = 1
metrics = ["ap"]

[dataset]
name = "arrays"

[split]
name = "improved"
sizes = { train = 30, queries = 10, validation_queries = 8, validation_database = 15 }

[[method]]
name = "lsh"
"""


@pytest.fixture
def bare(tmp_path):
    """Run Python, and the processes that it starts, without what only POSIX systems have."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WITHOUT_POSIX)
    places = os.pathsep.join([str(tmp_path / "site"), *sys.path])

    def call(*words):
        command = [sys.executable, "-W", "ignore", *map(str, words)]
        environment = {**os.environ, "PYTHONPATH": places, "BITTERN_CACHE": str(tmp_path / "cache")}
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=seconds(300),
        )

    return call


@pytest.mark.slow  # real processes
def test_an_experiment_runs_without_posix(bare, tmp_path):
    rng, labels = np.random.default_rng(0), np.arange(90) % 2
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "vectors.npy", rng.standard_normal((90, 6)) + labels[:, None])
    np.save(tmp_path / "data" / "labels.npy", labels)
    (tmp_path / "p.toml").write_text(PROTOCOL)
    done = bare("-m", "bittern", "run", "p.toml", "--out", "out", "--root", "data")
    assert done.returncode == 0, done.stderr
    records = bt.experiments.Records.read(tmp_path / "out")
    assert len(records) == 1 and not records.missing and not records.failures


@pytest.mark.slow  # a real process
def test_a_collection_works_without_posix(bare):
    done = bare(
        "-c",
        """
import sys
import bittern as bt
assert sys.modules["fcntl"] is None
codes = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1], [1, 1, 0]])
with bt.store.create("a.bittern", 3) as collection:
    collection.add(codes)
with bt.store.open("a.bittern", read_only=True) as collection:
    print(collection.search(codes[:1], 1).to_lists())
from bittern.experiments.measure import STATUS, _peak_bytes
import bittern.experiments.measure as measure
measure.STATUS = STATUS.with_name("no-such-file")
print(_peak_bytes())
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["[[(0, 0)]]", "0", ""]


def test_only_two_modules_import_what_windows_lacks_and_never_at_their_top():
    pattern = re.compile(r"^( *)(?:import|from) (?:fcntl|resource|termios|pwd|grp)\b", re.MULTILINE)
    root = Path(bt.__file__).parent
    found = {
        path.relative_to(root).as_posix(): pattern.findall(path.read_text(encoding="utf-8"))
        for path in root.rglob("*.py")
    }
    found = {path: indents for path, indents in found.items() if indents}
    assert set(found) == {"experiments/measure.py", "store/duckfile.py"}
    assert all(indent for indents in found.values() for indent in indents)


def test_one_holds_a_lock_and_others_learn_it(tmp_path):
    path = tmp_path / "a.lock"
    with locked(path, wait=False) as first, locked(path, wait=False) as second:
        assert (first, second) == (True, False)
    with locked(path, wait=True) as third:
        assert third


def test_a_lock_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "a.lock").mkdir()
    with (
        pytest.raises(bt.FileError, match=r"a.lock: cannot be locked \("),
        locked(tmp_path / "a.lock", wait=False),
    ):
        pass


def test_a_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "a.lock"
    script = f"""
import time
from pathlib import Path
from bittern.io.locks import locked
with locked(Path({str(path)!r}), wait=True):
    print("held", flush=True)
    time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        with locked(path, wait=False) as is_ours:
            assert not is_ours
        process.send_signal(signal.SIGKILL)
        process.wait()
        with locked(path, wait=False) as is_ours:
            assert is_ours
    finally:
        process.kill()
        process.communicate()


def test_where_two_kinds_of_locks_exclude_each_other_the_lock_is_a_file_of_its_own(
    tmp_path, monkeypatch
):
    import fcntl

    monkeypatch.setattr(duckfile, "LOCKS_ITSELF", False)  # as on macOS
    codes = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1]])
    place, beside = tmp_path / "a.bittern", tmp_path / "a.bittern.lock"
    with bt.store.create(place, 3) as collection:
        collection.add(codes)
        with beside.open("rb") as lock, collection._file.transaction():
            with pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with place.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free
    with bt.store.open(place, read_only=True) as collection:
        assert len(collection) == 2


def test_starting_and_listing_load_no_lock():
    run_python("""
        import sys
        import bittern.cli
        assert "filelock" not in sys.modules and "asyncio" not in sys.modules
    """)
