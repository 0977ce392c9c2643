"""Counts from given distances, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_array, check_same_length, check_type, row_blocks
from bittern.errors import InputError
from bittern.parallel import Progress
from bittern.profile.tallies import Columns, Counts, are_radii, refuse_merging, tally, tally_values
from bittern.relevance.base import Relevance

__all__ = ["count_distances"]

BLOCK = 1 << 26  # octets of levels and sorted distances held at once


def count_distances(
    distances: ArrayLike | Iterable[ArrayLike],
    relevance: Relevance,
    compact: bool,
    progress: Progress | None,
) -> tuple[Counts, Columns]:
    """Counts and the distance of each column; None where the columns are the distances."""
    check_type(relevance, Relevance, "TieProfile: relevance")
    parts: list[tuple[Counts, Columns]] = []
    done = 0
    for block in _distance_blocks(distances, relevance):
        rows = slice(done, done + len(block))
        done = rows.stop
        if done > relevance.n_queries:
            break
        levels = relevance.block(rows)
        keep = _kept(relevance, rows, len(block))
        parts.append(_count_block(block, levels, keep, relevance.n_levels, compact))
        if progress is not None:
            progress(done, relevance.n_queries)
    check_same_length(done, relevance.n_queries, "TieProfile: rows of distances and queries")
    return _join(parts, relevance.n_levels)


def _distance_blocks(
    distances: ArrayLike | Iterable[ArrayLike], relevance: Relevance
) -> Iterator[NDArray[Any]]:
    """Blocks of few rows each, checked."""
    for given in _given_blocks(distances):
        block = check_array(given, "TieProfile: distances")
        if block.ndim != 2 or block.shape[1] != relevance.n_database:
            raise InputError(
                f"TieProfile: distances must be 2-D (n_queries, {relevance.n_database}), "
                f"got shape {block.shape}."
            )
        if block.dtype.kind not in "iufb":
            raise InputError(f"TieProfile: distances must be numbers, got dtype {block.dtype}.")
        if block.dtype.kind == "f" and np.isnan(block).any():
            row = int(np.argmax(np.isnan(block).any(axis=1)))
            raise InputError(f"TieProfile: distances must not be NaN, row {row} has one.")
        refuse_merging(block)
        radii = are_radii(block)
        for rows in row_blocks(len(block), 40 * max(1, block.shape[1]), BLOCK):
            yield block[rows].astype(np.intp if radii else np.float64, copy=False)


def _given_blocks(distances: Any) -> Iterable[Any]:
    """One array is one block; a list may be an array's rows or a list of blocks."""
    if isinstance(distances, list | tuple):
        return distances if distances and np.ndim(distances[0]) == 2 else [distances]
    if hasattr(distances, "__array__") or not isinstance(distances, Iterable):
        return [distances]
    return distances


def _kept(relevance: Relevance, rows: slice, n: int) -> NDArray[np.bool_] | None:
    """Which items of a block are there to be retrieved; None if all are."""
    if relevance.excluded is None:
        return None
    keep = np.ones((n, relevance.n_database), np.bool_)
    out = relevance.excluded[rows]
    row = np.flatnonzero(out >= 0)
    keep[row, out[row]] = False
    return keep


def _count_block(
    block: NDArray[Any],
    levels: NDArray[np.intp],
    keep: NDArray[np.bool_] | None,
    n_levels: int,
    compact: bool,
) -> tuple[Counts, Columns]:
    query = np.repeat(np.arange(len(block)), block.shape[1])
    distance, level = block.ravel(), levels.ravel()
    if keep is not None:
        query, distance, level = query[keep.ravel()], distance[keep.ravel()], level[keep.ravel()]
    if block.dtype == np.intp:
        return tally(query, distance, level, len(block), n_levels), None
    counts, columns = tally_values(query, distance, level, len(block), n_levels)
    return _compacted(counts, columns) if compact else (counts, columns)


def _compacted(counts: Counts, columns: NDArray[np.float64]) -> tuple[Counts, NDArray[np.float64]]:
    """Merge runs of columns that hold nothing relevant; a run takes its farthest distance."""
    hit = np.asarray(counts[:, :, 1:].any(axis=2))
    used = ~np.isnan(columns)
    after_hit = np.zeros_like(hit)
    after_hit[:, 1:] = hit[:, :-1]
    after_hit[:, 0] = True
    begins = used & (hit | after_hit)
    target = np.cumsum(begins, axis=1) - 1
    n_columns = int(begins.sum(axis=1).max(initial=1))
    q, d = np.nonzero(used)
    merged = np.zeros((len(counts), n_columns, counts.shape[2]), np.uint32)
    np.add.at(merged, (q, target[q, d]), counts[q, d])
    farthest = np.full((len(counts), n_columns), np.nan)
    farthest[q, target[q, d]] = columns[q, d]  # the last of a run is written last
    return merged, farthest


def _join(parts: list[tuple[Counts, Columns]], n_levels: int) -> tuple[Counts, Columns]:
    """Stack blocks of queries, columns widened to the widest."""
    kinds = {columns is None for _, columns in parts}
    if len(kinds) == 2:
        parts = [(c, _as_values(c) if d is None else d) for c, d in parts]
    width = max((c.shape[1] for c, _ in parts), default=1)
    n = sum(len(c) for c, _ in parts)
    counts = np.zeros((n, width, n_levels), np.uint32)
    columns = None if kinds == {True} else np.full((n, width), np.nan)
    start = 0
    for c, d in parts:
        counts[start : start + len(c), : c.shape[1]] = c
        if columns is not None and d is not None:
            columns[start : start + len(c), : c.shape[1]] = d
        start += len(c)
    return counts, columns


def _as_values(counts: Counts) -> NDArray[np.float64]:
    return np.tile(np.arange(counts.shape[1], dtype=np.float64), (len(counts), 1))
