"""Small ground truths, codes and distances, and their profiles counted one by one."""

import numpy as np
from truth import gains_of

from bittern import Codes, Relevance

N_QUERIES, N_DATABASE = 9, 45


def random_tags(n, random_state):
    return np.random.default_rng(random_state).random((n, 70)) < 0.05


def random_gains():
    return np.random.default_rng(5).choice([0, 0, 0, 1, 2, 9], (N_QUERIES, N_DATABASE))


GROUND_TRUTHS = {
    "classes": lambda: Relevance.from_classes(
        np.arange(N_QUERIES) % 5, (np.arange(N_DATABASE) * 7) % 4
    ),
    "one class": lambda: Relevance.from_classes(
        np.zeros(N_QUERIES, int), np.zeros(N_DATABASE, int)
    ),
    "strings": lambda: Relevance.from_classes(
        ["a", "b", "c"] * 3, ["c", "a", "emu", "b", "a"] * (N_DATABASE // 5)
    ),
    "tags": lambda: Relevance.from_tags(random_tags(N_QUERIES, 1), random_tags(N_DATABASE, 2)),
    "graded tags": lambda: Relevance.from_tags(
        random_tags(N_QUERIES, 1) | (np.arange(70) < 6), random_tags(N_DATABASE, 2), graded=True
    ),
    "matrix": lambda: Relevance.from_matrix(random_gains()),
    "nothing": lambda: Relevance.from_matrix(np.zeros((N_QUERIES, N_DATABASE))),
    "neighbours": lambda: Relevance.from_neighbours(
        np.arange(N_QUERIES)[:, None], np.arange(N_DATABASE)[:, None] / 3, 5
    ),
    "thresholds": lambda: Relevance.from_thresholds(
        np.arange(N_QUERIES)[:, None], np.arange(N_DATABASE)[:, None] / 3, [1, 4], [3, 1]
    ),
}
EXCLUDED = np.array([3, -1, 0, N_DATABASE - 1, 7, 7, -1, 20, 21])


def random_codes(n_bits):
    """Queries and database with near and far neighbours, both read-only."""
    rng = np.random.default_rng(n_bits)
    bits = [
        rng.random((n, n_bits)) < rng.uniform(0.1, 0.9, (n, 1)) for n in (N_QUERIES, N_DATABASE)
    ]
    bits[1][::3] = bits[0][: N_DATABASE // 3 % N_QUERIES + 1][0]
    codes = [Codes.from_bits(b) for b in bits]
    for part in codes:
        part.words.flags.writeable = False
    return codes


def slow_counts(distances, relevance):
    """Per query, {(distance, gain): items}; counted one by one."""
    gains = gains_of(relevance)
    counted = []
    for q, row in enumerate(distances):
        counts = {}
        for i, distance in enumerate(row):
            if relevance.excluded is None or relevance.excluded[q] != i:
                key = distance, gains[q, i]
                counts[key] = counts.get(key, 0) + 1
        counted.append(counts)
    return counted


def counts_of(profile):
    """The same from a profile."""
    counted = []
    for q in range(profile.n_queries):
        counts = {}
        for d, v in zip(*np.nonzero(profile.counts[q]), strict=True):
            distance = d if profile.distances is None else profile.distances[q, d]
            counts[distance, profile.gains[v]] = profile.counts[q, d, v]
        counted.append(counts)
    return counted


def hamming(queries, database):
    return (queries.to_bits()[:, None] != database.to_bits()[None]).sum(axis=-1)


def assert_identical(a, b):
    """Equal, and equal in everything that can be asked."""
    assert a == b
    np.testing.assert_array_equal(a.total, b.total)
    np.testing.assert_array_equal(a.relevant, b.relevant)
    np.testing.assert_array_equal(a.n_relevant, b.n_relevant)
    np.testing.assert_array_equal(
        a.unretrieved[:, 1:].sum(axis=1), b.unretrieved[:, 1:].sum(axis=1)
    )


def distances_for(kind, random_state):
    """(n_queries, n_database) distances of one kind, with ties across shards."""
    rng = np.random.default_rng(random_state)
    shape = N_QUERIES, N_DATABASE
    if kind == "whole numbers":
        return rng.integers(0, 9, shape)
    if kind == "negative":
        return rng.integers(-4, 4, shape)
    if kind == "infinite":
        return rng.choice([-np.inf, 0.5, 1.5, np.inf], shape)
    if kind == "huge":
        return rng.choice([-1e308, 0.0, 1e308], shape)
    return rng.choice([0.1, 0.2, 0.1 + 0.2, 0.3, 1e-300, 5.0, -2.5], shape)


KINDS = ["whole numbers", "negative", "real", "infinite", "huge"]
