"""The counting sort against NumPy's."""

import numpy as np
import pytest

import bittern as bt
from bittern.kernels import small
from bittern.kernels.grouping import group_rows, group_words
from bittern.relevance import base


def test_rows_are_grouped_as_a_stable_sort_does():
    classes = np.random.default_rng(0).integers(0, 7, 500).astype(np.int32)
    sizes = np.bincount(classes, minlength=8)  # class 7 is empty
    order = np.empty(500, np.intp)
    group_rows(classes, np.cumsum(sizes) - sizes, order)
    np.testing.assert_array_equal(order, np.argsort(classes, kind="stable"))


@pytest.mark.parametrize("n_words", [1, 3])
def test_words_are_grouped_as_rows_are(n_words):
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 7, 500).astype(np.int32)
    words = rng.integers(0, 2**64, (500, n_words), dtype=np.uint64)
    offsets, planes = np.empty(9, np.int64), np.empty((n_words, 500), np.uint64)
    group_words(words, classes, offsets, planes)
    np.testing.assert_array_equal(planes, words[np.argsort(classes, kind="stable")].T)
    np.testing.assert_array_equal(np.diff(offsets), np.bincount(classes, minlength=8))


@pytest.mark.parametrize("least", [0, 3])
def test_the_ground_truth_is_the_same_with_and_without_compiled_code(monkeypatch, least):
    labels = np.random.default_rng(1).integers(least, 9, 300)
    monkeypatch.setattr(small, "_spent", 0.0)
    plain = bt.Relevance.from_classes(labels[:20], labels)
    monkeypatch.setattr(base, "MANY", 1)
    monkeypatch.setattr(small, "_spent", np.inf)
    compiled = bt.Relevance.from_classes(labels[:20], labels)
    for name in ("order", "offsets", "query_classes", "database_classes"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(plain, name))
        assert getattr(compiled, name).dtype == getattr(plain, name).dtype
