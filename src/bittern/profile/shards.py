"""Add the profiles of shards to get the profile of the whole database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.profile.rankings import column_numbers, radii_of

if TYPE_CHECKING:
    from bittern.profile.base import TieProfile


def merge(a: TieProfile, b: TieProfile) -> TieProfile:
    """Add the counts of two shards of one database, for the same queries in the same order."""
    _check_mergeable(a, b)
    if _are_alike(a, b):
        return type(a)(
            counts=_sum_of(a.counts, b.counts),
            gains=a.gains,
            unretrieved=a.unretrieved + b.unretrieved,
            query_ids=a.query_ids,
        )
    gains = np.union1d(a.gains, b.gains)
    left, right = _widened(a.counts, a.gains, gains), _widened(b.counts, b.gains, gains)
    if a.distances is None and b.distances is None:
        counts, distances = _add_columns(left, right), None
    else:
        counts, distances = _add_values(left, _values(a), right, _values(b))
    unretrieved = _widened(a.unretrieved, a.gains, gains) + _widened(b.unretrieved, b.gains, gains)
    return type(a)(
        counts=_narrowest(counts),
        gains=gains,
        unretrieved=unretrieved,
        distances=distances,
        query_ids=a.query_ids,
    )


def same(a: TieProfile, b: TieProfile) -> bool:
    """Whether two profiles have the same counts at the same distances."""
    if a.n_queries != b.n_queries:
        return False
    gains = np.union1d(a.gains, b.gains)
    missing = [_widened(p.unretrieved, p.gains, gains) for p in (a, b)]
    entries = [_entries(_widened(p.counts, p.gains, gains), _values(p)) for p in (a, b)]
    return np.array_equal(missing[0], missing[1]) and all(
        np.array_equal(x, y) for x, y in zip(*entries, strict=True)
    )


def _check_mergeable(a: TieProfile, b: TieProfile) -> None:
    if a.n_queries != b.n_queries:
        raise InputError(
            "TieProfile: only shards of one database for the same queries can be added, "
            f"got {a.n_queries} and {b.n_queries} queries."
        )
    if a.is_compact or b.is_compact:
        raise InputError(
            "TieProfile: compact profiles have lost the distances that adding needs; "
            "make them with compact=False."
        )
    if (a.query_ids is None) != (b.query_ids is None) or (
        a.query_ids is not None
        and b.query_ids is not None
        and not np.array_equal(a.query_ids, b.query_ids)
    ):
        raise InputError("TieProfile: the shards must have the same query ids in the same order.")


def _are_alike(a: TieProfile, b: TieProfile) -> bool:
    """Whether every count of one has its place in the other, as those of codes have."""
    return (
        a.distances is None
        and b.distances is None
        and a.counts.shape == b.counts.shape
        and np.array_equal(a.gains, b.gains)
    )


def _sum_of(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """The sum of two arrays of counts, in 32 bits if they hold it."""
    if int(a.max(initial=0)) + int(b.max(initial=0)) < 1 << 32:
        return np.add(a, b, dtype=np.uint32, casting="unsafe")
    return _narrowest(a.astype(np.int64) + b.astype(np.int64))


def _widened(
    counts: NDArray[Any], old: NDArray[np.int64], new: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Counts with their last axis extended to more gains."""
    wide = np.zeros((*counts.shape[:-1], len(new)), np.int64)
    wide[..., np.searchsorted(new, old)] = counts
    return wide


def _add_columns(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    wide, narrow = (a, b) if a.shape[1] >= b.shape[1] else (b, a)
    total = wide.copy()
    total[:, : narrow.shape[1]] += narrow
    return total


def _values(profile: TieProfile) -> NDArray[np.float64]:
    return radii_of(profile.counts) if profile.distances is None else profile.distances


def _add_values(
    a: NDArray[np.int64],
    a_values: NDArray[np.float64],
    b: NDArray[np.int64],
    b_values: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merge columns of equal distance, query by query."""
    entries = [_entries(a, a_values), _entries(b, b_values)]
    query, value, counts = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    order = np.lexsort((value, query))
    query, value, counts = query[order], value[order], counts[order]
    column = column_numbers(query, value)
    shape = len(a), int(column.max(initial=0)) + 1
    merged = np.zeros((*shape, a.shape[2]), np.int64)
    np.add.at(merged, (query, column), counts)
    values = np.full(shape, np.nan)
    values[query, column] = value
    return merged, values


def _entries(
    counts: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.int64]]:
    """Query, distance and counts of every column that is not empty, in order."""
    query, column = np.nonzero(counts.any(axis=2))
    return query, values[query, column], counts[query, column]


def _narrowest(counts: NDArray[np.int64]) -> NDArray[np.unsignedinteger[Any]]:
    return counts.astype(np.uint32 if counts.max(initial=0) < 1 << 32 else np.uint64)
