"""Retrieval from examples against the formula, written as loops."""

import numpy as np
import pytest
from twins import fusion_reference

import bittern as bt
from bittern.fusion import draw_negatives, rank_by_examples, similarities, similarity
from bittern.kernels import fusion


def slow_similarity(positives, negatives, item, k, power, epsilon):
    """Sim(Q, T) of one item, from the definition; positives first among equals."""
    both = [(sum(abs(a - b) for a, b in zip(item, row, strict=True)), 0) for row in positives]
    both += [(sum(abs(a - b) for a, b in zip(item, row, strict=True)), 1) for row in negatives]
    nearest = sorted(both)[:k]
    above = sum(1 / (d**power + epsilon) for d, kind in nearest if kind == 0)
    below = sum(1 / (d**power + epsilon) for d, kind in nearest if kind == 1)
    return above / (below + epsilon)


def made(random_state, n_pool=30, n_items=25, dim=6):
    """Vectors of few values, so that many distances are equal."""
    rng = np.random.default_rng(random_state)
    return (rng.integers(0, 3, (n, dim)).astype(float) for n in (n_pool, n_items))


@pytest.mark.parametrize("power", [1.0, 3.0])
@pytest.mark.parametrize("k", [1, 4, 9, 100])
def test_many_queries_equal_the_formula(k, power):
    pool, database = made(k)
    queries = [np.array([0]), np.array([3, 1, 2]), np.array([7, 8, 9, 4, 5, 6])]
    negatives = draw_negatives(queries, np.arange(10, 30), 8, random_state=k)
    found = similarities(queries, negatives, pool, database, k=k, power=power, epsilon=0.01)
    assert found.shape == (3, 25)
    for q, own in enumerate(queries):
        for i, item in enumerate(database):
            wanted = slow_similarity(pool[own], pool[negatives[q]], item, k, power, 0.01)
            assert found[q, i] == pytest.approx(wanted, rel=1e-5)
    if k == 1:
        assert (found == 0).any()  # the nearest is a negative one
    assert len(np.unique(found)) > (1 if k == 1 else 10)


def test_a_worked_example():
    # Distances 1 to the positive; 2 and 4 to the negatives, of which k = 2 leaves the nearer.
    (value,) = similarity([[1.0]], [[-2.0], [4.0]], [[0.0]], k=2, epsilon=0.5)
    assert value == pytest.approx((1 / 1.5) / (1 / 2.5 + 0.5))
    (cubed,) = similarity([[1.0]], [[-2.0], [4.0]], [[0.0]], k=2, epsilon=0.5, power=3.0)
    assert cubed == pytest.approx((1 / 1.5) / (1 / 8.5 + 0.5))


def test_rows_with_gaps_are_lists():
    pool, database = made(2)
    lists = [np.array([5]), np.array([1, 2])]
    negatives = np.array([[10, 11], [12, 13]])
    rows = np.array([[5, -1, -1], [1, 2, -1]])
    found = [similarities(given, negatives, pool, database, k=3) for given in (lists, rows)]
    np.testing.assert_array_equal(*found)
    for q, own in enumerate(lists):
        alone = similarity(pool[own], pool[negatives[q]], database, k=3)
        np.testing.assert_array_equal(alone, found[0][q])


def test_blocks_and_threads_change_nothing(monkeypatch):
    pool, database = made(4, n_items=60, dim=5000)
    queries, negatives = np.arange(6).reshape(3, 2), np.arange(6, 30).reshape(3, 8)
    done = []
    whole = similarities(queries, negatives, pool, database, k=5, n_threads=1)
    monkeypatch.setattr("bittern.fusion.examples.MEMORY", 1000)
    parts = similarities(
        queries, negatives, pool, database, k=5, n_threads=2, progress=lambda *n: done.append(n)
    )
    np.testing.assert_array_equal(whole, parts)
    assert done[-1] == (60, 60)
    assert len(done) > 4


