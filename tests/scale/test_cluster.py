"""A real Dask cluster of separate processes on this machine: the same sum, whatever happens."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import bittern as bt
from bittern.scale import cluster as cluster_module
from bittern.scale.cluster import connect

pytest.importorskip("distributed", reason="the extra 'dask' is not installed")


def started(*words):
    environment = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s"}
    command = [sys.executable, "-m", "dask", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture(scope="module")
def cluster():
    """The address of a scheduler, and its two workers."""
    scheduler = started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = None
    for line in scheduler.stderr:
        if found := re.search(r"Scheduler at:\s+(tcp://127\.0\.0\.1:\d+)", line):
            address = found[1]
            break
    processes = [scheduler]
    # The nanny of a worker starts it again when it dies.
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
    processes += [started(*worker, "--nworkers", "2")]
    readers = [threading.Thread(target=p.stderr.read, daemon=True) for p in processes]
    for reader in readers:  # a full pipe would stop the processes
        reader.start()
    yield address
    for process in reversed(processes):
        process.terminate()
    for process, reader in zip(processes, readers, strict=True):
        process.wait(20)
        reader.join(20)
        process.stderr.close()


def workers_of(address):
    from distributed import Client

    with Client(address, timeout=20) as client:
        client.wait_for_workers(2, timeout=60)
        return list(client.run(os.getpid).values())


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


def test_a_cluster_counts_what_one_machine_counts(cluster, database):
    shards, queries, truth, expected = database
    workers_of(cluster)
    with connect(cluster) as executor:
        assert bt.scale.profile(queries, shards, truth, executor=executor) == expected
        hits = bt.scale.search(queries, shards, 10, executor=executor)
    np.testing.assert_array_equal(hits.ids, bt.scale.search(queries, shards, 10).ids)


def test_a_killed_worker_changes_nothing(cluster, database):
    shards, queries, truth, expected = database
    pids = workers_of(cluster)
    killed = []

    def kill():
        time.sleep(0.2)
        os.kill(pids[0], signal.SIGKILL)
        killed.append(pids[0])

    killer = threading.Thread(target=kill)
    with connect(cluster) as executor:
        killer.start()
        assert bt.scale.profile(queries, shards, truth, executor=executor) == expected
        killer.join()
    assert killed


def test_a_damaged_shard_is_named_from_a_worker(cluster, database, tmp_path):
    _, queries, truth, _ = database
    rng = np.random.default_rng(1)
    damaged = bt.scale.Shards.create(
        tmp_path / "db",
        bt.Codes.from_bits(rng.integers(0, 2, (3000, 64))),
        labels=rng.integers(0, 5, 3000),
        shard_size=1000,
    )
    (tmp_path / "db" / "000001.codes.npy").unlink()
    workers_of(cluster)
    with (
        connect(cluster) as executor,
        pytest.raises(bt.FileError, match="shard 000001"),
    ):
        bt.scale.profile(queries, damaged, truth, executor=executor)


def test_no_scheduler_is_one_sentence(monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    with (
        pytest.raises(bt.BitternError, match="no Dask scheduler answers"),
        connect("tcp://127.0.0.1:9"),
    ):
        pass
