"""Profiles of what a search returned: cut rankings, whose relevant items may be missing."""

import faiss
import numpy as np
import pytest
from by_hand import counts_of
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern import Codes, InputError, Relevance, TieProfile, evaluate

GAINS = np.array([[1, 0, 2, 0, 1], [0, 0, 0, 0, 0], [2, 2, 2, 0, 0]])
TRUTH = Relevance.from_matrix(GAINS)


def slow_hits(ids, distances, gains, excluded=None):
    """Per query, {(distance, gain): items}, and the relevant items that were not hit."""
    counted, missing = [], []
    for q, (row, ds) in enumerate(zip(ids, distances, strict=True)):
        counts, hit = {}, set()
        own = -1 if excluded is None else excluded[q]
        for item, distance in zip(row, ds, strict=True):
            if item not in (-1, own):
                key = distance, gains[q][item]
                counts[key] = counts.get(key, 0) + 1
                hit.add(item)
        counted.append(counts)
        items = range(len(gains[q]))
        missing.append(sum(gains[q][i] > 0 and i not in hit and i != own for i in items))
    return counted, missing


def hits_of(profile):
    return counts_of(profile), profile.unretrieved[:, 1:].sum(axis=1).tolist()


def test_worked_example():
    # Query 0 hits items 2 (gain 2) and 1 at distance 3, and 0 (gain 1) at 5; item 4 is missing.
    profile = TieProfile.from_hits(
        [[2, 1, 0], [0, -1, -1], [3, 4, -1]], [[3, 3, 5], [1, 9, 9], [0, 2, 9]], TRUTH
    )
    assert hits_of(profile) == (
        [{(3, 0): 1, (3, 2): 1, (5, 1): 1}, {(1, 0): 1}, {(0, 0): 1, (2, 0): 1}],
        [1, 0, 3],
    )
    assert profile.n_relevant.tolist() == [3, 0, 3]
    assert profile.unretrieved.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 3]]
    assert profile.distances is None


def test_real_distances_have_columns_of_their_own():
    profile = TieProfile.from_hits(
        [[2, 1], [0, 1], [3, 4]], [[0.5, 0.5], [0.1, 0.2], [2, 3]], TRUTH
    )
    assert profile.distances[0, 0] == 0.5
    assert np.isnan(profile.distances[0, 1])
    assert profile.total.tolist() == [[2, 0], [1, 1], [1, 1]]


def test_what_stands_beside_an_empty_place_does_not_matter():
    ids = [[2, -1], [-1, -1], [3, -1]]
    clean = TieProfile.from_hits(ids, [[1.5, 0], [0, 0], [2.5, 0]], TRUTH)
    for rubbish in (np.nan, np.inf, 3.4e38, -5.0):
        distances = [[1.5, rubbish], [rubbish, rubbish], [2.5, rubbish]]
        assert TieProfile.from_hits(ids, distances, TRUTH) == clean
    integers = TieProfile.from_hits(ids, [[1, 2**31 - 1], [0, 0], [2, -7]], TRUTH)
    assert integers.distances is None
    assert integers.total.sum() == 2


def test_flat_hits_with_offsets_are_the_same():
    ids, distances = [[2, 1, 0], [0, 4, -1], [3, -1, -1]], [[1, 1, 2], [0, 0, 0], [5, 0, 0]]
    flat = TieProfile.from_hits([2, 1, 0, 0, 4, 3], [1, 1, 2, 0, 0, 5], TRUTH, offsets=[0, 3, 5, 6])
    assert flat == TieProfile.from_hits(ids, distances, TRUTH)


def test_flat_hits_may_be_of_any_length():
    profile = TieProfile.from_hits([0, 2], [1.5, 0.5], TRUTH, offsets=[0, 0, 0, 2])
    assert profile.total.sum(axis=1).tolist() == [0, 0, 2]
    assert profile.n_relevant.tolist() == [3, 0, 3]
    nothing = TieProfile.from_hits(np.zeros(0, int), np.zeros(0), TRUTH, offsets=[0, 0, 0, 0])
    assert nothing.total.sum() == 0
    assert nothing.n_relevant.tolist() == [3, 0, 3]


