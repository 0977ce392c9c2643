"""Counts from given rankings: distances, hits of a search, TREC runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_array, check_same_length, check_type, row_blocks
from bittern.errors import InputError
from bittern.io.trec import Qrels, Run, trec_order
from bittern.parallel import Progress
from bittern.relevance.base import Relevance

BLOCK = 1 << 26  # bytes of levels and sorted distances held at once
MOST_COLUMNS = 1 << 16  # whole numbers below this are used as columns

Counts = NDArray[np.uint32]  # (n_queries, n_columns, n_levels)
ColumnDistances = NDArray[np.float64] | None  # (n_queries, n_columns): the distance of each column


def count_distances(
    distances: ArrayLike | Iterable[ArrayLike],
    relevance: Relevance,
    compact: bool,
    progress: Progress | None,
) -> tuple[Counts, ColumnDistances]:
    """Counts, and the distance of each column; None if the columns are the distances."""
    check_type(relevance, Relevance, "TieProfile: relevance")
    parts: list[tuple[Counts, ColumnDistances]] = []
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
    """Checked blocks of few rows each."""
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
            raise InputError(f"TieProfile: distances must not be NaN, but row {row} has one.")
        _check_exact(block)
        radii = _are_radii(block)
        for rows in row_blocks(len(block), 40 * max(1, block.shape[1]), BLOCK):
            yield block[rows].astype(np.intp if radii else np.float64, copy=False)


def _given_blocks(distances: Any) -> Iterable[Any]:
    """Blocks as given: an array is one block; a list holds rows, or 2-D blocks."""
    if isinstance(distances, list | tuple):
        return distances if distances and np.ndim(distances[0]) == 2 else [distances]
    if hasattr(distances, "__array__") or not isinstance(distances, Iterable):
        return [distances]
    return distances


def _kept(relevance: Relevance, rows: slice, n: int) -> NDArray[np.bool_] | None:
    """Which items of a block can be retrieved; None for all."""
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
) -> tuple[Counts, ColumnDistances]:
    query = np.repeat(np.arange(len(block)), block.shape[1])
    distance, level = block.ravel(), levels.ravel()
    if keep is not None:
        query, distance, level = query[keep.ravel()], distance[keep.ravel()], level[keep.ravel()]
    if block.dtype == np.intp:
        return _tally(query, distance, level, len(block), n_levels), None
    counts, columns = _tally_values(query, distance, level, len(block), n_levels)
    return _compacted(counts, columns) if compact else (counts, columns)


def _compacted(counts: Counts, columns: NDArray[np.float64]) -> tuple[Counts, NDArray[np.float64]]:
    """Merge runs of columns without relevant items; a run gets its largest distance."""
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
    farthest[q, target[q, d]] = columns[q, d]  # the last of a run overwrites the others
    return merged, farthest


def _join(
    parts: list[tuple[Counts, ColumnDistances]], n_levels: int
) -> tuple[Counts, ColumnDistances]:
    """Stack blocks of queries, padded to the widest."""
    kinds = {columns is None for _, columns in parts}
    if len(kinds) == 2:
        parts = [(c, radii_of(c) if d is None else d) for c, d in parts]
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


def count_hits(
    ids: ArrayLike, distances: ArrayLike, relevance: Relevance, offsets: ArrayLike | None
) -> tuple[Counts, ColumnDistances]:
    """Counts of the hits of a search, and the distance of each column."""
    check_type(relevance, Relevance, "TieProfile: relevance")
    query, item, distance = _flat_hits(ids, distances, relevance, offsets)
    _check_exact(distance)
    if relevance.excluded is not None:
        keep = item != relevance.excluded[query]
        query, item, distance = query[keep], item[keep], distance[keep]
    keys = np.sort(query * relevance.n_database + item)
    if (np.diff(keys) == 0).any():
        twice = keys[:-1][np.diff(keys) == 0][0]
        raise InputError(
            f"TieProfile: query {twice // relevance.n_database} hit item "
            f"{twice % relevance.n_database} twice; a ranking may hold an item only once."
        )
    levels = relevance.levels_of(query, item)
    shape = relevance.n_queries, relevance.n_levels
    if _are_radii(distance):
        return _tally(query, distance.astype(np.intp), levels, *shape), None
    return _tally_values(query, distance.astype(np.float64), levels, *shape)


def _flat_hits(
    ids: ArrayLike, distances: ArrayLike, relevance: Relevance, offsets: ArrayLike | None
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
    """Hits as flat arrays of query, item and distance, without empty places."""
    i, d = check_array(ids, "TieProfile: ids"), check_array(distances, "TieProfile: distances")
    if i.shape != d.shape or i.ndim != (2 if offsets is None else 1):
        raise InputError(
            "TieProfile: ids and distances must have the same shape, (n_queries, k) or flat with "
            f"offsets, got {i.shape} and {d.shape}."
        )
    if i.dtype.kind not in "iu" and i.size:
        raise InputError(f"TieProfile: ids must be whole numbers, got {i.dtype}.")
    if d.dtype.kind not in "iuf":
        raise InputError(f"TieProfile: distances must be numbers, got {d.dtype}.")
    if offsets is None:
        _check_hit_rows(len(i), relevance)
        sizes = np.full(len(i), i.shape[1])
    else:
        sizes = _hit_sizes(offsets, i.size, relevance)
    query, i, d = np.repeat(np.arange(len(sizes)), sizes), i.ravel().astype(np.intp), d.ravel()
    there = i != -1
    query, i, d = query[there], i[there], d[there]
    if ((i < 0) | (i >= relevance.n_database)).any():
        raise InputError(
            f"TieProfile: ids must lie in [0, {relevance.n_database}), or be -1 for none."
        )
    if d.dtype.kind == "f" and np.isnan(d).any():
        raise InputError("TieProfile: distances must not be NaN.")
    return query, i, d


def _hit_sizes(offsets: ArrayLike, n: int, relevance: Relevance) -> NDArray[np.int64]:
    """Number of hits of each query."""
    o = check_array(offsets, "TieProfile: offsets")
    if o.ndim == 1 and o.dtype.kind in "iu" and len(o):
        _check_hit_rows(len(o) - 1, relevance)
        sizes: NDArray[np.int64] = o[1:].astype(np.int64) - o[:-1].astype(np.int64)
        if o[0] == 0 and o[-1] == n and (sizes >= 0).all():
            return sizes
    raise InputError(f"TieProfile: offsets must ascend from 0 to {n}, in whole numbers.")


def _check_hit_rows(n: int, relevance: Relevance) -> None:
    check_same_length(n, relevance.n_queries, "TieProfile: rows of hits and queries")


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A TREC run counted twice: with its ties, and in the order of trec_eval."""

    query_ids: NDArray[np.str_]
    gains: NDArray[np.int64]
    unretrieved: NDArray[np.int64]
    counts: Counts
    distances: NDArray[np.float64]
    trec_counts: Counts
    trec_ranks: NDArray[np.float64]


