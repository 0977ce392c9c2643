"""The linear scan from the definition, on unpacked bits: the oracle of every index."""

import numpy as np


def distances(queries, database):
    """Differing bits of every pair, ``(n_queries, n)``."""
    return (queries[:, None] != database[None]).sum(axis=2)


def ranked(queries, database, allowed=None):
    """For each query, pairs of row and distance of the allowed rows, by distance, then row."""
    keep = np.ones(len(database), bool) if allowed is None else allowed
    return [
        sorted(
            ((int(row), int(d)) for row, d in enumerate(line) if keep[row]), key=lambda p: p[::-1]
        )
        for line in distances(queries, database)
    ]


def nearest(queries, database, k, allowed=None):
    return [line[:k] for line in ranked(queries, database, allowed)]


def within(queries, database, radius, allowed=None):
    return [[(r, d) for r, d in line if d <= radius] for line in ranked(queries, database, allowed)]


def clustered(rng, n, n_bits, n_centres=6, noise=0.08):
    """Bits in clusters, so that there are near and far ones, and ties among both."""
    centres = np.random.default_rng(n_bits).random((n_centres, n_bits)) < 0.5
    return centres[rng.integers(0, n_centres, n)] ^ (rng.random((n, n_bits)) < noise)
