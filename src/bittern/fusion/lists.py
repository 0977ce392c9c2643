"""Fusing ranked lists: results of searches, and TREC runs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_array, check_type
from bittern.errors import InputError
from bittern.index.hits import Hits
from bittern.io.trec import Run

RankedList: TypeAlias = tuple[ArrayLike, ArrayLike]  # ids and scores of one query


@dataclass(frozen=True, slots=True, eq=False)
class FusedLists:
    """One list for each query, best first; equal scores are ordered by id.

    ``missing[s]`` counts the pairs of a query and an item that only other sources have.
    """

    ids: list[NDArray[Any]]
    scores: list[Float64Array]
    missing: NDArray[np.int64]  # (sources,)


@dataclass(frozen=True, slots=True, eq=False)
class FusedRun:
    """A fused run, and what the single runs lack.

    ``missing[s]`` counts the pairs of a query and a document that only other runs have, and
    ``missing_queries[s]`` the queries for which run s has nothing.
    """

    run: Run
    missing: NDArray[np.int64]  # (runs,)
    missing_queries: NDArray[np.int64]  # (runs,)


def fuse_lists(
    lists: Sequence[Sequence[RankedList]],
    method: str = "comb-sum",
    *,
    normalise: str | None = None,
    weights: ArrayLike | None = None,
) -> FusedLists:
    """Fuse the lists that several sources have for each query.

    ``lists[s][q]`` is the ids and the scores, larger is better, of source s for query q: each id
    once, in any order, possibly empty.  The items of a query are those of all its lists; an item
    that a source lacks counts as not retrieved by it.  ``method`` is a name in ``FUSIONS``, and
    ``normalise`` defaults to the method's own.

    >>> import bittern as bt
    >>> first, second = ([4, 7], [0.9, 0.1]), ([7, 8], [2.0, 1.0])
    >>> fused = bt.fusion.fuse_lists([[first], [second]], "comb-sum", normalise="minmax")
    >>> fused.ids[0].tolist(), fused.scores[0].tolist(), fused.missing.tolist()
    ([4, 7, 8], [1.0, 1.0, 0.0], [1, 1])
    """
    if not lists or len({len(source) for source in lists}) != 1:
        raise InputError("fuse_lists: needs at least one source, all with the same queries.")
    from bittern.fusion import FUSIONS

    fuse = FUSIONS.find(method)
    given = {"weights": weights, "normalise": normalise}
    options: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    if unknown := sorted(options.keys() - inspect.signature(fuse).parameters.keys()):
        raise InputError(f"{method}: takes no {unknown[0]}.")
    ids: list[NDArray[Any]] = []
    scores: list[Float64Array] = []
    missing = np.zeros(len(lists), np.int64)
    for query in zip(*lists, strict=True):
        items, table = _table([_checked(*found) for found in query])
        missing += np.isnan(table).sum(axis=1)
        fused = fuse(table, **options) if len(items) else np.zeros(0)
        order = np.argsort(-fused, kind="stable")  # ties stay in the order of ids
        ids.append(items[order])
        scores.append(fused[order])
    return FusedLists(ids, scores, missing)


def fuse_hits(
    hits: Sequence[Hits],
    method: str = "comb-sum",
    *,
    normalise: str | None = None,
    weights: ArrayLike | None = None,
) -> FusedLists:
    """Fuse the hits of several indexes for the same queries, as :func:`fuse_lists` does.

    The score of an item is its negative distance.
    """
    for found in hits:
        check_type(found, Hits, "fuse_hits: every source")
    lists: list[list[RankedList]] = [
        [(ids, -distances) for ids, distances in (found[q] for q in range(len(found)))]
        for found in hits
    ]
    return fuse_lists(lists, method, normalise=normalise, weights=weights)


def fuse_runs(
    runs: Sequence[Run],
    method: str = "comb-sum",
    *,
    normalise: str | None = None,
    weights: ArrayLike | None = None,
) -> FusedRun:
    """Fuse TREC runs, as :func:`fuse_lists` does; the queries are those of all runs."""
    if not runs:
        raise InputError("fuse_runs: needs at least one run.")
    for run in runs:
        check_type(run, Run, "fuse_runs: every run")
    query_ids = np.unique(np.concatenate([run.query_ids for run in runs]))
    document_ids = np.unique(np.concatenate([run.document_ids for run in runs]))
    lists = [_by_query(run, query_ids, document_ids) for run in runs]
    fused = fuse_lists(lists, method, normalise=normalise, weights=weights)
    offsets = np.concatenate([[0], np.cumsum([len(items) for items in fused.ids])])
    whole = Run(
        query_ids,
        document_ids,
        offsets.astype(np.int64),
        np.concatenate(fused.ids).astype(np.int64),
        np.concatenate(fused.scores),
    )
    absent = [len(query_ids) - np.count_nonzero(np.diff(run.offsets)) for run in runs]
    return FusedRun(whole, fused.missing, np.array(absent, np.int64))


def _checked(ids: ArrayLike, scores: ArrayLike) -> tuple[NDArray[Any], Float64Array]:
    i, s = check_array(ids, "fuse_lists: ids"), check_array(scores, "fuse_lists: scores")
    if i.ndim != 1 or i.shape != s.shape:
        raise InputError(
            f"fuse_lists: ids and scores must be 1-D and equally long, got {i.shape} and {s.shape}."
        )
    if s.dtype.kind not in "fiub" or not np.isfinite(s).all():
        raise InputError("fuse_lists: scores must be finite numbers; leave out what is missing.")
    if len(np.unique(i)) != len(i):
        raise InputError("fuse_lists: a source must list an item only once per query.")
    return i, s.astype(np.float64)


def _table(found: list[tuple[NDArray[Any], Float64Array]]) -> tuple[NDArray[Any], Float64Array]:
    """All items in ascending order, and scores ``(sources, items)`` with NaN for missing ones."""
    there = [ids for ids, _ in found if len(ids)]
    items = np.unique(np.concatenate(there)) if there else np.zeros(0, np.int64)
    table = np.full((len(found), len(items)), np.nan)
    for row, (ids, scores) in zip(table, found, strict=True):
        if len(ids):
            row[np.searchsorted(items, ids)] = scores
    return items, table


def _by_query(
    run: Run, query_ids: NDArray[np.str_], document_ids: NDArray[np.str_]
) -> list[RankedList]:
    """For each of ``query_ids``, positions in ``document_ids`` and scores."""
    number = np.searchsorted(document_ids, run.document_ids)
    nothing = np.zeros(0, np.int64), np.zeros(0)
    lists: list[RankedList] = [nothing] * len(query_ids)
    for q, place in enumerate(np.searchsorted(query_ids, run.query_ids)):
        rows = slice(run.offsets[q], run.offsets[q + 1])
        lists[place] = number[run.documents[rows]], run.scores[rows]
    return lists
