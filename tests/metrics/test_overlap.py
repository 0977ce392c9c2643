"""Overlap of two ground truths, against Python's sets and random draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bittern as bt
from bittern.errors import InputError
from bittern.metrics import truth_overlap


@st.composite
def pairs(draw):
    """Two matrices of gains of the same shape, and an excluded item for each query or None."""
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    gains = st.lists(st.integers(0, 2), min_size=n * m, max_size=n * m)
    one, two = (np.array(draw(gains)).reshape(n, m) for _ in range(2))
    excluded = draw(st.none() | st.lists(st.integers(-1, m - 1), min_size=n, max_size=n))
    return one, two, excluded


@settings(max_examples=80, deadline=None)
@given(pairs())
def test_counts_and_ratios_are_those_of_sets(made):
    one, two, excluded = made
    truths = [bt.Relevance.from_matrix(matrix) for matrix in (one, two)]
    if excluded is not None:
        truths = [truth.excluding(excluded) for truth in truths]
    found = truth_overlap(*truths)
    for q in range(len(one)):
        left_out = set() if excluded is None or excluded[q] < 0 else {excluded[q]}
        a, b = (set(np.flatnonzero(matrix[q]).tolist()) - left_out for matrix in (one, two))
        n = one.shape[1] - len(left_out)
        assert (found.first[q], found.second[q], found.both[q]) == (len(a), len(b), len(a & b))
        expected = {
            "share": len(a & b) / len(a) if a else np.nan,
            "share_by_chance": len(b) / n if a else np.nan,
            "jaccard": len(a & b) / len(a | b) if a | b else np.nan,
            "f1": 2 * len(a & b) / (len(a) + len(b)) if a or b else np.nan,
            "f1_by_chance": 2 * len(a) * len(b) / n / (len(a) + len(b)) if a or b else np.nan,
        }
        for name, value in expected.items():
            assert getattr(found, name)[q] == pytest.approx(value, nan_ok=True), name


def test_chance_is_the_mean_of_random_draws():
    rng = np.random.default_rng(0)
    first = bt.Relevance.from_matrix(np.repeat([np.arange(20) < 6], 4000, axis=0))
    drawn = np.argsort(rng.random((4000, 20)), axis=1) < 9
    found = truth_overlap(first, bt.Relevance.from_matrix(drawn))
    assert found.f1.mean() == pytest.approx(found.f1_by_chance[0], abs=0.005)
    assert found.share.mean() == pytest.approx(found.share_by_chance[0], abs=0.005)
    assert found.f1_by_chance[0] == pytest.approx(2 * 6 * 9 / 20 / 15)


def one_by_one(n, *_):
    return [slice(i, i + 1) for i in range(n)]


def test_kinds_of_ground_truth_may_differ_and_no_block_matters(monkeypatch):
    rng = np.random.default_rng(1)
    labels, vectors = rng.integers(0, 3, 50), rng.random((50, 2))
    classes = bt.Relevance.from_classes(labels[:10], labels[10:])
    near = bt.Relevance.from_neighbours(vectors[:10], vectors[10:], 7)
    whole = truth_overlap(classes, near)
    monkeypatch.setattr("bittern.metrics.overlap.row_blocks", one_by_one)
    np.testing.assert_array_equal(truth_overlap(classes, near).both, whole.both)
    assert whole.second.tolist() == [7] * 10 and 0 < whole.both.sum() < 70
    np.testing.assert_array_equal(truth_overlap(near, classes).both, whole.both)


def test_other_queries_or_items_are_refused():
    small, large = (bt.Relevance.from_matrix(np.eye(n)) for n in (2, 3))
    with pytest.raises(InputError, match="got 2 × 2 and 3 × 3"):
        truth_overlap(small, large)
    with pytest.raises(InputError, match="exclude the same items"):
        truth_overlap(small, small.excluding([0, 1]))
