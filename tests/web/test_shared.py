"""The shared files: what a worker sees is what the collection holds, after any writes."""

import errno
import shutil
import threading

import numpy as np
import pytest
from collections_to_serve import N_BITS, N, Shared, make_vectors
from processes import seconds

from bittern import store
from bittern.codes import Codes
from bittern.web.refusal import Refusal
from bittern.web.shared import tail, writer
from bittern.web.shared.source import SharedFiles
from bittern.web.shared.tail import Change


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_vectors(tmp_path_factory.mktemp("made"))


@pytest.fixture
def path(made, tmp_path):
    return shutil.copy(made, tmp_path)


def random_codes(rng, n):
    return Codes.from_bits(rng.random((n, N_BITS)) < 0.5)


def assert_same(source, collection, rng):
    """The source answers like the collection: items, hits, ties, lists."""
    now = source.now()
    assert now.count() == len(collection)
    ids = collection.ids
    items, rows = collection.get(ids), now.get(ids)
    assert rows.codes == items.codes
    assert [rows.known(i) for i in range(len(rows))] == items.metadata
    listed, total = now.page(0, len(ids) + 5)
    assert (listed.ids.tolist(), total) == (ids.tolist(), len(ids))
    queries = random_codes(rng, 4)
    for where in (None, "number < 60 OR number IS NULL", "label = 'late'", "number = -1"):
        hits = collection.search(queries, 9, where=where)
        near = collection.within(queries, 5, where=where)
        found, within = now.search(queries, 9, where), now.within(queries, 5, where)
        for q in range(len(queries)):
            assert (found[q].ids == hits[q][0]).all()
            assert (found[q].values == hits[q][1]).all()
            assert (within[q].ids == near[q][0]).all()
            assert (within[q].values == near[q][1]).all()
            _, every = collection.within(queries[q : q + 1], N_BITS, where=where)[0]
            counts = np.bincount(every, minlength=N_BITS + 1)
            assert (now.histogram(queries[q : q + 1], where) == counts).all()
            assert all(counts[distance] == n for distance, n in found[q].ties)


@pytest.mark.parametrize("seed", range(3))
def test_after_random_writes_a_worker_sees_the_collection_itself(path, tmp_path, monkeypatch, seed):
    monkeypatch.setattr(writer, "FEWEST", 40)  # so that generations are made anew meanwhile
    rng = np.random.default_rng(seed)
    shared = Shared(path, tmp_path / "run")
    collection, source, numbers = shared.writer.collection, shared.source, set()
    old = source.now()
    first = old.get(np.arange(N)).metadata
    for _ in range(25):
        n, kind = int(rng.integers(1, 9)), rng.integers(4)
        ids = rng.choice(collection.ids, min(n, len(collection)), replace=False)
        known = [{"label": "late", "number": int(rng.integers(100))} for _ in range(len(ids))]
        codes = random_codes(rng, len(ids))
        if kind == 0:
            source.delete(np.unique(ids), None)
        elif kind == 1:
            source.add(codes, ids, known, replace=True)
        else:
            source.add(codes, None, known, replace=False)
        numbers.add(shared.files.now().generation.number)
        assert source.now().count() == len(collection)
    if shared.writer._compacting is not None:
        shared.writer._compacting.join()
    assert_same(source, collection, rng)
    assert len(numbers | {shared.files.now().generation.number}) > 1
    assert old.count() == N  # what a request began with does not change
    assert old.get(np.arange(N)).metadata == first
    shared.close()
    with store.open(path) as opened:  # all was in the file
        assert len(opened) == source.now().count()


