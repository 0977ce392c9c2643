"""Small codes and ground truths for the evaluation of hash tables."""

import numpy as np

from bittern import Codes, Relevance

N_QUERIES, N_DATABASE = 9, 45
EXCLUDED = np.array([3, -1, 0, N_DATABASE - 1, 7, 7, -1, 20, 21])


def _tags(n, random_state):
    return np.random.default_rng(random_state).random((n, 70)) < 0.05


def _gains():
    return np.random.default_rng(5).choice([0, 0, 0, 1, 2, 9], (N_QUERIES, N_DATABASE))


GROUND_TRUTHS = {
    "classes": lambda: Relevance.from_classes(
        np.arange(N_QUERIES) % 5, (np.arange(N_DATABASE) * 7) % 4
    ),
    "tags": lambda: Relevance.from_tags(_tags(N_QUERIES, 1), _tags(N_DATABASE, 2)),
    "graded tags": lambda: Relevance.from_tags(
        _tags(N_QUERIES, 1) | (np.arange(70) < 6), _tags(N_DATABASE, 2), graded=True
    ),
    "matrix": lambda: Relevance.from_matrix(_gains()),
    "nothing": lambda: Relevance.from_matrix(np.zeros((N_QUERIES, N_DATABASE))),
    "thresholds": lambda: Relevance.from_thresholds(
        np.arange(N_QUERIES)[:, None], np.arange(N_DATABASE)[:, None] / 3, [1, 4], [3, 1]
    ),
}


def crowded(n_bits, random_state):
    """Queries and database whose bits are mostly one, so that buckets fill; read-only."""
    rng = np.random.default_rng(random_state)
    codes = [Codes.from_bits(rng.random((n, n_bits)) < 0.85) for n in (N_QUERIES, N_DATABASE)]
    for part in codes:
        part.words.flags.writeable = False
    return codes


def gains_of(relevance):
    """All gains as a dense matrix."""
    return relevance.gains[relevance.block(slice(0, relevance.n_queries))]
