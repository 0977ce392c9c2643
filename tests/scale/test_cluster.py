"""A real Dask cluster of separate processes on this machine: the same sum, whatever happens.

``BITTERN_FAULTS=20 pytest tests/scale/test_cluster.py`` also kills workers at twenty random
moments, fills a worker's memory, and adds a worker of another version.
"""

import os
import re
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from clusters import Cluster

import bittern as bt
from bittern.cli import main
from bittern.experiments import Records
from bittern.scale import cluster as cluster_module
from bittern.scale import tasks
from bittern.scale.cluster import connect

pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
N_FAULTS = int(os.environ.get("BITTERN_FAULTS", "0"))
many = pytest.mark.skipif(N_FAULTS == 0, reason="takes minutes; set BITTERN_FAULTS=20")


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and two workers."""
    made = Cluster()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    rng = np.random.default_rng(0)
    codes = bt.Codes.from_bits(rng.integers(0, 2, (40_000, 64)))
    labels = rng.integers(0, 5, len(codes))
    folder = tmp_path_factory.mktemp("cluster") / "db"
    shards = bt.scale.Shards.create(folder, codes, labels=labels, shard_size=1000)
    queries, asked = codes[:200], labels[:200]
    expected = bt.TieProfile.from_codes(queries, codes, bt.Relevance.from_classes(asked, labels))
    return shards, queries, bt.scale.Classes(asked), expected


def after(seconds, call):
    """A thread that makes a call after some time."""
    thread = threading.Timer(seconds, call)
    thread.start()
    return thread


def test_a_cluster_counts_what_one_machine_counts(cluster, database):
    shards, queries, truth, expected = database
    cluster.ready()
    with connect(cluster.address) as executor:
        assert bt.scale.profile(queries, shards, truth, executor=executor) == expected
        hits = bt.scale.search(queries, shards, 10, executor=executor)
    np.testing.assert_array_equal(hits.ids, bt.scale.search(queries, shards, 10).ids)


def test_a_killed_worker_changes_nothing(cluster, database):
    shards, queries, truth, expected = database
    pids = cluster.ready()
    with connect(cluster.address) as executor:
        killer = after(0.2, lambda: os.kill(pids[0], signal.SIGKILL))
        assert bt.scale.profile(queries, shards, truth, executor=executor) == expected
        killer.join()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)  # it was killed


def test_a_damaged_shard_is_named_from_a_worker(cluster, database, tmp_path):
    shards, queries, truth, _ = database
    copytree(shards.folder, tmp_path / "db")
    removed, flipped = (tmp_path / "db" / f"00000{i}.codes.npy" for i in (1, 2))
    removed.unlink()
    cluster.ready()
    partial = tmp_path / "partial"
    with connect(cluster.address) as executor:
        with pytest.raises(bt.FileError, match=r"shard 000001: .*No such file"):
            bt.scale.profile(queries, tmp_path / "db", truth, executor=executor, partial=partial)
        removed.write_bytes((shards.folder / removed.name).read_bytes())
        content = bytearray(flipped.read_bytes())
        content[-3] ^= 4
        flipped.write_bytes(content)
        with pytest.raises(bt.FileError, match=r"shard 000002: .*are damaged"):
            bt.scale.profile(queries, tmp_path / "db", truth, executor=executor)
    kept = [path.name for path in partial.glob("*/*")]
    assert not any(name.startswith((".", "000001")) for name in kept)  # none is half-written


def test_the_records_of_a_cluster_are_those_of_this_machine(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(
        'title = "Small"\nruns = 1\nn_bits = [8]\nmetrics = ["ap"]\ndataset.name = "digits"\n'
        'split.name = "improved"\ntruth.kind = "classes"\n'
        'method = [{name = "lsh"}, {name = "itq-cca"}]\n'
    )
    cluster.ready()
    for folder, words in (("here", ("--jobs", "1")), ("there", ("--dask", cluster.address))):
        monkeypatch.setattr("sys.argv", ["bittern", "run", "small.toml", "--out", folder, *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
    here, there = (Records.read(Path(folder)) for folder in ("here", "there"))
    assert [r.fingerprint for r in there] == [r.fingerprint for r in here]
    assert len(there) == 2
    assert all(ours.same_values(theirs) for ours, theirs in zip(here, there, strict=True))


def test_a_scheduler_that_ends_is_an_error_and_the_same_call_goes_on(
    cluster, database, tmp_path, monkeypatch
):
    shards, queries, truth, expected = database
    cluster.ready()
    monkeypatch.setattr(tasks, "GLANCE", 0.2)
    partial = tmp_path / "partial"
    with connect(cluster.address) as executor:
        executor._client._timeout = 0.5  # seconds in which it looks for its scheduler again
        real = executor.submit
        sent = []

        def submit(*arguments):
            sent.append(real(*arguments))
            if len(sent) == len(shards):
                cluster.scheduler.kill()
            return sent[-1]

        executor.submit = submit
        with pytest.raises(bt.BitternError, match=r"shard \d+: its task failed .*gone"):
            bt.scale.profile(queries, shards, truth, executor=executor, partial=partial)
    left = [path.name for path in partial.glob("*/*")]
    assert len(left) < len(shards)
    assert not any(name.startswith(".") for name in left)
    assert bt.scale.profile(queries, shards, truth, partial=partial) == expected


def test_no_scheduler_is_one_sentence(monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    with (
        pytest.raises(bt.BitternError, match="no Dask scheduler answers"),
        connect("tcp://127.0.0.1:9"),
    ):
        pass


def test_a_worker_of_another_version_is_refused(database, monkeypatch):
    shards, queries, truth, _ = database
    real = tasks._call
    monkeypatch.setattr(tasks, "_call", lambda _, *task: real("9.9", *task))
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(bt.BitternError, match=r"a worker has bittern .* but 9\.9 sent it a task"),
    ):
        bt.scale.profile(queries, shards, truth, executor=executor)


def test_retries_are_bounded(database):
    shards, queries, truth, _ = database
    calls = []

    class Unlucky(ThreadPoolExecutor):
        def submit(self, *arguments):
            calls.append(arguments[-1][1].name)
            return super().submit(lost)

    def lost():
        raise ConnectionResetError("the worker went away")

    with Unlucky(1) as executor, pytest.raises(bt.BitternError, match=r"shard 0.* went away"):
        bt.scale.profile(queries, shards, truth, executor=executor)
    assert max(calls.count(name) for name in set(calls)) == tasks.ATTEMPTS


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Enough work for several seconds, so that a random moment is in the middle."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**63, (3_000_000, 1)).astype(np.uint64)
    codes, labels = bt.Codes(words, 64), rng.integers(0, 10, len(words))
    folder = tmp_path_factory.mktemp("large") / "db"
    shards = bt.scale.Shards.create(folder, codes, labels=labels, shard_size=50_000)
    queries, asked = codes[:1000], labels[:1000]
    truth = bt.scale.Classes(asked)
    return shards, queries, truth, bt.scale.profile(queries, shards, truth)


@many
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(N_FAULTS))
def test_workers_killed_at_random_moments_change_nothing(cluster, large, tmp_path, seed):
    shards, queries, truth, expected = large
    pids = cluster.ready()
    rng = np.random.default_rng(seed)
    victim, moment = pids[rng.integers(len(pids))], float(rng.uniform(0, 4))
    with connect(cluster.address) as executor:
        killer = after(moment, lambda: os.kill(victim, signal.SIGKILL))
        began = time.monotonic()
        found = bt.scale.profile(
            queries, shards, truth, executor=executor, partial=tmp_path / "partial"
        )
        took = time.monotonic() - began
        killer.join()
    assert found == expected
    assert not (tmp_path / "partial").exists()
    print(f"killed after {moment:.2f} s of {took:.2f} s")  # noqa: T201


@many
@pytest.mark.slow
def test_a_worker_whose_memory_is_full_is_named_with_its_shard(large, tmp_path):
    shards, queries, truth, _ = large
    small = Cluster("--nworkers", "1", "--memory-limit", "120MiB")  # less than it needs to load
    try:
        with (
            connect(small.address) as executor,
            pytest.raises(bt.BitternError, match=r"shard \d+: its task failed"),
        ):
            bt.scale.profile(
                queries, shards, truth, executor=executor, partial=tmp_path / "partial"
            )
    finally:
        small.stop()
    assert not any(path.name.startswith(".") for path in (tmp_path / "partial").glob("*/*"))
    assert bt.scale.profile(queries, shards, truth, partial=tmp_path / "partial") == large[3]


@many
@pytest.mark.slow
def test_a_worker_that_really_has_another_version_is_refused(large, tmp_path):
    shards, queries, truth, _ = large
    other = copytree(Path(bt.__file__).parent, tmp_path / "bittern")
    source = (other / "__init__.py").read_text()
    changed = re.sub(r'__version__ = ".*"', '__version__ = "0.0.1"', source)
    assert changed != source
    (other / "__init__.py").write_text(changed)
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    mixed = Cluster("--nworkers", "1", environment={"PYTHONPATH": path})
    try:
        mixed.ready(1)
        with (
            connect(mixed.address) as executor,
            pytest.raises(bt.BitternError, match=r"a worker has bittern 0\.0\.1"),
        ):
            bt.scale.profile(queries, shards, truth, executor=executor)
    finally:
        mixed.stop()


class Reconnecting:
    """An executor like a Dask client's that lost its scheduler: it cancels what it is sent."""

    def __init__(self, n_glances):
        self._client, self.n_sent, self.n_glances = self, 0, n_glances

    @property
    def status(self):
        """What a client says of its connection."""
        self.n_glances -= 1
        return "connecting" if self.n_glances > 0 else "running"

    def submit(self, call, *values):
        """Call at once, or cancel."""
        self.n_sent += 1
        future = Future()
        if self.n_glances > 0:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(call(*values))
        return future


def test_no_attempt_is_wasted_while_a_lost_scheduler_is_looked_for():
    executor = Reconnecting(n_glances=6)
    assert dict(tasks.submitted(executor, len, {"shard": "four"})) == {"shard": 4}
    assert executor.n_sent == 2
