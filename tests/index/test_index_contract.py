"""What every exact index promises: its answers are those of the linear scan, in the same order."""

from itertools import pairwise

import numpy as np
import pytest
from linear_scan import clustered, nearest, within

import bittern as bt
from bittern.index import INDEXES, growing_array, multi_index, scans

LENGTHS = [1, 12, 48, 64, 65, 100, 128, 256, 300]


@pytest.fixture(params=["flat by words", "flat by look-ups", "multi", "multi by tables"])
def kind(request, monkeypatch):
    """Every exact index, and the ways it may take."""
    if request.param == "flat by words":
        monkeypatch.setattr(scans, "scan_for", lambda n_bits: scans.PortableScan())
    if request.param == "flat by look-ups":
        monkeypatch.setattr(scans, "counts_bits_of_registers", lambda: False)
    if request.param == "multi by tables":  # however few codes there are, and whatever it costs
        monkeypatch.setattr(multi_index, "FEWEST", 1)
        monkeypatch.setattr(scans.Scan, "cost", lambda *_: 1e15)
        monkeypatch.setattr(multi_index.MultiIndex, "_scan_is_best", lambda *_: False)
        monkeypatch.setattr(multi_index.MultiIndex, "_tables_may_pay", lambda *_: True)
    return INDEXES[request.param.split()[0]]


def bits_of(n, n_bits, random_state=0):
    return clustered(np.random.default_rng(random_state), n, n_bits)


def codes_of(bits):
    return bt.Codes.from_bits(bits)