def count_run(run: Run, qrels: Qrels) -> CountedRun:
    """Count a run against judgements, for the queries of either, sorted by id."""
    check_type(run, Run, "TieProfile: run")
    check_type(qrels, Qrels, "TieProfile: qrels")
    query_ids = np.union1d(run.query_ids, qrels.query_ids)
    gains = np.unique(np.append(np.maximum(qrels.gains, 0), [0, 1]))
    run_query = np.searchsorted(query_ids, run.query_ids)
    query = np.repeat(run_query, np.diff(run.offsets))
    levels = np.searchsorted(gains, _judged(run, qrels, query, query_ids))
    shape = len(query_ids), len(gains)

    counts, distances = _tally_values(query, -run.scores, levels, *shape)
    order = trec_order(run)
    rank = np.arange(len(order)) - np.repeat(run.offsets[:-1], np.diff(run.offsets))
    trec_counts, trec_ranks = _tally_values(query, rank.astype(np.float64), levels[order], *shape)

    judged_query = np.repeat(np.searchsorted(query_ids, qrels.query_ids), np.diff(qrels.offsets))
    judged = np.zeros(shape, np.int64)
    np.add.at(judged, (judged_query, np.searchsorted(gains, np.maximum(qrels.gains, 0))), 1)
    unretrieved = judged - counts.sum(axis=1, dtype=np.int64)
    unretrieved[:, 0] = 0
    return CountedRun(query_ids, gains, unretrieved, counts, distances, trec_counts, trec_ranks)


def _judged(
    run: Run, qrels: Qrels, query: NDArray[np.intp], query_ids: NDArray[np.str_]
) -> NDArray[np.int64]:
    """The gain of every row of a run, 0 where it was not judged."""
    documents = np.union1d(run.document_ids, qrels.document_ids)
    n = len(documents)
    of_run = np.searchsorted(documents, run.document_ids)[run.documents]
    of_qrels = np.searchsorted(documents, qrels.document_ids)[qrels.documents]
    qrels_query = np.repeat(np.searchsorted(query_ids, qrels.query_ids), np.diff(qrels.offsets))
    keys = qrels_query.astype(np.int64) * n + of_qrels
    order = np.argsort(keys)
    wanted = query.astype(np.int64) * n + of_run
    place = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    found = order[place]
    return np.where(keys[found] == wanted, np.maximum(qrels.gains[found], 0), 0)


def _are_radii(distances: NDArray[Any]) -> bool:
    """Whether distances can be columns themselves: small whole numbers ≥ 0."""
    if distances.dtype.kind not in "iub" or not distances.size:
        return distances.dtype.kind in "iub"
    return bool(distances.min() >= 0 and distances.max() < MOST_COLUMNS)


def _check_exact(distances: NDArray[Any]) -> None:
    """Raise an error for whole numbers that are not exact in double precision."""
    if distances.dtype.kind in "iu" and distances.size:
        low, high = int(distances.min()), int(distances.max())
        if max(-low, high) > 1 << 53:
            raise InputError(
                "TieProfile: whole distances must lie within ±2^53, where doubles are exact, "
                f"got {low if -low > high else high}."
            )


def _tally(
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


def _tally_values(
    query: NDArray[np.intp],
    distance: NDArray[np.float64],
    level: NDArray[np.intp],
    n_queries: int,
    n_levels: int,
) -> tuple[Counts, NDArray[np.float64]]:
    """Count real distances: one column per distinct value of a query, ascending."""
    order = np.lexsort((distance, query))
    query, distance, level = query[order], distance[order], level[order]
    column = column_numbers(query, distance)
    counts = _tally(query, column, level, n_queries, n_levels)
    columns = np.full(counts.shape[:2], np.nan)
    columns[query, column] = distance
    return counts, columns


def column_numbers(query: NDArray[np.intp], distance: NDArray[np.float64]) -> NDArray[np.intp]:
    """For distances sorted by query, the column of each: one per distinct value of a query."""
    new_query = np.diff(query, prepend=-1) != 0
    new_column = new_query.copy()
    new_column[1:] |= distance[1:] != distance[:-1]
    number = np.cumsum(new_column) - 1
    return number - np.maximum.accumulate(np.where(new_query, number, 0))


def radii_of(counts: NDArray[Any]) -> NDArray[np.float64]:
    """The distance of each column, if columns are distances."""
    return np.tile(np.arange(counts.shape[1], dtype=np.float64), (len(counts), 1))