def test_a_generation_that_is_replaced_while_its_tail_is_opened_is_no_error(
    path, tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    shared = Shared(path, tmp_path / "run")
    before = shared.writer._files.now()
    other = SharedFiles(shared.files.root, shared.files.run)
    assert other.now().committed == before.committed
    shared.source.add(random_codes(rng, 2), None, [{"label": "late"}] * 2, replace=False)
    real = tail.read_between

    def replaced_first(*place):
        monkeypatch.setattr(tail, "read_between", real)
        shared.writer._compact(before)
        return real(*place)

    monkeypatch.setattr(tail, "read_between", replaced_first)
    now = other.now()
    assert now.generation.number == before.generation.number + 1
    assert len(now.rows()) == N + 2
    shared.close()


def test_a_next_start_uses_the_files_of_the_last_one_only_if_they_are_those_of_the_collection(
    path, tmp_path
):
    rng = np.random.default_rng(0)
    numbers = []

    def start(name):
        shared = Shared(path, tmp_path / name)
        numbers.append(shared.files.now().generation.number)
        assert_same(shared.source, shared.writer.collection, rng)
        return shared

    shared = start("a")
    shared.source.add(random_codes(rng, 2), None, [{"label": "late"}] * 2, replace=False)
    shared.close()
    start("b").close()
    assert numbers == [1, 1]  # with the tail
    with store.open(path) as opened:
        opened.set_metadata([3], [{"label": "changed elsewhere"}])
    start("c").close()
    assert numbers == [1, 1, 2]
    shared = start("d")
    shared.source.delete(np.array([5]), None)
    shared.writer.collection.close()  # as if killed: nothing says whose files they are
    start("e").close()
    assert numbers == [1, 1, 2, 2, 3]
    folder = writer.shared_folder(str(path))
    (folder / "generation-3" / "index.npz").write_bytes(b"damaged")
    start("f").close()
    assert numbers[-1] == 4
    assert [file.name for file in folder.iterdir()] == ["generation-4"]


def test_workers_map_the_files_and_copy_nothing(path, tmp_path):
    shared = Shared(path, tmp_path / "run")
    generation = shared.files.now().generation
    for array in (generation.ids, generation.words, generation.offsets):
        base = array
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
    shared.close()


def test_readers_do_not_wait_for_a_write(path, tmp_path):
    shared = Shared(path, tmp_path / "run")
    done = threading.Event()

    def read():
        now = shared.source.now()
        now.search(random_codes(np.random.default_rng(0), 1), 5, "label = 'dog'")
        now.page(0, 5, "number < 7")
        done.set()

    with shared.writer._lock, shared.writer.collection._file.transaction():
        threading.Thread(target=read, daemon=True).start()
        assert done.wait(seconds(60))  # of an unfinished write, or this would never end
    shared.close()


def test_a_full_disk_refuses_a_write_before_anything_is_stored(path, tmp_path, monkeypatch):
    rng, shared = np.random.default_rng(0), Shared(path, tmp_path / "run")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tail, "append", full)
    for write in (
        lambda: shared.source.add(random_codes(rng, 3), None, [{}, {}, {}], replace=False),
        lambda: shared.source.delete(np.array([3]), None),
    ):
        with pytest.raises(Refusal, match="Nothing was stored: No space") as refused:
            write()
        assert refused.value.status == 503
    monkeypatch.undo()
    assert len(shared.writer.collection) == N
    shared.source.add(random_codes(rng, 3), None, [{"label": "late"}] * 3, replace=False)
    assert_same(shared.source, shared.writer.collection, rng)
    shared.close()


@pytest.mark.parametrize("text", ["plain", "\U0001f426" * 50, '"' * 50, "\x01" * 50])
def test_the_room_that_is_reserved_holds_what_is_written(path, tmp_path, monkeypatch, text):
    rng, shared = np.random.default_rng(0), Shared(path, tmp_path / "run")
    written, append = [], tail.append
    monkeypatch.setattr(tail, "append", lambda *given: written.append(given[2]) or append(*given))
    metadata = [{"label": text, "number": 3, "size": 10**15, "list": [text, 1.5]}] * 5
    shared.source.add(random_codes(rng, 5), None, metadata, replace=False)
    room, record = map(len, written)
    assert record <= room
    shared.close()


def test_a_collection_may_be_empty_or_become_so(tmp_path):
    rng = np.random.default_rng(0)
    store.create(tmp_path / "empty", N_BITS).close()
    shared = Shared(tmp_path / "empty", tmp_path / "run")
    source = shared.source
    assert source.now().count() == 0
    assert [len(one) for one in source.now().search(random_codes(rng, 2), 3)] == [0, 0]
    assert [len(one) for one in source.now().within(random_codes(rng, 2), 3)] == [0, 0]
    codes = random_codes(rng, 3)
    assert source.add(codes, None, None, replace=False).tolist() == [0, 1, 2]
    assert source.now().search(codes[:1], 1)[0].values.tolist() == [0]
    assert source.delete(None, "id >= 0") == 3
    assert source.now().count() == 0
    assert source.delete(None, "id >= 0") == 0
    with pytest.raises(Refusal, match="No item has the id 2"):
        source.now().get(np.array([2]))
    shared.close()


def test_records_of_the_tail_survive_the_trip(tmp_path):
    ids, none = np.array([3, 4]), np.empty(0, np.int64)
    words = np.array([[1, 2], [2**64 - 1, 0]], np.uint64)
    changes = [
        Change(none, ids, words, [b"{}", '{"a":"ä"}'.encode()]),
        Change(ids, none, words[:0], []),
        Change(ids[:1], ids[1:], words[:1], [b""]),
    ]
    file, stop = tmp_path / "tail", 0
    for change in changes:
        tail.append(file, stop, b"left by a write that failed, and longer than the record" * 9)
        stop = tail.append(file, stop, tail.to_bytes(change))
    for given, read in zip(changes, tail.parse(tail.read_between(file, 0, stop)), strict=True):
        assert read.removed.tolist() == given.removed.tolist()
        assert read.added.tolist() == given.added.tolist()
        assert (read.words == given.words).all()
        assert read.metadata == given.metadata
