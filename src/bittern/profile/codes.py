"""Counts from codes: every query against the whole database, over threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_type
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.parallel import Progress, available_threads, run_blocks
from bittern.relevance.base import Relevance

__all__ = ["count_codes"]

PART = 1 << 18  # database items counted at a time
WORDS = 1 << 28  # words compared in one block of work: a fraction of a second


def count_codes(
    queries: Codes,
    database: Codes,
    relevance: Relevance,
    n_threads: int | None,
    progress: Progress | None,
) -> NDArray[np.uint32]:
    """Counts ``(n_queries, n_bits + 1, n_levels)`` over the whole database."""
    check_type(queries, Codes, "TieProfile: queries")
    check_type(database, Codes, "TieProfile: database")
    check_type(relevance, Relevance, "TieProfile: relevance")
    if queries.n_bits != database.n_bits:
        raise InputError(
            "TieProfile: queries and database must have codes of one length, "
            f"got {queries.n_bits} and {database.n_bits} bits."
        )
    _check_sizes(relevance, len(queries), len(database))
    order = relevance.query_order()
    grouped, words = relevance.take(order), queries.words[order]
    counts = np.zeros((len(queries), relevance.n_levels, queries.n_bits + 1), np.uint32)
    n_threads, done = available_threads(n_threads), 0
    for start in range(0, len(database), PART):
        part = slice(start, min(len(database), start + PART))
        work = grouped.counter(words, database.words, part, counts)
        work_each = (part.stop - part.start) * words.shape[1]
        blocks = _query_blocks(len(queries), work_each, n_threads)

        def after(rows: slice, size: int = part.stop - part.start) -> None:
            nonlocal done
            done += (rows.stop - rows.start) * size
            if progress is not None:
                progress(done, len(queries) * len(database))

        run_blocks(work, blocks, n_threads, after)
    grouped.finish(words, database.words, counts)
    ordered = np.empty_like(counts)
    ordered[order] = counts
    return ordered.transpose(0, 2, 1)


def _check_sizes(relevance: Relevance, n_queries: int, n_database: int) -> None:
    if (relevance.n_queries, relevance.n_database) != (n_queries, n_database):
        raise InputError(
            f"TieProfile: the ground truth is for {relevance.n_queries} queries and "
            f"{relevance.n_database} items, got {n_queries} and {n_database}."
        )
    if n_queries == 0 or n_database == 0:
        raise InputError(
            f"TieProfile: needs at least one query and one item, got {n_queries} and {n_database}."
        )
    if n_database >= 1 << 32:
        raise InputError("TieProfile: count shards of fewer than 2^32 items and add them.")


def _query_blocks(n_queries: int, n_words: int, n_threads: int) -> list[slice]:
    """Slices of queries: short enough to stop soon, enough for all threads.

    In whole dozens, for the kernels take queries by three or four.
    """
    fair = -(-n_queries // n_threads)
    step = max(12, -(-min(fair, WORDS // n_words) // 12) * 12)
    return [slice(start, min(n_queries, start + step)) for start in range(0, n_queries, step)]
