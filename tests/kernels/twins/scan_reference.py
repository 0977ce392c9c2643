"""Twins of ``bittern.kernels.scan``, ``scan_avx2`` and ``multi_index``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def find_nearest(
    queries: Array, words: Array, allowed: Array, k: int, rows: Array, distances: Array
) -> None:
    """The result of ``find_nearest`` in all three."""
    for q, (order, sorted_distances) in enumerate(_ranked(queries, words, allowed)):
        rows[q], distances[q] = order[:k], sorted_distances[:k]


def find_within(
    queries: Array, words: Array, allowed: Array, radius: int
) -> tuple[Array, Array, Array]:
    """Sizes, rows and distances of the items that ``find_within`` finds, query by query."""
    ranked = _ranked(queries, words, allowed)
    sizes = np.array([(d <= radius).sum() for _, d in ranked])
    rows = [order[:size] for (order, _), size in zip(ranked, sizes, strict=True)]
    distances = [d[:size] for (_, d), size in zip(ranked, sizes, strict=True)]
    return sizes, np.concatenate(rows), np.concatenate(distances)


def _ranked(queries: Array, words: Array, allowed: Array) -> list[tuple[Array, Array]]:
    """Allowed rows and their distances, by distance, then row; an empty mask allows all."""
    found = np.flatnonzero(allowed) if len(allowed) else np.arange(len(words))
    out = []
    for query in queries:
        distances = np.bitwise_count(query ^ words[found]).sum(axis=1, dtype=np.int64)
        order = np.argsort(distances, kind="stable")
        out.append((found[order], distances[order]))
    return out
