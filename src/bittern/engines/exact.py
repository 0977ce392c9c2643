"""The exact answer: where it ends for each query, and the true distance of each hit."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, row_blocks
from bittern.codes import Codes
from bittern.errors import BitternError
from bittern.profile import TieProfile
from bittern.progress import track
from bittern.relevance import Relevance
from bittern.relevance.neighbours import count_answers, pair_distances
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner

PART = 1 << 22  # codes counted at a time
Integers = NDArray[np.int64]
Counts = NDArray[np.int64]  # (n_queries, n_bits + 1): items at each distance
Found = tuple[Integers, Float64Array]  # places in the list of hits, and their distances
Task = tuple[Codes, Shard, Integers, Integers, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class ExactAnswer:
    """Where the answer of each query ends, and how far each hit really is."""

    n_items: int
    limits: Float64Array  # (n_queries,) the distance of its last item, or the radius
    nearer: Integers  # (n_queries,) items nearer than the limit
    tied: Integers  # (n_queries,) items at the limit
    needed: Integers  # (n_queries,) items of the answer: all nearer ones and some, or all, tied
    distances: Float64Array  # (n_hits,) NaN for an id that no item has


def answer_by_codes(
    queries: Codes,
    database: Codes,
    hits: tuple[Integers, Integers],
    k: int | None,
    radius: int | None,
    ids: Integers | None,
) -> ExactAnswer:
    """The answer among codes; ``hits`` are flat arrays of query and id."""
    counts = np.zeros((len(queries), queries.n_bits + 1), np.int64)
    for rows in track(row_blocks(len(database), 1, PART), "count"):
        counts += _count(queries, database[rows], None)
    places, distances = _distances(queries, database, ids, *hits)
    return _cut(counts, k, radius, _spread([(places, distances)], len(hits[0])))


def answer_by_shards(
    queries: Codes,
    shards: Shards,
    hits: tuple[Integers, Integers],
    k: int | None,
    radius: int | None,
    executor: Executor | None,
) -> ExactAnswer:
    """The answer among the codes of shards, one task for each."""
    threads = None if executor is None else 1
    tasks = {shard.name: (queries, shard, *hits, threads) for shard in shards}
    counts = np.zeros((len(queries), queries.n_bits + 1), np.int64)
    found = []
    for _, (counted, distances) in Runner(executor)(_answer_of, tasks, "count"):
        counts += counted
        found.append(distances)
    return _cut(counts, k, radius, _spread(found, len(hits[0])))


def answer_by_vectors(
    queries: Any,
    database: Any,
    hits: tuple[Integers, Integers],
    k: int | None,
    radius: float | None,
    ids: Integers | None,
    metric: str,
    tolerance: float,
) -> ExactAnswer:
    """The answer among vectors; distances that differ by less than the tolerance are ties."""
    limits, (nearer, tied, needed) = count_answers(
        queries, database, k, radius, metric=metric, tolerance=tolerance
    )
    query, wanted = hits
    rows = _rows_of(wanted, ids, len(database))
    known = np.flatnonzero(rows >= 0)
    distances = np.full(len(wanted), np.nan)
    if len(known):
        pairs = query[known].astype(np.intp), rows[known].astype(np.intp)
        distances[known] = pair_distances(queries, database, *pairs, metric)
    return ExactAnswer(len(database), limits, nearer, tied, needed, distances)


def _answer_of(task: Task) -> tuple[Counts, Found]:
    """Count one shard, and find the hits in it, where this runs."""
    queries, shard, query, wanted, n_threads = task
    try:
        codes = shard.codes
        ids = shard.ids if "ids" in shard.files else None
        inside = wanted if ids is not None else wanted - shard.start
        found = _distances(queries, codes, ids, query, inside)
        return _count(queries, codes, n_threads), found
    except BitternError as error:
        raise type(error)(f"shard {shard.name}: {error}") from None


def _count(queries: Codes, database: Codes, n_threads: int | None) -> Counts:
    """Items at each distance; the tie profile of a single class."""
    one_class = Relevance.from_classes(np.zeros(len(queries), int), np.zeros(len(database), int))
    profile = TieProfile.from_codes(queries, database, one_class, n_threads=n_threads)
    return profile.counts.sum(axis=2, dtype=np.int64)


def _cut(counts: Counts, k: int | None, radius: int | None, distances: Float64Array) -> ExactAnswer:
    """The end of each answer, by the number of items at each distance."""
    n_items, n_bits = int(counts[0].sum()), counts.shape[1] - 1
    at_most = np.cumsum(counts, axis=1)
    most = n_items if k is None else min(k, n_items)
    end = n_bits if radius is None else min(radius, n_bits)
    needed = np.minimum(at_most[:, end], most)
    kth = (at_most >= needed[:, None]).argmax(axis=1)
    limits = np.where(needed == most, kth, end)
    query = np.arange(len(counts))
    tied = counts[query, limits]
    nearer = at_most[query, limits] - tied
    return ExactAnswer(n_items, limits.astype(np.float64), nearer, tied, needed, distances)


def _distances(
    queries: Codes, database: Codes, ids: Integers | None, query: Integers, wanted: Integers
) -> Found:
    """The places of hits that are in the database, and their distances."""
    rows = _rows_of(wanted, ids, len(database))
    places = np.flatnonzero(rows >= 0)
    distances = np.empty(len(places))
    for some in row_blocks(len(places), 24 * queries.words.shape[1]):
        there = places[some]
        differing = queries.words[query[there]] ^ database.words[rows[there]]
        distances[some] = np.bitwise_count(differing).sum(axis=1, dtype=np.int64)
    return places, distances


def _rows_of(wanted: Integers, ids: Integers | None, n: int) -> Integers:
    """The row of each id, -1 for one that no item has; ids default to the rows."""
    if ids is None:
        return np.where((wanted >= 0) & (wanted < n), wanted, -1)
    order = None if (ids[1:] > ids[:-1]).all() else np.argsort(ids, kind="stable")
    rows = np.minimum(np.searchsorted(ids, wanted, sorter=order), n - 1)
    if order is not None:
        rows = order[rows]
    return np.where(ids[rows] == wanted, rows, -1)


def _spread(found: list[Found], n: int) -> Float64Array:
    """Distances at their places among all hits, NaN elsewhere."""
    distances = np.full(n, np.nan)
    for places, some in found:
        distances[places] = some
    return distances
