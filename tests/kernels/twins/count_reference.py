"""Twins of ``bittern.kernels.count``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def hamming(queries: Array, planes: Array) -> Array:
    """Distances ``(n_queries, n_items)``."""
    return np.bitwise_count(queries[:, None] ^ planes.T[None]).sum(axis=-1, dtype=np.intp)


def count_ranges(queries: Array, planes: Array, starts: Array, stops: Array, counts: Array) -> None:
    """Twin of ``count_ranges`` in ``portable`` and ``avx2``."""
    item = np.arange(planes.shape[1])
    levels = (starts[:, None] <= item) & (item < stops[:, None])
    _add(counts, levels.astype(np.intp), hamming(queries, planes))


def count_categories(
    queries: Array,
    planes: Array,
    categories: Array,
    starts: Array,
    query_masks: Array,
    masks: Array,
    graded: bool,
    counts: Array,
) -> None:
    """Twin of ``count_categories`` in ``portable`` and ``avx2``."""
    levels = np.empty((len(queries), masks.shape[1]), np.intp)
    shared_tags(query_masks, masks, graded, levels)
    _add(counts, levels[:, categories], hamming(queries, planes))


def move_listed(
    queries: Array, database: Array, offsets: Array, items: Array, levels: Array, counts: Array
) -> None:
    """Twin of ``portable.move_listed``."""
    q = np.repeat(np.arange(len(queries)), np.diff(offsets))
    distance = hamming(queries, database.T)[q, items]
    np.subtract.at(counts[:, 0], (q, distance), 1)
    np.add.at(counts, (q, levels, distance), 1)


def remove_listed(
    queries: Array, database: Array, items: Array, levels: Array, counts: Array
) -> None:
    """Twin of ``portable.remove_listed``."""
    q = np.flatnonzero(items >= 0)
    distance = hamming(queries, database.T)[q, items[q]]
    np.subtract.at(counts, (q, levels[q], distance), 1)


def shared_tags(query_masks: Array, planes: Array, graded: bool, levels: Array) -> None:
    """Twin of ``portable.shared_tags``."""
    shared = np.bitwise_count(query_masks[:, None] & planes.T[None]).sum(axis=-1)
    levels[:] = shared if graded else shared > 0


def _add(counts: Array, levels: Array, distance: Array) -> None:
    q = np.broadcast_to(np.arange(len(distance))[:, None], distance.shape)
    np.add.at(counts, (q, levels, distance), 1)
