"""Affinities of training rows from what y may be."""

import numpy as np
import pytest
import scipy.sparse

import bittern as bt
from bittern.hashing import Targets

LABELS = np.array([3, 3, 9, 5, 9])
SAME = np.array(
    [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0], [0, 0, 1, 0, 1]]
)
TAGS = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0], [1, 1, 1]])


def test_rows_of_one_class_are_alike():
    targets = Targets.of(LABELS, 5, "X")
    np.testing.assert_array_equal(targets.affinity(), SAME)
    np.testing.assert_array_equal(targets.affinity([0, 2], [1, 4]), SAME[[0, 2]][:, [1, 4]])
    np.testing.assert_array_equal(targets.take(np.array([4, 0])).affinity(), np.eye(2))


def test_classes_may_be_strings():
    targets = Targets.of(["c", "c", "i", "e", "i"], 5, "X")
    np.testing.assert_array_equal(targets.affinity(), SAME)


@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_array, lambda t: t.astype(bool)])
def test_rows_that_share_a_tag_are_alike(kind):
    targets = Targets.of(kind(TAGS), 5, "X")
    shared = TAGS @ TAGS.T
    np.testing.assert_array_equal(targets.affinity(), shared > 0)
    np.testing.assert_array_equal(targets.indicators(np.random.default_rng(0)), TAGS)
    np.testing.assert_array_equal(targets.take(np.array([4, 1])).affinity(), [[1, 1], [1, 1]])


def test_a_relevance_gives_its_gains_of_the_greatest():
    truth = bt.Relevance.from_tags(TAGS, TAGS, graded=True)
    targets = Targets.of(truth, 5, "X")
    shared = TAGS @ TAGS.T
    np.testing.assert_allclose(targets.affinity(), shared / shared.max())
    rows, columns = np.array([4, 0]), np.array([1, 2, 2])
    np.testing.assert_allclose(
        targets.affinity(rows, columns), shared[rows][:, columns] / shared.max()
    )
    part = targets.take(np.array([1, 2, 4]))
    chosen = shared[np.ix_([1, 2, 4], [1, 2, 4])]
    np.testing.assert_allclose(part.affinity(), chosen / chosen.max())


def test_a_relevance_of_unlike_rows_keeps_its_direction():
    gains = np.array([[2, 1, 0], [0, 1, 0], [0, 0, 0]])
    targets = Targets.of(bt.Relevance.from_matrix(gains), 3, "X")
    np.testing.assert_allclose(targets.affinity(), gains / 2)


def test_indicators_say_what_each_row_is():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(
        Targets.of(LABELS, 5, "X").indicators(rng), np.eye(3)[[0, 0, 2, 1, 2]]
    )
    truth = bt.Relevance.from_classes(LABELS, LABELS)
    columns = Targets.of(truth, 5, "X").indicators(rng, most=3)
    assert columns.shape == (5, 3)
    assert {tuple(c) for c in columns.T} <= {tuple(c) for c in SAME.T}


def test_gains_are_whole_numbers_for_every_kind_of_y():
    tags = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]])
    graded = bt.Relevance.from_matrix([[0, 7, 2], [7, 0, 0], [2, 0, 5]])
    rows, columns = np.array([1, 0]), np.array([0, 1, 2])
    wanted = {
        "labels": (["a", "b", "a"], [[0, 1, 0], [1, 0, 1]]),
        "tags": (tags, [[2, 3, 1], [2, 2, 0]]),
        "Relevance": (graded, [[7, 0, 0], [0, 7, 2]]),
    }
    for y, gains in wanted.values():
        targets = Targets.of(y, 3, "test")
        found = targets.gains(rows, columns)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, gains)
        whole = targets.as_relevance()
        np.testing.assert_array_equal(whole.gains[whole.block(slice(None))][rows], gains)
        part = targets.take(np.array([2, 1]))
        order = np.array([2, 1])
        np.testing.assert_array_equal(
            part.gains(np.arange(2), np.arange(2)), targets.gains(order, order)
        )
