"""Counts from codes: every query against the whole database, in parallel threads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_type
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.kernels import small
from bittern.kernels.count import count_categories, count_ranges, tiles_for
from bittern.parallel import Progress, available_threads, run_blocks
from bittern.relevance.base import ClassRelevance, Relevance
from bittern.relevance.sparse import SparseRelevance
from bittern.relevance.tags import TagRelevance

PART = 1 << 18  # database items counted at a time
LARGEST_PART = 1 << 19  # of few queries
FEW = 1 << 10  # queries; fewer are not divided among threads, but the database is
FEW_CLASSES = 1 << 16  # that are grouped part by part
LARGE = 1 << 16  # words; an array of more is made as large as HUGE
HUGE = 1 << 19  # words; so large an array gets huge pages, which are ready much sooner
STEPS = 50  # of the progress that NumPy alone reports
WORDS = 1 << 28  # words compared in one block of work: a fraction of a second

Words = NDArray[np.uint64]  # (n_codes, n_words)
LevelCounts = NDArray[np.uint32]  # (n_queries, n_levels, n_bits + 1)


def count_codes(
    queries: Codes,
    database: Codes,
    relevance: Relevance,
    n_threads: int | None,
    progress: Progress | None,
) -> NDArray[np.uint32]:
    """Counts ``(n_queries, n_bits + 1, n_levels)`` over the whole database.

    Small work needs no compiled code; see :mod:`bittern.kernels.small`.
    """
    _check(queries, database, relevance)
    n_threads = available_threads(n_threads)
    counts = np.zeros((len(queries), relevance.n_levels, queries.n_bits + 1), np.uint32)
    if small.is_small_scan(queries.words, database.words, small.COUNTING):
        _count_few(queries.words, database.words, relevance, counts, progress)
    else:
        _count_many(queries.words, database.words, relevance, counts, n_threads, progress)
    return counts.transpose(0, 2, 1)


def _count_few(
    queries: Words,
    database: Words,
    relevance: Relevance,
    counts: LevelCounts,
    progress: Progress | None,
) -> None:
    """Fill the counts by NumPy alone."""
    step = -(-len(queries) // STEPS)
    for q, row in enumerate(small.distance_rows(queries, database)):
        small.count_levels(row, *relevance.relevant_to(q), counts[q])
        if progress is not None and (q + 1) % step == 0:
            progress((q + 1) * len(database), len(queries) * len(database))
    if relevance.excluded is not None:
        rows, levels = _excluded_levels(relevance)
        differing = queries[rows] ^ database[relevance.excluded[rows]]
        distances = np.bitwise_count(differing).sum(axis=1, dtype=np.intp)
        counts[rows, levels[rows], distances] -= 1


def _count_many(
    queries: Words,
    database: Words,
    relevance: Relevance,
    counts: LevelCounts,
    n_threads: int,
    progress: Progress | None,
) -> None:
    """Add to the counts by kernels.

    Queries with the same relevant items are put side by side, because kernels count several
    together.
    """
    order = relevance.query_order()
    grouped, words = relevance.take(order), queries[order]
    ordered = np.zeros_like(counts)
    parts = _even_parts(len(database), n_threads)
    by_parts = len(queries) <= FEW and len(parts) > 1
    count_all = _count_in_parts if by_parts else _count_in_blocks
    count_all(words, database, grouped, ordered, n_threads, progress)
    _move_listed(grouped, words, database, ordered)
    _remove_excluded(grouped, words, database, ordered)
    counts[order] = ordered


def _count_in_parts(
    queries: Words,
    database: Words,
    relevance: Relevance,
    counts: LevelCounts,
    n_threads: int,
    progress: Progress | None,
) -> None:
    """Count few queries: threads share the parts of the database, and prepare them too."""
    counter_of = COUNTERS[type(relevance)]
    lock, done = Lock(), 0

    def count(part: slice) -> None:
        own = np.zeros_like(counts)
        counter_of(relevance, queries, database, part, own)(slice(None))
        with lock:
            counts[:] += own

    def after(part: slice) -> None:
        nonlocal done
        done += len(queries) * (part.stop - part.start)
        if progress is not None:
            progress(done, len(queries) * len(database))

    run_blocks(count, _even_parts(len(database), n_threads), n_threads, after)


def _even_parts(n: int, n_threads: int) -> list[slice]:
    """Parts of the database, as many for each thread; one if there are few items."""
    each = -(-n // (n_threads * LARGEST_PART)) if n > PART else 0
    n_parts = max(1, each * n_threads)
    ends = np.linspace(0, n, n_parts + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _count_in_blocks(
    queries: Words,
    database: Words,
    relevance: Relevance,
    counts: LevelCounts,
    n_threads: int,
    progress: Progress | None,
) -> None:
    """Count part by part of the database; threads share the blocks of queries of each part."""
    counter_of = COUNTERS[type(relevance)]
    done = 0
    for start in range(0, len(database), PART):
        part = slice(start, min(len(database), start + PART))
        size = part.stop - part.start
        count = counter_of(relevance, queries, database, part, counts)

        def after(rows: slice, size: int = size) -> None:
            nonlocal done
            done += (rows.stop - rows.start) * size
            if progress is not None:
                progress(done, len(queries) * len(database))

        blocks = _query_blocks(len(queries), size * queries.shape[1], n_threads)
        run_blocks(count, blocks, n_threads, after)


def _class_counter(
    relevance: ClassRelevance, queries: Words, database: Words, part: slice, counts: LevelCounts
) -> Callable[[slice], None]:
    """Count a part of the database grouped by class: each query's class is a range of it.

    For few queries only the part is grouped; for many the whole database, once.
    """
    n_classes = relevance.groups.n_classes
    if n_classes > FEW_CLASSES or (len(queries) > FEW and len(database) > PART):
        planes = _word_planes(database, relevance.order[part])
        bounds = np.clip(relevance.offsets, part.start, part.stop) - part.start
    else:
        from bittern.kernels.grouping import group_words

        words, bounds = database[part], np.empty(n_classes + 1, np.int64)
        room = np.empty(max(words.size, HUGE) if words.size > LARGE else words.size, np.uint64)
        planes = room[: words.size].reshape(words.shape[::-1])
        group_words(words, relevance.groups.classes[part], bounds, planes)
    return _range_counter(relevance, queries, planes, bounds, counts)


def _range_counter(
    relevance: ClassRelevance,
    queries: Words,
    planes: Words,
    bounds: NDArray[np.int64],
    counts: LevelCounts,
) -> Callable[[slice], None]:
    """Count items that are grouped by class; class c begins at ``bounds[c]``."""
    c = relevance.query_classes
    starts, stops = np.where(c >= 0, bounds[c], 0), np.where(c >= 0, bounds[c + 1], 0)
    tiles = tiles_for(planes)

    def count(rows: slice) -> None:
        count_ranges(queries[rows], planes, starts[rows], stops[rows], counts[rows], tiles)

    return count


def _tag_counter(
    relevance: TagRelevance, queries: Words, database: Words, part: slice, counts: LevelCounts
) -> Callable[[slice], None]:
    """Count a part of the database grouped by sets of tags: each set is a category."""
    order = relevance.order[part]
    planes = _word_planes(database, order)
    first, last = relevance.sets[order[0]], relevance.sets[order[-1]]
    sets = relevance.sets[order] - first
    starts = np.concatenate(([0], np.cumsum(np.bincount(sets))))
    categories, masks = sets.astype(np.uint32), relevance.masks[:, first : last + 1].copy()
    tiles = tiles_for(planes, by_category=True)

    def count(rows: slice) -> None:
        count_categories(
            queries[rows],
            planes,
            categories,
            starts,
            relevance.query_masks[rows],
            masks,
            relevance.graded,
            counts[rows],
            tiles,
        )

    return count


def _sparse_counter(
    relevance: SparseRelevance, queries: Words, database: Words, part: slice, counts: LevelCounts
) -> Callable[[slice], None]:
    """Count a part of the database as not relevant; :func:`_move_listed` corrects it."""
    planes = _word_planes(database, part)
    nothing = np.zeros(relevance.n_queries, np.int64)
    tiles = tiles_for(planes)

    def count(rows: slice) -> None:
        count_ranges(queries[rows], planes, nothing[rows], nothing[rows], counts[rows], tiles)

    return count


# For each kind of ground truth, how to prepare a part of the database: the result adds that part
# to the counts of a slice of queries.  Parts are slices of the database in the order that suits
# the kind, and cover it once.
COUNTERS: dict[type[Relevance], Callable[..., Callable[[slice], None]]] = {
    ClassRelevance: _class_counter,
    TagRelevance: _tag_counter,
    SparseRelevance: _sparse_counter,
}


def _move_listed(
    relevance: Relevance, queries: Words, database: Words, counts: LevelCounts
) -> None:
    """Move the listed items, so far counted as not relevant, to their levels."""
    if isinstance(relevance, SparseRelevance):
        from bittern.kernels.count import portable

        r = relevance
        portable.move_listed(queries, database, r.offsets, r.items, r.levels, counts)


def _remove_excluded(
    relevance: Relevance, queries: Words, database: Words, counts: LevelCounts
) -> None:
    """Take each query's own item out of its counts."""
    if relevance.excluded is not None:
        from bittern.kernels.count import portable

        _, levels = _excluded_levels(relevance)
        portable.remove_listed(queries, database, relevance.excluded, levels, counts)