def made(kind, n=150, n_bits=64, **arguments):
    database, queries = bits_of(n, n_bits), bits_of(7, n_bits, 1)
    return kind(codes_of(database), **arguments), database, queries


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_the_nearest_are_those_of_the_linear_scan(kind, n_bits):
    index, database, queries = made(kind, n_bits=n_bits)
    for k in (1, 10, 149, 150):
        hits = index.search(codes_of(queries), k)
        assert hits.to_lists() == nearest(queries, database, k)
        assert hits.ids.shape == hits.distances.shape == (7, k)
        assert hits.ids.dtype == np.int64 and hits.distances.dtype == np.int32


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_a_radius_holds_what_the_linear_scan_finds(kind, n_bits):
    index, database, queries = made(kind, n_bits=n_bits)
    for radius in sorted({0, 1, n_bits // 8, n_bits // 3, n_bits, n_bits + 9}):
        hits = index.within(codes_of(queries), radius)
        assert hits.to_lists() == within(queries, database, radius)


def test_codes_of_4096_bits(kind):
    index, database, queries = made(kind, n=40, n_bits=4096)
    assert index.search(codes_of(queries), 5).to_lists() == nearest(queries, database, 5)
    assert index.within(codes_of(queries), 800).to_lists() == within(queries, database, 800)


@pytest.mark.parametrize("n", [1, 31, 127, 128, 129, 255, 256, 257, 600])
def test_every_number_of_codes(kind, n):
    index, database, queries = made(kind, n=n, n_bits=24)
    assert index.search(codes_of(queries), 4).to_lists() == nearest(queries, database, 4)
    assert index.within(codes_of(queries), 3).to_lists() == within(queries, database, 3)


def test_ties_are_in_the_order_of_adding(kind):
    index = kind(codes_of(np.zeros((300, 64), bool)), ids=np.arange(300)[::-1])
    hits = index.search(codes_of(np.zeros((2, 64), bool)), 5)
    assert hits.to_lists() == [[(299, 0), (298, 0), (297, 0), (296, 0), (295, 0)]] * 2


def test_more_than_there_are(kind):
    index, database, queries = made(kind, n=5)
    hits = index.search(codes_of(queries), 1000)
    assert hits.ids.shape == (7, 5)
    assert hits.to_lists() == nearest(queries, database, 5)


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_a_mask_filters_inside_the_search(kind, share):
    index, database, queries = made(kind)
    mask = np.random.default_rng(3).random(150) < share
    assert mask.any()
    found = index.search(codes_of(queries), 9, where=mask).to_lists()
    assert found == nearest(queries, database, 9, mask)
    assert index.within(codes_of(queries), 9, where=mask).to_lists() == within(
        queries, database, 9, mask
    )


@pytest.mark.parametrize("as_what", [set, frozenset, list, np.array, tuple])
def test_a_set_of_ids_filters_inside_the_search(kind, as_what):
    index, database, queries = made(kind, ids=np.arange(150) * 3)
    rows = [5, 77, 149, 20, 3]
    ids = as_what([3 * row for row in rows] + [1, 10**12])  # the last two are not there
    mask = np.isin(np.arange(150), rows)
    expected = [[(3 * r, d) for r, d in line] for line in nearest(queries, database, 150, mask)]
    assert index.search(codes_of(queries), 150, where=ids).to_lists() == expected


def test_nothing_allowed_is_nothing_found(kind):
    index, _, queries = made(kind)
    for where in ([], np.zeros(150, bool), {10**6}):
        assert index.search(codes_of(queries), 3, where=where).ids.shape == (7, 0)
        assert index.within(codes_of(queries), 3, where=where).to_lists() == [[]] * 7


def test_adding_in_parts_is_adding_at_once(kind):
    database, queries = bits_of(400, 64), bits_of(7, 64, 1)
    index = kind()
    start = 0
    for size in (1, 0, 126, 2, 171, 100):
        index.add(codes_of(database[start : start + size]))
        start += size
        if start:
            found = index.search(codes_of(queries), 12).to_lists()
            assert found == nearest(queries, database[:start], 12)
            found = index.within(codes_of(queries), 11).to_lists()
            assert found == within(queries, database[:start], 11)
    assert len(index) == 400 and index.ids.tolist() == list(range(400))
    assert index.codes == codes_of(database)


def test_what_was_removed_is_not_found(kind):
    index, database, queries = made(kind, n=300)
    rng = np.random.default_rng(5)
    alive = np.ones(300, bool)
    index.search(codes_of(queries), 1)  # so that something is built before rows go
    for size in (1, 20, 100, 150):  # the rows are moved on the way
        gone = rng.choice(np.flatnonzero(alive), size, replace=False)
        index.remove(gone)
        alive[gone] = False
        assert len(index) == alive.sum()
        assert index.ids.tolist() == np.flatnonzero(alive).tolist()
        assert index.codes == codes_of(database[alive])
        assert index.search(codes_of(queries), 9).to_lists() == nearest(queries, database, 9, alive)
        mask = rng.random(alive.sum()) < 0.5
        both = alive.copy()
        both[alive] = mask
        assert index.within(codes_of(queries), 20, where=mask).to_lists() == within(
            queries, database, 20, both
        )


def test_a_removed_id_may_come_again_at_the_end(kind):
    index, database, queries = made(kind)
    index.remove([3, 4])
    index.add(codes_of(database[3:5]), ids=[4, 3])
    order = [row for row in range(150) if row not in (3, 4)] + [3, 4]
    names = [row for row in range(150) if row not in (3, 4)] + [4, 3]
    found = index.search(codes_of(queries), 150).to_lists()
    expected = nearest(queries, database[order], 150)
    assert found == [[(names[r], d) for r, d in line] for line in expected]
    index.remove([3])
    assert index.ids[-1] == 4 and len(index) == 149


def test_positions_are_those_among_the_ids(kind):
    index, _, _ = made(kind, ids=np.random.default_rng(3).permutation(150) * 2)
    index.remove(index.ids[10:40])
    ids = index.ids
    assert index.positions_of(ids).tolist() == list(range(120))
    assert index.positions_of(np.array([1, ids[7], 10_000])).tolist() == [-1, 7, -1]


def test_everything_can_be_removed_and_ids_are_not_used_again(kind):
    index, database, queries = made(kind)
    index.remove(range(150))
    assert len(index) == 0 and index.n_bits == 64
    assert index.search(codes_of(queries), 3).ids.shape == (7, 0)
    index.add(codes_of(database[:2]))
    assert index.ids.tolist() == [150, 151]


def test_a_million_removals_are_quick():
    from time import process_time

    words = np.arange(1 << 20, dtype=np.uint64)[:, None]
    index = bt.FlatIndex(bt.Codes(words, 64))
    began = process_time()
    for start in range(0, 1 << 20, 1 << 12):
        index.remove(np.arange(start, start + (1 << 12)))
    assert len(index) == 0
    assert process_time() - began < 5


def test_an_index_may_be_empty(kind):
    queries = codes_of(bits_of(3, 64))
    for index in (kind(), kind(queries[:0])):
        assert len(index) == 0 and index.ids.tolist() == []
        assert index.search(queries, 5).ids.shape == (3, 0)
        assert index.within(queries, 5).to_lists() == [[], [], []]


def test_there_may_be_no_queries(kind):
    index, _, queries = made(kind)
    none = codes_of(queries)[:0]
    assert index.search(none, 5).ids.shape == (0, 5)
    assert index.within(none, 5).to_lists() == []


def test_threads_change_nothing(kind):
    index, _, _ = made(kind, n=500)
    queries = codes_of(bits_of(130, 64, 2))
    one, two = (index.search(queries, 20, n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.ids, two.ids)
    np.testing.assert_array_equal(one.distances, two.distances)
    one, two = (index.within(queries, 12, n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.ids, two.ids)
    np.testing.assert_array_equal(one.offsets, two.offsets)
    assert one.sizes.sum() > 1000  # not vacuous


def test_a_read_only_array_is_left_alone(kind):
    words = codes_of(bits_of(50, 64)).words
    words.flags.writeable = False
    codes = bt.Codes(words, 64)
    index = kind(codes)
    assert index.search(codes[:3], 1).ids.ravel().tolist() == [0, 1, 2]
    index.add(codes)
    assert len(codes) == 50 and len(index) == 100


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_what_is_saved_is_what_is_loaded(kind, tmp_path, mmap):
    index, database, queries = made(kind, n=300, n_bits=70, ids=np.arange(300) * 2)
    index.remove([0, 40])
    index.save(tmp_path / "a.index")
    assert [path.name for path in tmp_path.iterdir()] == ["a.index"]
    for loaded in (
        kind.load(tmp_path / "a.index", mmap=mmap),
        bt.index.Index.load(tmp_path / "a.index"),
    ):
        assert type(loaded) is kind and len(loaded) == 298
        assert (
            loaded.search(codes_of(queries), 30).to_lists()
            == index.search(codes_of(queries), 30).to_lists()
        )
        loaded.add(codes_of(database[:1]))
        assert loaded.ids[-1] == 599
        loaded.remove([599, 2])
        assert len(loaded) == 297


def test_an_empty_index_is_saved_too(kind, tmp_path):
    kind().save(tmp_path / "a.index")
    loaded = kind.load(tmp_path / "a.index")
    loaded.add(codes_of(bits_of(3, 12)))
    assert loaded.ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_a_file_that_is_cut_is_a_file_error(kind, tmp_path, mmap):
    index, _, _ = made(kind, n=3, n_bits=8)
    index.save(tmp_path / "a.index")
    whole = (tmp_path / "a.index").read_bytes()
    for length in range(0, len(whole), len(whole) // 80):
        (tmp_path / "a.index").write_bytes(whole[:length])
        with pytest.raises(bt.FileError, match=r"a\.index"):
            kind.load(tmp_path / "a.index", mmap=mmap)


def test_a_file_with_a_byte_changed_is_never_misread(kind, tmp_path):
    index, _, queries = made(kind, n=40, n_bits=12)
    path = tmp_path / "a.index"
    index.save(path)
    whole, expected = path.read_bytes(), index.search(codes_of(queries), 40).to_lists()
    refused = 0
    for place in range(3, len(whole), len(whole) // 100):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            loaded = kind.load(path)
        except bt.FileError:
            refused += 1
        else:  # a part of the file that says nothing, such as padding
            assert loaded.search(codes_of(queries), 40).to_lists() == expected
    assert refused > 20


def test_an_index_of_another_kind_is_refused(tmp_path):
    bt.FlatIndex().save(tmp_path / "flat")
    with pytest.raises(bt.FileError, match="kind 'flat', which MultiIndex cannot read"):
        bt.MultiIndex.load(tmp_path / "flat")
    codes_of(bits_of(3, 8)).save(tmp_path / "codes.npz")
    with pytest.raises(bt.FileError, match="is not a saved index"):
        bt.FlatIndex.load(tmp_path / "codes.npz")
    (tmp_path / "text").write_text("no index")
    with pytest.raises(bt.FileError, match="not a readable"):
        bt.FlatIndex.load(tmp_path / "text")
    with pytest.raises(bt.FileError, match="no such file"):
        bt.FlatIndex.load(tmp_path / "nowhere")


CODES = codes_of(bits_of(5, 16))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda i: i.add(codes_of(bits_of(2, 24))), "codes must have the 16 bits .* got 24"),
        (lambda i: i.search(codes_of(bits_of(2, 8)), 1), "queries must have the 16 bits .* got 8"),
        (lambda i: i.within(codes_of(bits_of(2, 8)), 1), "queries must have the 16 bits .* got 8"),
        (lambda i: i.add(CODES.words), "codes must be a Codes, got ndarray"),
        (lambda i: i.add(CODES, ids=[5, 6, 7, 8]), "ids and of codes must agree, got 4 and 5"),
        (lambda i: i.add(CODES, ids=[9, 6, 7, 8, 9]), "ids must be distinct, 9 is not"),
        (lambda i: i.add(CODES, ids=[9, 6, 7, 8, 2]), "the id 2 exists already"),
        (lambda i: i.add(CODES, ids=[9, 6, 7, 8, -2]), "ids must be at least 0, got -2"),
        (lambda i: i.add(CODES, ids=[9.5, 6, 7, 8, 2]), "1-D array of whole numbers, got float64"),
        (lambda i: i.remove([1, 17]), "no item has the id 17"),
        (lambda i: i.remove([[1]]), "1-D array of whole numbers"),
        (lambda i: i.search(CODES, 0), "k must be at least 1, got 0"),
        (lambda i: i.search(CODES, 2.5), "k must be a whole number"),
        (lambda i: i.within(CODES, -1), "radius must be at least 0"),
        (lambda i: i.search(CODES, 1, where=[True]), "one entry for each of 5 items, got 1"),
        (lambda i: i.search(CODES, 1, where=[0.5]), "where must be a boolean mask or ids"),
        (lambda i: i.search(CODES, 1, n_threads=0), "n_threads must be at least 1"),
        (lambda i: type(i)(ids=[1]), "ids need codes"),
        (lambda i: type(i)().codes, "has no codes yet"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(kind, call, says):
    index = kind(CODES)
    with pytest.raises(bt.InputError, match=says):
        call(index)
    assert index.ids.tolist() == [0, 1, 2, 3, 4]
    assert index.search(CODES, 1).distances.max() == 0


def test_ids_in_any_order_are_found_however_they_came():
    rng = np.random.default_rng(0)
    index, known = bt.FlatIndex(), {}
    for step in range(60):
        ids = rng.choice(10**6, rng.integers(0, 80), replace=False)
        ids = ids[[i not in known for i in ids.tolist()]]
        bits = rng.random((len(ids), 32)) < 0.5
        index.add(codes_of(bits), ids=ids)
        known |= dict(zip(ids.tolist(), bits, strict=True))
        gone = rng.choice(list(known), len(known) // 3, replace=False)
        index.remove(gone)
        for i in gone.tolist():
            del known[i]
        if step % 10 == 9:
            assert index.ids.tolist() == list(known)
            np.testing.assert_array_equal(index.codes.to_bits(), list(known.values()))


@pytest.mark.parametrize("n_bits", [64, 100])
def test_codes_added_to_many_are_found_while_they_are_late(kind, n_bits, monkeypatch):
    monkeypatch.setattr(growing_array, "LARGE", 256)
    bits, queries = bits_of(700, n_bits), bits_of(5, n_bits, 3)
    ids = np.concatenate([np.arange(640) * 2, 1279 + np.arange(60)])
    index, allowed, n_late = kind(codes_of(bits[:640]), ids=ids[:640]), np.ones(700, bool), []
    index.search(codes_of(queries), 1)
    for first, last in pairwise([640, 641, 643, 648, 649, 650, 657, 687, 700]):
        index.add(codes_of(bits[first:last]))
        n_late.append(len(index._items.parts[1]))
        index.remove(ids[[first - 100, first]])  # the second is of the latest rows
        allowed[[first - 100, first]] = False
        for found, rows in (
            (index.search(codes_of(queries), 9), nearest(queries, bits[:last], 9, allowed[:last])),
            (index.within(codes_of(queries), 9), within(queries, bits[:last], 9, allowed[:last])),
        ):
            wanted = [[(int(ids[row]), distance) for row, distance in line] for line in rows]
            assert found.to_lists() == wanted
    assert n_late == [1, 3, 8, 9, 10, 0, 0, 0]  # at most one in 64 of the first
    assert index.ids.tolist() == ids[allowed].tolist()
    np.testing.assert_array_equal(index.codes.to_bits(), bits[allowed])