def test_hits_cut_at_nothing():
    profile = TieProfile.from_hits(np.zeros((3, 0), int), np.zeros((3, 0)), TRUTH)
    assert profile.n_relevant.tolist() == [3, 0, 3]
    assert profile.relevant.sum() == 0


def test_the_excluded_item_is_neither_hit_nor_missing():
    truth = TRUTH.excluding([2, 0, -1])
    profile = TieProfile.from_hits([[2, 1], [0, 1], [2, 1]], [[0, 1], [0, 1], [0, 1]], truth)
    assert profile.total.sum(axis=1).tolist() == [1, 1, 2]
    assert profile.n_relevant.tolist() == [2, 0, 3]
    unseen = TieProfile.from_hits([[1], [1], [1]], [[0], [0], [0]], truth)
    assert unseen.n_relevant.tolist() == [2, 0, 3]


def test_an_item_hit_twice_is_refused():
    with pytest.raises(InputError, match=r"query 1 hit item 4 twice"):
        TieProfile.from_hits([[0, 1], [4, 4], [0, 1]], [[0, 1], [2, 3], [0, 1]], TRUTH)
    # One item hit by two queries is not a repetition, nor are two empty places.
    TieProfile.from_hits([[0, -1, -1]] * 3, [[0, 1, 1]] * 3, TRUTH)


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_any_hits_are_counted_one_by_one(data):
    k = data.draw(st.integers(1, 5))
    rows = st.permutations([0, 1, 2, 3, 4, -1, -1, -1]).map(lambda row: row[:k])
    ids = data.draw(st.lists(rows, min_size=3, max_size=3))
    numbers = data.draw(st.sampled_from([st.integers(0, 3), st.sampled_from([-1.5, 0.1, 0.3])]))
    distances = data.draw(
        st.lists(st.lists(numbers, min_size=k, max_size=k), min_size=3, max_size=3)
    )
    excluded = data.draw(st.none() | st.lists(st.integers(-1, 4), min_size=3, max_size=3))
    truth = TRUTH if excluded is None else TRUTH.excluding(excluded)
    profile = TieProfile.from_hits(ids, distances, truth)
    assert hits_of(profile) == slow_hits(ids, distances, GAINS.tolist(), excluded)
    assert profile.n_relevant.tolist() == truth.n_relevant.tolist()


def test_all_items_hit_are_the_whole_ranking():
    rng = np.random.default_rng(0)
    distances = rng.integers(0, 4, GAINS.shape)
    order = np.argsort(distances, axis=1, kind="stable")
    hits = TieProfile.from_hits(order, np.take_along_axis(distances, order, axis=1), TRUTH)
    assert hits == TieProfile.from_distances(distances, TRUTH)


def test_hits_of_faiss():
    rng = np.random.default_rng(0)
    queries, database = (Codes.from_bits(rng.random((n, 16)) < 0.5) for n in (20, 300))
    labels = rng.integers(0, 5, 300)
    truth = Relevance.from_classes(labels[:20], labels)
    index = faiss.IndexBinaryFlat(16)
    index.add(database.to_packed())
    distances, ids = index.search(queries.to_packed(), 300)
    whole = TieProfile.from_codes(queries, database, truth)
    assert TieProfile.from_hits(ids, distances, truth) == whole
    cut = TieProfile.from_hits(ids[:, :40], distances[:, :40], truth)
    assert cut.n_relevant.tolist() == whole.n_relevant.tolist()
    a, b = (evaluate(p, ["recall@r2", "precision@r2"]) for p in (cut, whole))
    assert distances[:, 39].min() > 2  # all within radius 2 were found
    for name in ("recall@r2", "precision@r2"):
        np.testing.assert_array_equal(a[name].per_query, b[name].per_query)
