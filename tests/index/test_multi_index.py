"""Multi-index hashing where it is hard: exact on every kind of codes, and never a bad bargain."""

import numpy as np
import pytest
from linear_scan import clustered

import bittern as bt
from bittern.index import flat_index, multi_index, scans
from bittern.kernels import multi_index as kernels
from bittern.kernels.multi_index import Searched

N, FEWEST = 6000, 4096  # codes, and how many are scanned in any case


@pytest.fixture(autouse=True)
def few_codes_have_tables_too(monkeypatch):
    monkeypatch.setattr(multi_index, "FEWEST", FEWEST)
    monkeypatch.setattr(multi_index, "OVERHEAD", 0.0)


def random_bits(n, n_bits, random_state=0):
    return np.random.default_rng(random_state).random((n, n_bits)) < 0.5


def databases(name, n_bits):
    rng = np.random.default_rng(n_bits)
    few = random_bits(3, n_bits)[rng.integers(0, 3, N)]
    return {
        "all equal": np.zeros((N, n_bits), bool),
        "three codes": few,
        "clustered": clustered(rng, N, n_bits, n_centres=100),
        "uniform": random_bits(N, n_bits),
        "constant bits": few & (np.arange(n_bits) < n_bits // 2),
        "skew": rng.random((N, n_bits)) < np.linspace(0.01, 0.5, n_bits),
    }[name]


def linear(database, queries, k):
    """Rows and distances by a stable sort of all distances."""
    distances = np.bitwise_count(queries.words[:, None] ^ database.words).sum(axis=2, dtype=int)
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return rows, np.take_along_axis(distances, rows, axis=1)


@pytest.fixture(params=["as it chooses", "by tables"])
def bargain(request, monkeypatch):
    if request.param == "by tables":
        monkeypatch.setattr(scans.Scan, "cost", lambda *_: 1e15)
    return request.param


@pytest.mark.parametrize("n_bits", [20, 64, 128])
@pytest.mark.parametrize(
    "name", ["all equal", "three codes", "clustered", "uniform", "constant bits", "skew"]
)
def test_it_equals_the_linear_scan(name, n_bits, bargain):
    bits = databases(name, n_bits)
    database = bt.Codes.from_bits(bits)
    far = ~bits[:2]  # nothing is near the complement
    queries = bt.Codes.from_bits(np.concatenate([bits[::1500], far, random_bits(2, n_bits, 1)]))
    index = bt.MultiIndex(database)
    for k in (1, 7, 100):
        hits = index.search(queries, k)
        rows, distances = linear(database, queries, k)
        np.testing.assert_array_equal(hits.ids, rows)
        np.testing.assert_array_equal(hits.distances, distances)
    for radius in (0, 3, n_bits // 5):
        hits, flat = index.within(queries, radius), bt.FlatIndex(database).within(queries, radius)
        np.testing.assert_array_equal(hits.offsets, flat.offsets)
        np.testing.assert_array_equal(hits.ids, flat.ids)
        np.testing.assert_array_equal(hits.distances, flat.distances)


def test_k_may_cut_a_tie_anywhere(bargain):
    # Distances 0 … 4 have 1, 64, 2016 … codes; k just before, at and after each border.
    query = random_bits(1, 64)
    rng = np.random.default_rng(0)
    bits = np.repeat(query, N, axis=0)
    for row in range(N):
        bits[row, rng.choice(64, rng.integers(0, 5), replace=False)] ^= True
    database, queries = bt.Codes.from_bits(bits), bt.Codes.from_bits(query)
    index = bt.MultiIndex(database)
    borders = np.cumsum(np.bincount((bits != query).sum(axis=1)))[:3]
    assert borders[0] > 900  # the first tie is longer than the room for what is found
    for k in (1, 50, *(borders[:, None] + [-1, 0, 1]).ravel().tolist()):
        rows, distances = linear(database, queries, k)
        hits = index.search(queries, int(k))
        np.testing.assert_array_equal(hits.ids, rows)
        np.testing.assert_array_equal(hits.distances, distances)


@pytest.mark.parametrize("n_segments", [1, 2, 3, 5, 7, 16])
@pytest.mark.parametrize("n_bits", [17, 64, 100, 200])
def test_any_number_of_segments_gives_the_same(n_segments, n_bits, monkeypatch):
    monkeypatch.setattr(scans.Scan, "cost", lambda *_: 1e15)
    bits = databases("clustered", n_bits)
    database, queries = bt.Codes.from_bits(bits), bt.Codes.from_bits(bits[:3])
    index = bt.MultiIndex(database, n_segments=n_segments)
    rows, distances = linear(database, queries, 20)
    hits = index.search(queries, 20)
    np.testing.assert_array_equal(hits.ids, rows)
    np.testing.assert_array_equal(hits.distances, distances)


def test_near_queries_are_answered_from_the_tables(monkeypatch):
    # Not vacuous: all the above would hold of an index that always scans.
    bits = databases("clustered", 64)
    index = bt.MultiIndex(bt.Codes.from_bits(bits))
    queries = bt.Codes.from_bits(bits[:10])
    expected = bt.FlatIndex(index.codes).search(queries, 1)

    def no_scan(*_):
        raise AssertionError("scanned")

    monkeypatch.setattr(scans.Avx2Scan, "_find_nearest", no_scan)
    monkeypatch.setattr(scans.PortableScan, "_find_nearest", no_scan)
    np.testing.assert_array_equal(index.search(queries, 1).ids, expected.ids)


def test_a_large_k_of_spread_codes_is_scanned():
    database = bt.Codes.from_bits(databases("uniform", 64))
    index = bt.MultiIndex(database)
    tables, is_done = index._up_to_date(None), np.ones(1, bool)
    out = np.empty((1, 300), np.int64), np.empty((1, 300), np.int32), is_done, np.empty(1)
    searched = Searched(database.words, database.words[:0], N, tables, flat_index.EVERYTHING)
    kernels.find_nearest(
        database.words[:1], searched, 300, index._scan_to_ask().cost(database.words, 300), *out
    )
    assert not is_done[0]


def test_many_queries_that_are_for_the_scan_are_not_tried_one_by_one(monkeypatch):
    database = bt.Codes.from_bits(databases("uniform", 64))
    tried, find = [], kernels.find_nearest
    monkeypatch.setattr(
        kernels, "find_nearest", lambda q, *rest: (tried.append(len(q)), find(q, *rest))
    )
    queries = bt.Codes.from_bits(random_bits(200, 64, 5))
    hits = bt.MultiIndex(database).search(queries, 300)
    assert sum(tried) == multi_index.SAMPLE
    np.testing.assert_array_equal(hits.ids, linear(database, queries, 300)[0])


def test_segments_suit_the_number_of_codes():
    lows, widths = multi_index._segments_for(64, 10**6, None)
    assert lows.tolist() == [0, 16, 32, 48] and widths.tolist() == [16] * 4
    for n_bits in (1, 7, 64, 65, 128, 1000, 4096):
        for n in (4096, 10**6, 10**9):
            for m in (None, 1, 3, 16):
                lows, widths = multi_index._segments_for(n_bits, n, m)
                assert (widths >= 1).all() and (widths <= multi_index.MOST_WIDTH).all()
                assert (lows[1:] >= (lows + widths)[:-1]).all() and (lows + widths)[-1] <= n_bits


def test_masks_are_all_numbers_of_few_bits():
    masks, starts = multi_index._masks_by_size(9)
    by_hand = sorted(range(512), key=lambda x: (x.bit_count(), x))
    assert masks.tolist() == by_hand[: starts[-1]] and len(masks) == 511
    assert starts.tolist() == [0, 1, 10, 46, 130, 256, 382, 466, 502, 511]


def test_codes_added_later_are_found_before_and_after_the_tables_take_them_in():
    bits = databases("clustered", 64)
    index = bt.MultiIndex(bt.Codes.from_bits(bits[:4500]))
    queries = bt.Codes.from_bits(bits[4500:4510])
    index.search(queries, 5)
    first = index._tables
    index.add(bt.Codes.from_bits(bits[4500:]))
    assert index.search(queries, 5).distances[:, 0].tolist() == [0] * 10
    assert index._tables is first
    index.add(bt.Codes.from_bits(random_bits(4000, 64, 9)))
    assert index.search(queries, 5).distances[:, 0].tolist() == [0] * 10
    assert index._tables is not first


def test_tables_come_back_from_a_file(tmp_path, monkeypatch):
    bits = databases("clustered", 64)
    index = bt.MultiIndex(bt.Codes.from_bits(bits), n_segments=3)
    index.save(tmp_path / "a")

    def no_building(*_):
        raise AssertionError("built anew")

    monkeypatch.setattr(multi_index, "build", no_building)
    for mmap in (False, True):
        loaded = bt.MultiIndex.load(tmp_path / "a", mmap=mmap)
        assert loaded.n_segments == 3
        queries = bt.Codes.from_bits(bits[:5])
        np.testing.assert_array_equal(loaded.search(queries, 9).ids, index.search(queries, 9).ids)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("rows", lambda a: a + np.uint32(1), "rows that do not exist"),
        ("offsets", lambda a: a[::-1].copy(), "do not ascend"),
        ("offsets", lambda a: a[:-1], "not those of its segments"),
        ("lows", lambda a: a + 9, "not those of its codes"),
        ("widths", lambda a: a * 9, "out of bounds"),
        ("widths", lambda a: a.astype(float), "wrong type or number"),
        ("codes", lambda a: a[:, :-1], "do not hold its codes"),
    ],
)
def test_tables_that_do_not_fit_are_a_file_error(tmp_path, monkeypatch, name, change, says):
    index = bt.MultiIndex(bt.Codes.from_bits(databases("clustered", 64)))
    arrays = index._arrays()
    monkeypatch.setattr(index, "_arrays", lambda: arrays | {name: change(arrays[name])})
    index.save(tmp_path / "a")
    with pytest.raises(bt.FileError, match=says):
        bt.MultiIndex.load(tmp_path / "a")


def test_a_senseless_number_of_segments_is_refused():
    with pytest.raises(bt.InputError, match="n_segments must be between 1 and 16, got 0"):
        bt.MultiIndex(n_segments=0)
