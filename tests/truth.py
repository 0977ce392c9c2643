"""Every question that a ground truth answers, against a dense matrix of gains."""

import numpy as np


def random_tags(n, n_tags, random_state):
    """Multi-hot rows; the first has no tag, and rows repeat."""
    rng = np.random.default_rng(random_state)
    tags = rng.random((n, n_tags)) < min(0.5, 3 / n_tags)
    tags[0] = False
    tags[1] = tags[-1]
    return tags


def gains_of(relevance):
    """All gains as a dense matrix, for the few queries of a test."""
    return relevance.gains[relevance.block(slice(0, relevance.n_queries))]


def assert_is(relevance, gains):
    """Every question that a ground truth answers, against a dense matrix of gains."""
    gains = np.asarray(gains)
    n_queries = len(gains)
    assert (relevance.n_queries, relevance.n_database) == gains.shape
    assert relevance.gains[0] == 0
    assert (np.diff(relevance.gains) > 0).all()
    assert relevance.n_levels == len(relevance.gains) >= 2
    np.testing.assert_array_equal(gains_of(relevance), gains)

    for q in range(n_queries):
        np.testing.assert_array_equal(
            relevance.block(slice(q, q + 1)), _levels(relevance, gains)[[q]]
        )
    rows, columns = np.indices(gains.shape)
    levels = relevance.levels_of(rows, columns)
    np.testing.assert_array_equal(relevance.gains[levels], gains)

    present = np.ones(gains.shape, bool)
    if relevance.excluded is not None:
        for q, item in enumerate(relevance.excluded):
            if item >= 0:
                present[q, item] = False
    totals = [
        [np.sum(present[q] & (gains[q] == gain)) for gain in relevance.gains]
        for q in range(n_queries)
    ]
    assert relevance.totals().tolist() == totals
    assert relevance.n_relevant.tolist() == np.sum(present & (gains > 0), axis=1).tolist()


def _levels(relevance, gains):
    return np.searchsorted(relevance.gains, gains)
