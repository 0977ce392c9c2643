"""Pairs and groups within a radius, against a comparison of everything and SciPy's linkage."""

import tracemalloc

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

import bittern as bt
from bittern.index import NearCodes, groups_within, iter_pairs, pairs_within
from bittern.index.join_keys import choose_keys
from bittern.kernels import small


def near_codes(n, n_bits, random_state=0, n_flips=6):
    """Random codes with copies of some, in which up to so many bits are flipped."""
    rng = np.random.default_rng(random_state)
    bits = rng.random((n, n_bits)) < rng.random(n_bits)
    for row in range(n // 3, n):
        bits[row] = bits[rng.integers(n // 3)]
        bits[row, rng.integers(n_bits, size=rng.integers(n_flips + 1))] ^= True
    return bt.Codes.from_bits(bits[rng.permutation(n)])


def distances_of(codes):
    return squareform(np.rint(codes.n_bits * pdist(codes.to_bits(), "hamming")).astype(int))


def all_pairs(codes, radius, since=0):
    distances = distances_of(codes)
    first, second = np.nonzero(np.triu(distances <= radius, 1))
    rows = zip(first.tolist(), second.tolist(), distances[first, second].tolist(), strict=True)
    return [pair for pair in rows if pair[1] >= since]


@pytest.fixture(params=["numpy", "kernels"])
def done_by(request, monkeypatch):
    is_small = request.param == "numpy"
    monkeypatch.setattr(small, "is_small", lambda *_: is_small)


@pytest.mark.parametrize("n_bits", [1, 17, 64, 65, 200])
@pytest.mark.parametrize("radius", [0, 1, 3, 9, 300])
def test_pairs_are_those_of_a_full_comparison(done_by, n_bits, radius):
    codes = near_codes(90, n_bits, random_state=n_bits)
    assert pairs_within(codes, radius).to_list() == all_pairs(codes, radius)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("radius", [2, 5, 8, 12])
def test_many_codes_are_joined_by_keys(monkeypatch, n_threads, radius):
    small.use_kernels()
    monkeypatch.setattr("bittern.index.pairs.ROOM", 50)
    codes = near_codes(1500, 64, n_flips=10)
    assert pairs_within(codes, radius, n_threads=n_threads).to_list() == all_pairs(codes, radius)
    parts = list(iter_pairs(codes, radius, n_threads=n_threads))
    assert len(parts) > 5


def test_keys_are_used_where_they_save_work():
    words = np.random.default_rng(0).integers(0, 1 << 63, (4000, 1), dtype=np.uint64)
    few, some, none = (choose_keys(words, 63, radius, 0, True) for radius in (2, 6, 30))
    assert (len(few.masks), few.n_bits) == (3, 21)
    assert len(some.masks) > 6 and none.n_bits == 0
    for keys, radius in ((few, 2), (some, 6)):  # one key is free of any so many bits
        bits = np.random.default_rng(1).permuted(np.tile(np.arange(63), (200, 1)), axis=1)
        flips = np.bitwise_or.reduce(np.uint64(1) << bits[:, :radius].astype(np.uint64), axis=1)
        assert ((flips[:, None] & keys.masks[:, 0]) == 0).any(axis=1).all()


def test_only_what_is_new_is_compared(done_by):
    codes = near_codes(120, 48)
    old = pairs_within(codes[:80], 5).to_list()
    new = pairs_within(codes, 5, since=80).to_list()
    assert new == all_pairs(codes, 5, since=80)
    assert sorted(old + new) == all_pairs(codes, 5)


def test_two_sides(done_by):
    codes = near_codes(120, 48)
    one, other = codes[:70], codes[70:]
    want = [(i, j - 70, d) for i, j, d in all_pairs(codes, 5) if i < 70 <= j]
    assert want and pairs_within(one, 5, against=other).to_list() == want


def test_a_thousand_equal_codes_cost_one_comparison():
    codes = bt.Codes.from_bits(np.ones((1000, 64)))
    assert len(pairs_within(codes, 3)) == 1000 * 999 // 2
    assert len(NearCodes.of(codes, 3).pairs) == 0
    assert [len(rows) for rows in groups_within(codes, 3)] == [1000]


@pytest.mark.parametrize("radius", [0, 3, 6, 20])
def test_connected_groups_are_single_linkage(radius):
    codes = near_codes(150, 40, n_flips=5)
    want = fcluster(
        linkage(pdist(codes.to_bits(), "hamming") * 40, "single"), radius + 0.5, "distance"
    )
    assert as_sets(groups_within(codes, radius, link="connected")) == sets_of(want)


@pytest.mark.parametrize("radius", [0, 3, 6, 20])
def test_complete_groups_are_cliques_that_cannot_be_merged(radius):
    codes = near_codes(150, 40, n_flips=5)
    distances, groups = distances_of(codes), groups_within(codes, radius)
    assert all(distances[np.ix_(rows, rows)].max() <= radius for rows in groups)
    alone = set(range(150)) - {int(row) for rows in groups for row in rows}
    parts = [*groups, *(np.array([row]) for row in alone)]
    for i, a in enumerate(parts):
        assert all(distances[np.ix_(a, b)].max() > radius for b in parts[:i])


def test_complete_groups_are_complete_linkage_where_no_distances_are_equal():
    rng = np.random.default_rng(3)
    bits = np.zeros((6, 128), bool)
    for row, place in enumerate((0, 1, 3, 7, 20, 46)):  # all differences of places differ
        bits[row, :place] = True
    codes = bt.Codes.from_bits(bits[rng.permutation(6)])
    for radius in range(0, 46, 3):
        want = fcluster(
            linkage(pdist(codes.to_bits(), "hamming") * 128, "complete"), radius + 0.5, "distance"
        )
        assert as_sets(groups_within(codes, radius)) == sets_of(want)


def test_near_codes_that_grow_have_the_same_groups():
    codes = near_codes(200, 48)
    grown = NearCodes.of(codes[:50], 6)
    for stop in (120, 200):
        grown = grown.extended(codes[:stop])
    whole = NearCodes.of(codes, 6)
    assert len(grown) == len(whole) and len(grown.pairs) == len(whole.pairs)
    found, want = (one.groups(codes, "connected", radius=4) for one in (grown, whole))
    assert as_sets(found) == as_sets(want) == as_sets(groups_within(codes, 4, link="connected"))


def test_what_is_wrong_is_said():
    codes = near_codes(9, 16)
    with pytest.raises(
        bt.InputError, match="link must be one of 'complete', 'connected', got 'single'"
    ):
        groups_within(codes, 2, link="single")
    with pytest.raises(bt.InputError, match="must have one length"):
        pairs_within(codes, 2, against=near_codes(9, 17))
    with pytest.raises(bt.InputError, match="not within 3"):
        NearCodes.of(codes, 2).groups(codes, radius=3)
    with pytest.raises(bt.InputError, match="radius"):
        pairs_within(codes, -1)


def as_sets(groups):
    return {frozenset(rows.tolist()) for rows in groups}


def sets_of(labels):
    groups = (np.flatnonzero(labels == label) for label in np.unique(labels))
    return as_sets([rows for rows in groups if len(rows) > 1])


def test_memory_does_not_grow_with_the_number_of_keys(monkeypatch):
    # Within radius 8 there are nine keys or more, and each takes two megabytes.
    monkeypatch.setattr(small, "is_small", lambda *_: False)
    bits = np.random.default_rng(0).random((30_000, 64)) < 0.5
    codes = bt.Codes.from_bits(np.concatenate([bits, bits[:2000]]))
    assert len(choose_keys(codes.words, 64, 8, 0, True).masks) >= 9
    pairs_within(codes[:100], 8, n_threads=1)  # loads compiled code
    tracemalloc.start()
    try:
        found = sum(len(part) for part in iter_pairs(codes, 8, n_threads=1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found >= 2000
    assert peak < 12 << 20, peak