def test_equal_items_are_tied():
    rng = np.random.default_rng(0)
    pool, item = rng.random((20, 777)), rng.random((1, 777))
    database = np.concatenate([item, rng.random((35, 777)), item])
    found = similarities(np.arange(4)[:, None], np.tile(np.arange(4, 20), (4, 1)), pool, database)
    np.testing.assert_array_equal(found[:, 0], found[:, -1])


@pytest.mark.parametrize("shape", [(3, 4, 5), (17, 2, 2049), (33, 5, 4100)])
def test_city_block_equals_its_twin(shape):
    n, m, dim = shape
    rng = np.random.default_rng(dim)
    a, b = rng.random((n, dim), np.float32), rng.random((m, dim), np.float32)
    outputs = []
    for module in (fusion, fusion_reference):
        out = np.full((n, m), -1, np.float32)
        module.city_block(a, b, out)
        outputs.append(out)
    np.testing.assert_allclose(*outputs, rtol=1e-5)


@pytest.mark.parametrize("k", [1, 3, 7, 50])
def test_nearest_examples_equal_their_twin(k):
    rng = np.random.default_rng(k)
    closeness = rng.integers(1, 6, (40, 20)) / 4  # with many ties
    offsets = np.array([0, 1, 4, 10])
    positives, negatives = rng.integers(0, 20, 10), rng.integers(0, 20, (3, 9))
    outputs = []
    for module in (fusion, fusion_reference):
        out = np.full((3, 40), -1.0)
        module.nearest_examples(closeness, positives, offsets, negatives, k, 0.1, out)
        outputs.append(out)
    np.testing.assert_allclose(*outputs, rtol=1e-12)
    assert len(np.unique(outputs[0])) > 2


def test_negatives_are_drawn_anew_and_never_the_positives():
    queries = [np.array([0, 1]), np.array([5])]
    drawn = draw_negatives(queries, np.arange(12), 10, random_state=3)
    assert drawn.shape == (2, 10)
    for own, row in zip(queries, drawn, strict=True):
        assert len(set(row)) == 10
        assert not set(row) & set(own)
    again = draw_negatives(queries, np.arange(12), 10, random_state=3)
    np.testing.assert_array_equal(drawn, again)
    assert (drawn != draw_negatives(queries, np.arange(12), 10, random_state=4)).any()


def test_a_ranking_is_by_score_then_by_position():
    database = [[3.0], [1.0], [9.0], [1.0]]
    ranking = rank_by_examples([[1.0]], [[9.0]], database)
    assert ranking.positions.tolist() == [1, 3, 0, 2]
    assert (np.diff(ranking.scores) <= 0).all()
    wanted = [slow_similarity([[1.0]], [[9.0]], row, 40, 1.0, 1e-6) for row in database]
    np.testing.assert_allclose(ranking.scores, np.sort(wanted)[::-1])


ONE = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: similarity(ONE, ONE[:, :2], ONE), "dimensions of examples must agree"),
        (lambda: similarity(ONE, ONE, ONE[:, :2]), "dimensions of pool and database"),
        (lambda: similarity(ONE * np.nan, ONE, ONE), "must be finite"),
        (lambda: similarity(ONE, ONE, ONE, k=0), "k must be at least 1"),
        (lambda: similarity(ONE, ONE, ONE, power=0), "power must be above 0"),
        (lambda: similarity(ONE, ONE, ONE, epsilon=0), "epsilon must be above 0"),
        (lambda: similarities([[0]], [[2]], ONE, ONE), r"must lie in \[0, 2\), got 2"),
        (lambda: similarities([[-1]], [[1]], ONE, ONE), "0 has none"),
        (lambda: similarities([], [[1]], ONE, ONE), "at least one query"),
        (lambda: similarities([[0.5]], [[1]], ONE, ONE), "arrays of positions"),
        (lambda: similarities([[0]], [[1], [1]], ONE, ONE), r"positions \(1, n_negatives\)"),
        (lambda: draw_negatives([[0]], [0, 1], 2), "leaves 1 candidates"),
    ],
)
def test_bad_input_says_what_rule_it_broke(call, says):
    with pytest.raises(bt.InputError, match=says):
        call()
