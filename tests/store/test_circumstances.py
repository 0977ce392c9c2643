"""Collections of other versions, in folders that cannot be written to, and when the clock jumps."""

import gzip
import json
import os
import stat
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from places import random_codes
from processes import in_child

import bittern as bt
from bittern.errors import FileError
from bittern.store import duckfile, embedded
from bittern.store.milvus_collection import MilvusCollection

CODES = random_codes(200, 64)
FIRST = Path(__file__).with_name("old") / "first.bittern.gz"


@pytest.fixture
def path(tmp_path):
    bt.store.create(tmp_path / "a.bittern", 64).close()
    return tmp_path / "a.bittern"


# Other versions.

VERSIONS = {
    99: r"written by a newer version of this package \(format 99, this one reads 1\); upgrade",
    0: r"has no format that this package knows \(0, this one reads 1\); make",
    "1": r"has no format that this package knows \('1', this one reads 1\); make",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_format_of_another_version_is_refused(path, version):
    head = {"format": "bittern collection", "version": version, "n_bits": 64, "recipe": {}}
    with duckdb.connect(str(path)) as connection:
        value = json.dumps(head).encode()
        connection.execute("UPDATE bittern SET value = ? WHERE name = 'head'", [value])
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(FileError, match=VERSIONS[version]) as error:
            bt.store.open(path, read_only=read_only)
        assert "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_the_first_collection_ever_is_read_and_written(tmp_path):
    # Written by the first commit that had collections; rows 3 and 4 were deleted.
    path = tmp_path / "old.bittern"
    path.write_bytes(gzip.decompress(FIRST.read_bytes()))
    X = np.random.default_rng(7).standard_normal((60, 8)).astype(np.float32)
    codes = bt.hashing.LSH(n_bits=32, random_state=0).fit(X).encode(X)
    rows = np.delete(np.arange(60), [3, 4])
    known = [{"n": 0, "name": "item 0"}, {"n": 19, "share": 0.95}]
    for read_only in (True, False):
        with bt.store.open(path, read_only=read_only) as collection:
            assert collection.ids.tolist() == rows.tolist()
            assert collection.get(rows).codes == codes[rows]
            assert collection.get([0, 59]).metadata == known
            assert collection.search(X[:3], 1).ids.tolist() == [[0], [1], [2]]  # by its own hasher
            assert collection.count("n >= 10") == 40
    with bt.store.open(path) as collection:
        assert collection.add(codes[:1], metadata={"n": [7]}).tolist() == [60]
        collection.delete([0])
        assert len(collection) == 58


# Folders that cannot be written to.


def test_a_collection_in_a_read_only_folder_is_read_and_gets_one_sentence(
    path, tmp_path, monkeypatch
):
    with bt.store.open(path) as collection:
        collection.add(CODES)
    bt.store.open(path, read_only=True).close()  # imports what it needs
    monkeypatch.setattr("bittern.store.soundness._is_as_left", lambda _: True)
    for parent in (tmp_path, *tmp_path.parents):
        if not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(0o755)
    path.chmod(0o444)
    tmp_path.chmod(0o555)

    def work():
        if os.geteuid() == 0:  # root may write anywhere
            os.setgid(65534)
            os.setuid(65534)
        assert len(bt.store.open(path, read_only=True)) == len(CODES)
        with pytest.raises(FileError, match=r"a\.bittern: .*Permission denied") as refused:
            bt.store.open(path)
        with pytest.raises(FileError, match=r"^\S+[^.]b\.bittern: .*Permission denied") as made:
            bt.store.create(tmp_path / "b.bittern", 64)
        assert "\n" not in str(refused.value) + str(made.value)

    assert in_child(work) == 0
    tmp_path.chmod(0o755)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bittern"]


# Clocks.


@pytest.mark.parametrize("days", [-1000, 1000])
def test_a_clock_that_jumps_changes_nothing(path, monkeypatch, days):
    jump, usual = days * 86400, (time.time, time.time_ns)
    with bt.store.open(path) as collection:
        collection.add(CODES)
        monkeypatch.setattr(time, "time", lambda: usual[0]() + jump)
        monkeypatch.setattr(time, "time_ns", lambda: usual[1]() + jump * 10**9)
        collection.add(CODES)
    os.utime(path, (usual[0]() + jump,) * 2)  # as if it had been written then
    with bt.store.open(path) as collection:
        collection.add(CODES)
        assert collection.get(collection.ids).codes == bt.Codes.concatenate([CODES] * 3)
        assert collection.search(CODES[:1], 3).ids.tolist() == [[0, 200, 400]]


def test_positions_in_milvus_grow_though_the_clock_jumps_back(monkeypatch):
    client = object.__new__(MilvusCollection)
    client._last_position = 0
    before = client._positions(3)
    monkeypatch.setattr(time, "time_ns", lambda: before[0] - 10**15)
    assert client._positions(2) == [before[-1] + 1, before[-1] + 2]


# Long use.


def test_the_log_of_a_collection_stays_short(path):
    log, sizes = Path(f"{path}.wal"), []
    with bt.store.open(path) as collection:
        assert collection._file._longest_log == duckfile.SHORT_LOG
        collection._file._longest_log = 20_000
        for _ in range(12):
            collection.add(CODES)
            sizes.append(log.stat().st_size if log.exists() else 0)
    assert 0 < max(sizes) <= 20_000
    assert sizes != sorted(sizes)  # it was written to the file now and then


def test_few_ids_need_no_join_of_which_duckdb_keeps_memory(path):
    with bt.store.open(path) as collection:
        collection.add(CODES)
        for n in (1, embedded.FEW):
            condition = embedded._among(np.arange(n))
            plan = str(collection._file.rows(f"EXPLAIN DELETE FROM codes WHERE {condition}"))
            assert "delete" in plan.lower() and "join" not in plan.lower()
