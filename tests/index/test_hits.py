import numpy as np
import pytest

import bittern as bt
from bittern.index.hits import FAR

IDS, DISTANCES = np.array([[4, 2, -1], [0, 3, 1]]), np.array([[0, 2, FAR], [1, 1, 5]], np.int32)


def rectangular():
    return bt.Hits(IDS, DISTANCES)


def flat():
    """The same hits as a search within a radius gives them."""
    found = IDS >= 0
    return bt.Hits(IDS[found], DISTANCES[found], np.array([0, 2, 5]))


@pytest.mark.parametrize("hits", [rectangular(), flat()], ids=["rectangular", "flat"])
def test_the_hits_of_a_query_come_without_empty_places(hits):
    assert len(hits) == 2
    assert hits.sizes.tolist() == [2, 3]
    assert [a.tolist() for a in hits[0]] == [[4, 2], [0, 2]]
    assert [a.tolist() for a in hits[-1]] == [[0, 3, 1], [1, 1, 5]]
    assert hits.to_lists() == [[(4, 0), (2, 2)], [(0, 1), (3, 1), (1, 5)]]
    assert repr(hits) == "<5 hits of 2 queries>"
    for query in (2, -3):
        with pytest.raises(bt.PositionError, match=f"no query {query} among 2"):
            hits[query]


@pytest.mark.parametrize("hits", [rectangular(), flat()], ids=["rectangular", "flat"])
def test_the_profile_counts_hits_by_distance(hits):
    relevance = bt.Relevance.from_classes([0, 1], [0, 0, 1, 1, 0])
    profile = hits.profile(relevance)
    assert profile.total.tolist() == [[1, 0, 1, 0, 0, 0], [0, 2, 0, 0, 0, 1]]
    assert profile.relevant.tolist() == [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]
    assert profile.n_relevant.tolist() == [3, 2]


def test_a_search_evaluates_like_the_whole_database():
    rng = np.random.default_rng(0)
    queries, database = (bt.Codes.from_bits(rng.random((n, 16)) < 0.5) for n in (9, 200))
    relevance = bt.Relevance.from_classes(rng.integers(0, 3, 9), rng.integers(0, 3, 200))
    index = bt.FlatIndex(database)
    whole = bt.evaluate(queries, database, relevance, ["ap"])["ap"].per_query
    for hits in (index.search(queries, 200), index.within(queries, 16)):
        found = bt.evaluate(hits.profile(relevance), ["ap"])["ap"].per_query
        np.testing.assert_allclose(found, whole)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((IDS.astype(np.int32), DISTANCES), "ids must be int64"),
        ((IDS, DISTANCES[:1]), "of one shape"),
        ((IDS.ravel(), DISTANCES.ravel()), "of one shape"),
        ((IDS.ravel(), DISTANCES.ravel(), np.array([0, 2])), "ascend from 0 to 6"),
        ((IDS.ravel(), DISTANCES.ravel(), np.array([0, 7, 6])), "ascend from 0 to 6"),
        ((IDS.ravel(), DISTANCES.ravel(), [0, 6]), "ascend from 0 to 6"),
        ((IDS.tolist(), DISTANCES), "ids must be a ndarray"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments, says):
    with pytest.raises(bt.InputError, match=says):
        bt.Hits(*arguments)
