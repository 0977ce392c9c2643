import math

import numpy as np
import pytest

import bittern as bt
from bittern.index import rerank, rerank_asymmetric

RNG = np.random.default_rng(0)
VECTORS, QUERIES = RNG.standard_normal((60, 5)), RNG.standard_normal((4, 5))
CODES, QUERY_CODES = (bt.Codes.from_bits(x > 0) for x in (VECTORS, QUERIES))


def by_hand(kind, a, b):
    """The distance of two vectors, number by number."""
    if kind == "l1":
        return sum(abs(x - y) for x, y in zip(a, b, strict=True))
    if kind == "l2":
        return math.dist(a, b)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return 1 - dot / math.hypot(*a) / math.hypot(*b)


@pytest.mark.parametrize("kind", ["l2", "l1", "cosine"])
@pytest.mark.parametrize("how", ["nearest", "within"])
def test_hits_are_in_the_order_of_the_stored_vectors(kind, how):
    index = bt.FlatIndex(CODES)
    hits = index.search(QUERY_CODES, 15) if how == "nearest" else index.within(QUERY_CODES, 2)
    found = rerank(hits, QUERIES, VECTORS, distance=kind)
    assert hits.sizes.tolist() == found.sizes.tolist() and found.sizes.min() > 3
    for q in range(4):
        ids = hits[q][0].tolist()
        expected = sorted((by_hand(kind, QUERIES[q], VECTORS[i]), i) for i in ids)
        assert found[q][0].tolist() == [i for _, i in expected]
        np.testing.assert_allclose(found[q][1], [d for d, _ in expected])
        assert found[q][0].tolist() != ids  # not vacuous


def test_ids_tell_which_vector_is_whose():
    ids = RNG.permutation(1000)[:60]
    hits = bt.FlatIndex(CODES, ids=ids).search(QUERY_CODES, 15)
    plain = rerank(bt.FlatIndex(CODES).search(QUERY_CODES, 15), QUERIES, VECTORS)
    order = RNG.permutation(60)
    found = rerank(hits, QUERIES, VECTORS[order], ids=ids[order])
    np.testing.assert_array_equal(found.ids, ids[plain.ids])
    np.testing.assert_array_equal(found.distances, plain.distances)


def test_empty_places_stay_at_the_end():
    hits = bt.Hits(np.array([[3, 5, -1]]), np.array([[0, 1, 9]], np.int32))
    found = rerank(hits, QUERIES[:1], VECTORS)
    assert sorted(found.ids[0, :2].tolist()) == [3, 5]
    assert found.ids[0, 2] == -1 and found.distances[0, 2] == np.inf
    assert found[0][0].size == 2


def test_equal_distances_keep_their_order():
    hits = bt.Hits(np.array([[3, 1, 2]]), np.array([[0, 1, 1]], np.int32))
    found = rerank(hits, np.ones((1, 2)), np.zeros((4, 2)))
    assert found.ids.tolist() == [[3, 1, 2]]


def test_the_asymmetric_distance_counts_the_bits_that_differ_by_how_sure_they_were():
    # z = (3, -0.5, 1): the bits are 1 0 1.  Against 0 0 1: 3.  Against 1 1 0: 0.5 + 1.
    codes = bt.Codes.from_bits([[0, 0, 1], [1, 1, 0], [1, 0, 1]])
    hits = bt.FlatIndex(codes).search(bt.Codes.from_bits([[1, 0, 1]]), 3)
    assert hits.to_lists() == [[(2, 0), (0, 1), (1, 2)]]
    found = rerank_asymmetric(hits, [[3, -0.5, 1]], codes)
    assert found.to_lists() == [[(2, 0.0), (1, 1.5), (0, 3.0)]]


def test_the_asymmetric_distance_of_signs_is_hamming_s():
    hits = bt.FlatIndex(CODES).search(QUERY_CODES, 60)
    found = rerank_asymmetric(hits, np.where(QUERIES > 0, 1.0, -1.0), CODES)
    np.testing.assert_array_equal(found.ids, hits.ids)
    np.testing.assert_array_equal(found.distances, hits.distances)


def test_reranking_finds_more_of_the_true_neighbours():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((2000, 32))
    queries = rows[:50] + 0.3 * rng.standard_normal((50, 32))
    hasher = bt.hashing.ITQ(n_bits=32).fit(rows)
    codes = hasher.encode(rows)
    hits = bt.FlatIndex(codes).search(hasher.encode(queries), 50)
    truth = bt.Relevance.from_neighbours(queries, rows, 10)
    logits = hasher.logits(queries)
    scores = [
        bt.evaluate(h.profile(truth), ["precision@10"])["precision@10"].mean
        for h in (hits, rerank_asymmetric(hits, logits, codes), rerank(hits, queries, rows))
    ]
    assert scores[0] + 0.02 < scores[1] < scores[2]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda h: rerank(h, QUERIES[:3], VECTORS), "queries and of rows of hits must agree"),
        (lambda h: rerank(h, QUERIES[:, :2], VECTORS), "columns of queries and of vectors"),
        (lambda h: rerank(h, QUERIES, VECTORS[:3]), "nothing is stored for the id"),
        (lambda h: rerank(h, QUERIES, VECTORS, ids=range(60, 120)), "nothing is stored for the id"),
        (lambda h: rerank(h, QUERIES, VECTORS, ids=[1]), "ids and of rows must agree"),
        (lambda h: rerank_asymmetric(h, QUERIES[:, :2], CODES), "columns of logits and bits"),
        (lambda h: rerank(h.ids, QUERIES, VECTORS), "hits must be a Hits"),
    ],
)
def test_what_does_not_fit_is_refused(call, says):
    with pytest.raises(bt.InputError, match=says):
        call(bt.FlatIndex(CODES).search(QUERY_CODES, 9))


def test_an_unknown_distance_is_refused():
    hits = bt.FlatIndex(CODES).search(QUERY_CODES, 9)
    with pytest.raises(bt.UnknownNameError, match="no distance is called 'l3'"):
        rerank(hits, QUERIES, VECTORS, distance="l3")
