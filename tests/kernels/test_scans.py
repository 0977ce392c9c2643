"""The searching kernels against their twins in NumPy."""

import numpy as np
import pytest
from twins import scan_reference

from bittern.index.multi_index import build
from bittern.kernels import multi_index, registers, scan, scan_avx2
from bittern.kernels.multi_index import Searched

NONE = np.empty(0, bool)


def random_words(rng, n, n_words):
    """Words near one another, so that there are ties and near items."""
    few = rng.integers(0, 2**64, (5, n_words), dtype=np.uint64)
    turned = np.uint64(1) << rng.integers(0, 64, (n, n_words, 4), dtype=np.uint64)
    return few[rng.integers(0, 5, n)] ^ np.bitwise_xor.reduce(turned, axis=2)


def searched(module, words, n_first):
    """The rows in two arrays, and whole blocks of the first of them."""
    first, late = np.split(words, [n_first])
    laid = scan.blocks_of(first) if module is scan else scan_avx2.tiles_of(first.view(np.uint8))
    return first, late, laid


def nearest_by(module, queries, given, allowed, k):
    out = np.full((len(queries), k), -7), np.full((len(queries), k), -7, np.int32)
    module.find_nearest(queries, *given, allowed, k, *out)
    return out


MODULES = [scan, *([scan_avx2] if registers.has_avx2() else [])]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
@pytest.mark.parametrize("n_words", [1, 2, 4])
@pytest.mark.parametrize("has_filter", [False, True])
@pytest.mark.parametrize("n_first", [700, 640, 600, 100])
def test_scans_equal_their_twin(module, n_words, has_filter, n_first):
    rng = np.random.default_rng(n_words)
    words, queries = np.split(random_words(rng, 704, n_words), [700])
    allowed = rng.random(700) < 0.6 if has_filter else NONE
    given = searched(module, words, n_first)
    for k in (1, 30, 300):
        wanted = np.empty((4, k), np.int64), np.empty((4, k), np.int32)
        scan_reference.find_nearest(queries, words, allowed, k, *wanted)
        found = nearest_by(module, queries, given, allowed, k)
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])
    for radius in (0, 6, 64 * n_words):
        sizes, *wanted = scan_reference.find_within(queries, words, allowed, radius)
        offsets, *found = module.find_within(queries, *given, allowed, radius)
        np.testing.assert_array_equal(offsets, np.concatenate([[0], np.cumsum(sizes)]))
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert len(wanted[0]) >= 4 * 300  # not vacuous


@pytest.mark.parametrize("n_words", [1, 2, 3])
@pytest.mark.parametrize(("n_built", "n_first"), [(700, 700), (500, 700), (500, 600)])
def test_tables_of_segments_equal_the_same_twin(n_words, n_built, n_first):
    rng = np.random.default_rng(n_words)
    words, queries = np.split(random_words(rng, 704, n_words), [700])
    tables = build(words[:n_built], 64 * n_words, 4)
    is_done, costs = np.zeros(4, bool), np.zeros(4)
    for allowed in (NONE, rng.random(700) < 0.6):
        given = queries, Searched(*np.split(words, [n_first]), n_built, tables, allowed)
        wanted = np.empty((4, 30), np.int64), np.empty((4, 30), np.int32)
        found = np.empty((4, 30), np.int64), np.empty((4, 30), np.int32)
        scan_reference.find_nearest(queries, words, allowed, 30, *wanted)
        multi_index.find_nearest(*given, 30, 1e15, *found, is_done, costs)
        assert is_done.all() and costs.min() > 0
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])
        radius = 6 * n_words
        sizes, rows, distances = scan_reference.find_within(queries, words, allowed, radius)
        own_sizes = np.zeros(4, np.int64)
        keys = multi_index.find_within(*given, radius, 1e15, own_sizes, is_done, costs)
        np.testing.assert_array_equal(own_sizes, sizes)
        np.testing.assert_array_equal(keys, (distances << 32) | rows)
        assert is_done.all() and sizes.sum() > 20


def test_a_search_that_costs_too_much_says_so():
    words = random_words(np.random.default_rng(0), 700, 1)
    tables, is_done, costs = build(words, 64, 4), np.ones(2, bool), np.zeros(2)
    out = np.empty((2, 30), np.int64), np.empty((2, 30), np.int32)
    searched = Searched(words, words[:0], 700, tables, NONE)
    multi_index.find_nearest(words[:2], searched, 30, 50.0, *out, is_done, costs)
    assert not is_done.any()
    assert costs.max() <= 50.0 + multi_index.LOOKUP + multi_index.CANDIDATE * 700
