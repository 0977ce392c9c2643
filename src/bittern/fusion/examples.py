"""Retrieval from positive and negative examples by distance-weighted nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import (
    check_array,
    check_count,
    check_number,
    check_positions,
    check_same_length,
    check_vectors,
    row_blocks,
)
from bittern.errors import InputError
from bittern.parallel import Progress, available_threads, run_blocks

Positions: TypeAlias = NDArray[np.int64]

K = 40  # nearest examples that count; the paper does not give its number
EPSILON = 1e-6
MEMORY = 1 << 26  # bytes of distances that a thread holds at once


class Ranking(NamedTuple):
    """Database positions, best first, and the score of each."""

    positions: NDArray[np.intp]  # (n_database,)
    scores: NDArray[np.float64]  # (n_database,), descending


def similarity(
    positives: ArrayLike,
    negatives: ArrayLike,
    database: ArrayLike,
    *,
    k: int = K,
    power: float = 1.0,
    epsilon: float = EPSILON,
) -> NDArray[np.float64]:
    r"""How similar each database row is to the positive examples and not to the negative ones.

    .. math::

        \mathrm{Sim}(Q, T) = \frac{\sum_{q \in Q} (d(T, q) + \varepsilon)^{-1}}
            {\sum_{n \in N} (d(T, n) + \varepsilon)^{-1} + \varepsilon}

    where d is the L1 distance raised to ``power``.  The k examples nearest to T, positive and
    negative together, are split into positive ones Q and negative ones N.  Of equally near
    examples, positive ones come before negative ones, and each kind in the given order.  An item
    whose k nearest examples are all negative has similarity 0.

    The three arguments are vectors ``(n, dim)`` of one feature; the result has one value for each
    database row.

    Reference: 2.2 of [Yavlinsky-2004], where the power is 1, and 3 for the bag of words; the
    default k is ours.
    """
    positive = check_vectors(positives, "similarity: positives")
    negative = check_vectors(negatives, "similarity: negatives")
    check_same_length(positive.shape[1], negative.shape[1], "similarity: dimensions of examples")
    pool, n = np.concatenate([positive, negative]), len(positive)
    first, second = np.arange(n)[None], np.arange(n, len(pool))[None]
    return similarities(first, second, pool, database, k=k, power=power, epsilon=epsilon)[0]


def rank_by_examples(
    positives: ArrayLike,
    negatives: ArrayLike,
    database: ArrayLike,
    *,
    k: int = K,
    power: float = 1.0,
    epsilon: float = EPSILON,
) -> Ranking:
    """The database ranked by :func:`similarity`; equally similar items keep their order.

    >>> import bittern as bt
    >>> database = [[0.0, 0.1], [0.9, 1.0], [1.0, 1.0]]
    >>> bt.fusion.rank_by_examples([[1.0, 1.0]], [[0.0, 0.0]], database).positions.tolist()
    [2, 1, 0]
    """
    scores = similarity(positives, negatives, database, k=k, power=power, epsilon=epsilon)
    order = np.argsort(-scores, kind="stable")
    return Ranking(order, scores[order])


def similarities(
    positives: ArrayLike | Sequence[ArrayLike],
    negatives: ArrayLike,
    pool: ArrayLike,
    database: ArrayLike,
    *,
    k: int = K,
    power: float = 1.0,
    epsilon: float = EPSILON,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """:func:`similarity` of many queries to every database row, ``(n_queries, n_database)``.

    ``positives`` holds the positions in ``pool`` of each query's examples: a list of arrays, or
    rows of one length padded with -1.  ``negatives`` is ``(n_queries, n_negatives)`` positions in
    ``pool``, as :func:`draw_negatives` returns them.  Distances are in single precision; that of
    an example and an item is computed once for all queries.
    """
    positive, offsets = flattened(positives)
    negative = check_negatives(negatives, len(offsets) - 1, "similarities")
    check_count(k, "similarities: k")
    check_number(power, "similarities: power", above=0)
    check_number(epsilon, "similarities: epsilon", above=0)
    examples, items = _float32(pool, "pool"), _float32(database, "database")
    check_same_length(
        examples.shape[1], items.shape[1], "similarities: dimensions of pool and database"
    )
    positive = check_positions(positive, "similarities: positives", len(examples))
    flat = check_positions(negative.ravel(), "similarities: negatives", len(examples))
    used, place = np.unique(np.concatenate([positive, flat]), return_inverse=True)
    queries = place[: len(positive)], offsets, place[len(positive) :].reshape(negative.shape)
    examples = np.ascontiguousarray(examples[used])
    out = np.empty((len(negative), len(items)))

    def work(some: slice) -> None:
        from bittern.kernels.fusion import city_block, nearest_examples

        distances = np.empty((some.stop - some.start, len(examples)), np.float32)
        city_block(items[some], examples, distances)
        closeness = 1.0 / (distances.astype(np.float64) ** power + epsilon)
        nearest_examples(closeness, *queries, k, epsilon, out[:, some])

    blocks = _blocks(len(items), len(examples), available_threads(n_threads))
    done = 0

    def report(some: slice) -> None:
        nonlocal done
        done += some.stop - some.start
        if progress is not None:
            progress(done, len(items))

    run_blocks(work, blocks, n_threads, report)
    return out


def draw_negatives(
    positives: ArrayLike | Sequence[ArrayLike],
    candidates: ArrayLike,
    n_negatives: int = 100,
    *,
    random_state: int | None = 0,
) -> Positions:
    """Positions ``(n_queries, n_negatives)`` of negative examples, drawn from the candidates.

    The examples of a query are distinct and exclude its own positives, which are given as in
    :func:`similarities`.  The default number is ours.
    """
    positive, offsets = flattened(positives)
    given = np.unique(check_array(candidates, "draw_negatives: candidates"))
    if given.dtype.kind not in "iu":
        raise InputError(f"draw_negatives: candidates must be positions, got {given.dtype}.")
    check_count(n_negatives, "draw_negatives: n_negatives")
    rng = np.random.default_rng(random_state)
    out = np.empty((len(offsets) - 1, n_negatives), np.int64)
    for q, row in enumerate(out):
        others = np.setdiff1d(given, positive[offsets[q] : offsets[q + 1]], assume_unique=True)
        if len(others) < n_negatives:
            raise InputError(
                f"draw_negatives: query {q} leaves {len(others)} candidates, "
                f"fewer than n_negatives = {n_negatives}."
            )
        row[:] = rng.choice(others, n_negatives, replace=False)
    return out


def flattened(positives: Any) -> tuple[Positions, Positions]:
    """All positions in one array, and the offset of each query's."""
    rows = list(positives)
    listed = [check_array(row, "positives") for row in rows]
    for q, row in enumerate(listed):
        if row.ndim != 1 or row.dtype.kind not in "iu":
            raise InputError(
                f"positives must be 1-D arrays of positions, query {q} has "
                f"{row.dtype} of shape {row.shape}."
            )
    there = [row[row != -1].astype(np.int64) for row in listed]
    for q, row in enumerate(there):
        if not len(row):
            raise InputError(f"positives must hold an example of every query, query {q} has none.")
    if not there:
        raise InputError("positives must hold at least one query, got none.")
    return np.concatenate(there), np.concatenate([[0], np.cumsum([len(row) for row in there])])


def check_negatives(negatives: ArrayLike, n_queries: int, owner: str) -> NDArray[Any]:
    """``negatives`` as an array of positions with one row for each query."""
    given = check_array(negatives, f"{owner}: negatives")
    if given.ndim != 2 or len(given) != n_queries or given.dtype.kind not in "iu":
        raise InputError(
            f"{owner}: negatives must be positions ({n_queries}, n_negatives), "
            f"got {given.dtype} of shape {given.shape}."
        )
    return given


def _float32(vectors: ArrayLike, name: str) -> NDArray[np.float32]:
    return check_vectors(vectors, f"similarities: {name}").astype(np.float32, copy=False)


def _blocks(n_items: int, n_examples: int, n_threads: int) -> list[slice]:
    """Blocks of items that bound the memory, several for each thread."""
    row = 12 * n_examples
    share = -(-n_items // (4 * n_threads))
    return row_blocks(n_items, row, min(MEMORY, row * share))
