"""Counting triples of a query, a distance and a level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError

__all__ = ["Columns", "Counts", "are_radii", "refuse_merging", "tally", "tally_values"]

MOST_COLUMNS = 1 << 16  # whole numbers below this are columns of their own

Counts = NDArray[np.uint32]  # (n_queries, n_columns, n_levels)
Columns = NDArray[np.float64] | None  # (n_queries, n_columns): the distance of each column


def are_radii(distances: NDArray[Any]) -> bool:
    """Whether distances can be columns themselves: small whole numbers, from 0."""
    if distances.dtype.kind not in "iub" or not distances.size:
        return distances.dtype.kind in "iub"
    return bool(distances.min() >= 0 and distances.max() < MOST_COLUMNS)


def refuse_merging(distances: NDArray[Any]) -> None:
    """Refuse whole numbers that double precision would merge."""
    if distances.dtype.kind in "iu" and distances.size:
        low, high = int(distances.min()), int(distances.max())
        if max(-low, high) > 1 << 53:
            raise InputError(
                "TieProfile: whole distances must lie within ±2^53, where they can be told apart, "
                f"got {low if -low > high else high}."
            )


def tally(
    query: NDArray[np.intp],
    column: NDArray[np.intp],
    level: NDArray[np.intp],
    n_queries: int,
    n_levels: int,
) -> Counts:
    """Count triples (query, column, level)."""
    n_columns = int(column.max(initial=0)) + 1
    keys = (query * n_columns + column) * n_levels + level
    counts = np.bincount(keys, minlength=n_queries * n_columns * n_levels)
    return counts.reshape(n_queries, n_columns, n_levels).astype(np.uint32)


def tally_values(
    query: NDArray[np.intp],
    distance: NDArray[np.float64],
    level: NDArray[np.intp],
    n_queries: int,
    n_levels: int,
) -> tuple[Counts, NDArray[np.float64]]:
    """Count real distances: a column for each distinct value of a query, ascending."""
    order = np.lexsort((distance, query))
    query, distance, level = query[order], distance[order], level[order]
    new_query = np.diff(query, prepend=-1) != 0
    new_value = np.append(True, distance[1:] != distance[:-1])[: len(distance)] | new_query
    group = np.cumsum(new_value) - 1
    column = group - np.repeat(
        group[new_query], np.diff(np.append(np.flatnonzero(new_query), len(query)))
    )
    counts = tally(query, column, level, n_queries, n_levels)
    columns = np.full(counts.shape[:2], np.nan)
    columns[query, column] = distance
    return counts, columns