def _excluded_levels(relevance: Relevance) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Queries that are items themselves; and for each query the level of that item, or 0."""
    own = np.full(relevance.n_queries, -1) if relevance.excluded is None else relevance.excluded
    levels = np.zeros(relevance.n_queries, np.intp)
    rows = np.flatnonzero(own >= 0)
    levels[rows] = relevance.levels_of(rows, own[rows])
    return rows, levels


def _word_planes(words: Words, rows: Any) -> Words:
    """``(n_words, n_rows)``: word w of the chosen rows; a view if a code has one word."""
    if words.shape[1] == 1:
        plane = words.reshape(-1)
        # Positions are within bounds, and not looking is faster.
        taken = plane[rows] if isinstance(rows, slice) else np.take(plane, rows, mode="clip")
        return taken[None]
    return np.ascontiguousarray(words[rows].T)


def _query_blocks(n_queries: int, n_words: int, n_threads: int) -> list[slice]:
    """Slices of queries: small enough to stop quickly, and enough for all threads.

    A block is a multiple of twelve, because kernels take three or four queries together.
    """
    fair = -(-n_queries // n_threads)
    step = max(12, -(-min(fair, WORDS // n_words) // 12) * 12)
    return [slice(start, min(n_queries, start + step)) for start in range(0, n_queries, step)]


def _check(queries: Codes, database: Codes, relevance: Relevance) -> None:
    check_type(queries, Codes, "TieProfile: queries")
    check_type(database, Codes, "TieProfile: database")
    check_type(relevance, Relevance, "TieProfile: relevance")
    if queries.n_bits != database.n_bits:
        raise InputError(
            "TieProfile: queries and database must have codes of the same length, "
            f"got {queries.n_bits} and {database.n_bits} bits."
        )
    n_queries, n_database = len(queries), len(database)
    if (relevance.n_queries, relevance.n_database) != (n_queries, n_database):
        raise InputError(
            f"TieProfile: the ground truth has {relevance.n_queries} queries and "
            f"{relevance.n_database} items, but the codes have {n_queries} and {n_database}."
        )
    if n_queries == 0 or n_database == 0:
        raise InputError(
            f"TieProfile: needs at least one query and one item, got {n_queries} and {n_database}."
        )
    if n_database >= 1 << 32:
        raise InputError(
            f"TieProfile: a database must have fewer than 2^32 items, got {n_database}; "
            "count shards of it and add them."
        )
