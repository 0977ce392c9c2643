"""Audit: what an engine found, compared with the exact answer, ties counted fairly."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import (
    check_array,
    check_choice,
    check_count,
    check_ids,
    check_number,
    check_same_length,
    check_share,
)
from bittern.codes import Codes
from bittern.engines.audit_record import Audit
from bittern.engines.exact import (
    ExactAnswer,
    Integers,
    answer_by_codes,
    answer_by_shards,
    answer_by_vectors,
)
from bittern.engines.hit_files import read_hits, to_hits
from bittern.engines.reported import compare_reported
from bittern.errors import InputError
from bittern.index.hits import NONE, Hits
from bittern.scale.evaluating import check_codes
from bittern.scale.shards import Shards

METRICS = ("euclidean", "cosine")
TOLERANCE = 1e-5  # of real distances: engines compute them in single precision

Places = str | os.PathLike[str]


def audit(
    queries: Codes | ArrayLike,
    database: Codes | Shards | Places | ArrayLike,
    hits: Hits | Places | ArrayLike | tuple[ArrayLike, ArrayLike],
    *,
    k: int | None = None,
    radius: float | None = None,
    ids: ArrayLike | None = None,
    metric: str | None = None,
    tolerance: float | None = None,
    executor: Executor | None = None,
) -> Audit:
    """Compare what any engine found with the exact answer.

    ``queries`` and ``database`` are codes, or vectors with the ``metric`` ``"euclidean"`` or
    ``"cosine"`` (1 - cos); the database may also be a folder of shards, which ``executor`` counts
    (see :mod:`bittern.scale`).  ``ids`` are those of the items, by default their positions, or what
    the shards say.

    ``hits`` are ``Hits``, ids ``(n_queries, k)`` with -1 for an empty place, a pair of ids and
    reported distances, or a file of one of these (see :func:`read_hits`).  They answer a search
    for the ``k`` nearest, by default as many as the longest list has; or for all within
    ``radius``; or, with both, for the k nearest of these.

    Real distances within a relative ``tolerance`` (1e-5, unless given) of the last one of an answer
    are tied with it.  No queries × database matrix is formed.

    >>> import bittern as bt
    >>> database = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1], [1, 1, 0]])
    >>> found = bt.audit(bt.Codes.from_bits([[0, 0, 0]]), database, [[0, 2]])
    >>> found.recall.tolist(), found.expected_recall.tolist()
    ([1.0], [0.75])
    """
    if not isinstance(queries, Codes):
        queries = check_array(queries, "audit: queries")
    n_queries = _n_rows(queries, "queries")
    if n_queries == 0:
        raise InputError("audit: there are no queries.")
    if isinstance(hits, str | os.PathLike):
        hits = read_hits(hits, n_queries)
    lists = to_hits(hits)
    check_same_length(len(lists), n_queries, "audit: the numbers of lists of hits and of queries")
    k, radius = _check_search(lists, k, radius)
    if radius is not None and isinstance(queries, Codes):
        radius = float(int(radius))  # distances are whole, so that a fraction changes nothing
    query, found, values = _first(lists, k)
    options: dict[str, Any] = {"ids": ids, "metric": metric, "executor": executor}
    tolerance = _check_tolerance(tolerance, is_real=not isinstance(queries, Codes))
    exact = _exact(queries, database, (query, found), k, radius, tolerance, options)
    n_bits = queries.n_bits if isinstance(queries, Codes) else None
    counts = _count_hits(query, found, exact, tolerance)
    return Audit(
        n_items=exact.n_items,
        k=k,
        radius=radius,
        metric="hamming" if n_bits is not None else str(metric),
        limits=exact.limits,
        nearer=exact.nearer,
        tied=exact.tied,
        needed=exact.needed,
        reported=compare_reported(values, exact.distances, n_bits, tolerance),
        **counts,
    )


def _n_rows(rows: Any, name: str) -> int:
    """The number of codes or of vectors."""
    if isinstance(rows, Codes):
        return len(rows)
    return len(np.atleast_1d(check_array(rows, f"audit: {name}")))


def _check_search(
    lists: Hits, k: int | None, radius: float | None
) -> tuple[int | None, float | None]:
    """What was searched for; by default the number of hits in the longest list."""
    if radius is not None:
        radius = check_number(radius, "audit: radius", least=0)
    if k is None and radius is None:
        k = lists.ids.shape[1] if lists.offsets is None else int(lists.sizes.max(initial=0))
        if k == 0:
            raise InputError("audit: there are no hits; give k, the number that was asked for.")
    return None if k is None else check_count(k, "audit: k"), radius


def _check_tolerance(tolerance: float | None, *, is_real: bool) -> float:
    if not is_real:
        if tolerance is not None:
            raise InputError("audit: tolerance is for vectors; distances of codes are exact.")
        return 0.0
    return TOLERANCE if tolerance is None else check_share(tolerance, "audit: tolerance")


def _exact(
    queries: Any,
    database: Any,
    hits: tuple[Integers, Integers],
    k: int | None,
    radius: float | None,
    tolerance: float,
    options: dict[str, Any],
) -> ExactAnswer:
    """The exact answer, by what the database is."""
    ids, metric, executor = options["ids"], options["metric"], options["executor"]
    whole = None if radius is None else int(radius)
    if isinstance(database, Shards | str | os.PathLike):
        if not isinstance(queries, Codes) or metric is not None or ids is not None:
            raise InputError("audit: shards are searched by codes, and have ids of their own.")
        shards = check_codes(Shards.open(database), queries)
        return answer_by_shards(queries, shards, hits, k, whole, executor)
    if executor is not None:
        raise InputError("audit: executor is for a folder of shards.")
    checked = _check_item_ids(ids, _n_rows(database, "the database"))
    if isinstance(queries, Codes) and isinstance(database, Codes):
        if metric is not None:
            raise InputError("audit: metric is for vectors; codes have Hamming distances.")
        if queries.n_bits != database.n_bits:
            raise InputError(
                f"audit: queries have {queries.n_bits} bits, the database {database.n_bits}."
            )
        if len(database) == 0:
            raise InputError("audit: the database is empty.")
        return answer_by_codes(queries, database, hits, k, whole, checked)
    if isinstance(queries, Codes) or isinstance(database, Codes):
        raise InputError("audit: queries and database must be both codes or both vectors.")
    if metric is None:
        raise InputError("audit: vectors need a metric, 'euclidean' or 'cosine'.")
    check_choice(metric, "audit: metric", METRICS)
    return answer_by_vectors(queries, database, hits, k, radius, checked, metric, tolerance)


def _check_item_ids(ids: ArrayLike | None, n: int) -> Integers | None:
    if ids is None:
        return None
    checked = check_ids(ids, "audit: ids")
    check_same_length(len(checked), n, "audit: the numbers of ids and of items")
    if len(np.unique(checked)) < n:
        raise InputError("audit: ids must be distinct.")
    return checked


def _first(lists: Hits, k: int | None) -> tuple[Integers, Integers, NDArray[np.float64]]:
    """Query, id and reported value of the first k hits of each query, without empty places."""
    if lists.offsets is None:
        there = lists.ids != NONE
        query = np.nonzero(there)[0]
        ids, values = lists.ids[there], lists.distances[there]
    else:
        query = np.repeat(np.arange(len(lists)), lists.sizes)
        there = lists.ids != NONE
        query, ids, values = query[there], lists.ids[there], lists.distances[there]
    if k is not None:
        rank = np.arange(len(query)) - np.searchsorted(query, query)
        query, ids, values = query[rank < k], ids[rank < k], values[rank < k]
    return query.astype(np.int64), ids, values.astype(np.float64)


def _count_hits(
    query: Integers, ids: Integers, exact: ExactAnswer, tolerance: float
) -> dict[str, Integers]:
    """Hits of each query by what they are."""
    n, distances = len(exact.needed), exact.distances
    is_known = ~np.isnan(distances)
    is_repeated = np.zeros(len(ids), np.bool_)
    order = np.lexsort((ids, query))  # stable, so that the first of equals is not repeated
    again = (np.diff(ids[order]) == 0) & (np.diff(query[order]) == 0)
    is_repeated[order[1:][again]] = True
    counts = is_known & ~is_repeated
    limits = exact.limits[query]
    is_tied = counts & (np.abs(distances - limits) <= tolerance * limits)
    is_nearer = counts & (distances < limits) & ~is_tied
    d, q = distances[counts], query[counts]
    is_before = (d[1:] < d[:-1] * (1 - tolerance)) & (q[1:] == q[:-1])
    each = {
        "found_nearer": query[is_nearer],
        "found_tied": query[is_tied],
        "returned": query,
        "repeated": query[is_repeated & is_known],
        "unknown": query[~is_known],
        "unordered": q[1:][is_before],
    }
    return {name: np.bincount(which, minlength=n) for name, which in each.items()}
