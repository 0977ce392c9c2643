"""Retrieval from examples: distance-weighted nearest neighbours, wanted and unwanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import (
    check_array,
    check_count,
    check_positions,
    check_same_length,
    check_vectors,
    row_blocks,
)
from bittern.errors import InputError
from bittern.parallel import Progress, available_threads, run_blocks

__all__ = ["Ranking", "draw_negatives", "rank_by_examples", "similarities", "similarity"]

Positions: TypeAlias = NDArray[np.int64]

K = 40  # examples that count; the paper does not tell its number
EPSILON = 1e-6
MEMORY = 1 << 26  # octets of distances that a thread holds at once


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
    r"""How much each database row is like the positive examples, and unlike the negative ones.

    .. math::

        \mathrm{Sim}(Q, T) = \frac{\sum_{q \in Q} (d(T, q) + \varepsilon)^{-1}}
            {\sum_{n \in N} (d(T, n) + \varepsilon)^{-1} + \varepsilon}

    where d is the L1 distance to the ``power``, and Q and N are those of the positive and of the
    negative examples that are among the k nearest to T of both together (all, if there are fewer).
    Of equally near examples, positive ones go before negative ones, and each in the order given.
    An item whose k nearest are all negative has similarity 0.

    The three arguments are vectors ``(n, dim)`` of one feature; a value for each database row comes
    back.

    Reference: 2.2 of [Yavlinsky-2004], where the power is 1, and 3 for the bag of words; the
    default k is ours.
    """
    wanted, unwanted = (
        check_vectors(rows, f"similarity: {name}")
        for rows, name in ((positives, "positives"), (negatives, "negatives"))
    )
    check_same_length(wanted.shape[1], unwanted.shape[1], "similarity: dimensions of examples")
    pool = np.concatenate([wanted, unwanted])
    first, second = np.arange(len(wanted)), np.arange(len(wanted), len(pool))
    return similarities(
        first[None], second[None], pool, database, k=k, power=power, epsilon=epsilon
    )[0]


def rank_by_examples(
    positives: ArrayLike,
    negatives: ArrayLike,
    database: ArrayLike,
    *,
    k: int = K,
    power: float = 1.0,
    epsilon: float = EPSILON,
) -> Ranking:
    """The database from most to least like the examples, by :func:`similarity`.

    Equally similar items stand in the order of the database.

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

    ``positives`` has the positions in ``pool`` of each query's examples: a list of arrays, or rows
    of one length where -1 stands for none.  ``negatives`` is ``(n_queries, n_negatives)`` positions
    in ``pool``, as :func:`draw_negatives` gives them.  Distances are in single precision, and that
    of an example and an item is computed once for all queries.
    """
    wanted, offsets = _listed(positives)
    unwanted = check_array(negatives, "similarities: negatives")
    check_count(k, "similarities: k")
    _check_number(power, "similarities: power")
    _check_number(epsilon, "similarities: epsilon")
    examples, items = _singles(pool, "pool"), _singles(database, "database")
    check_same_length(
        examples.shape[1], items.shape[1], "similarities: dimensions of pool and database"
    )
    if unwanted.ndim != 2 or len(unwanted) != len(offsets) - 1 or unwanted.dtype.kind not in "iu":
        raise InputError(
            f"similarities: negatives must be positions ({len(offsets) - 1}, n_negatives), "
            f"got {unwanted.dtype} of shape {unwanted.shape}."
        )
    wanted = check_positions(wanted, "similarities: positives", len(examples))
    flat = check_positions(unwanted.ravel(), "similarities: negatives", len(examples))
    used, place = np.unique(np.concatenate([wanted, flat]), return_inverse=True)
    queries = place[: len(wanted)], offsets, place[len(wanted) :].reshape(unwanted.shape)
    examples = np.ascontiguousarray(examples[used])
    out = np.empty((len(unwanted), len(items)))

    def work(some: slice) -> None:
        from bittern.kernels.examples import city_block, nearest_examples

        distances = np.empty((some.stop - some.start, len(examples)), np.float32)
        city_block(items[some], examples, distances)
        closeness = 1.0 / (distances.astype(np.float64) ** power + epsilon)
        nearest_examples(closeness, *queries, k, epsilon, out[:, some])

    blocks = _blocks(len(items), len(examples), available_threads(n_threads))
    done: list[int] = [0]

    def tell(some: slice) -> None:
        done[0] += some.stop - some.start
        if progress is not None:
            progress(done[0], len(items))

    run_blocks(work, blocks, n_threads, tell)
    return out


def draw_negatives(
    positives: ArrayLike | Sequence[ArrayLike],
    candidates: ArrayLike,
    n_negatives: int = 100,
    *,
    random_state: int | None = 0,
) -> Positions:
    """Positions of negative examples for each query, drawn at random from the candidates.

    No example comes twice in a row, or is among the query's own positives, which are as in
    :func:`similarities`.  The rows are ``(n_queries, n_negatives)``; the default number is ours.
    """
    wanted, offsets = _listed(positives)
    given = np.unique(check_array(candidates, "draw_negatives: candidates"))
    if given.dtype.kind not in "iu":
        raise InputError(f"draw_negatives: candidates must be positions, got {given.dtype}.")
    check_count(n_negatives, "draw_negatives: n_negatives")
    rng = np.random.default_rng(random_state)
    out = np.empty((len(offsets) - 1, n_negatives), np.int64)
    for q, row in enumerate(out):
        others = np.setdiff1d(given, wanted[offsets[q] : offsets[q + 1]], assume_unique=True)
        if len(others) < n_negatives:
            raise InputError(
                f"draw_negatives: query {q} leaves {len(others)} candidates, "
                f"fewer than n_negatives = {n_negatives}."
            )
        row[:] = rng.choice(others, n_negatives, replace=False)
    return out


def _listed(positives: Any) -> tuple[Positions, Positions]:
    """All positions in one array, and where each query's begin."""
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
            raise InputError(f"positives must hold an example of every query, {q} has none.")
    if not there:
        raise InputError("positives must hold at least one query, got none.")
    return np.concatenate(there), np.concatenate([[0], np.cumsum([len(row) for row in there])])


def _singles(vectors: ArrayLike, name: str) -> NDArray[np.float32]:
    return check_vectors(vectors, f"similarities: {name}").astype(np.float32, copy=False)


def _check_number(value: float, name: str) -> None:
    if not 0 < value < np.inf:
        raise InputError(f"{name} must be a number above 0, got {value!r}.")


def _blocks(n_items: int, n_examples: int, n_threads: int) -> list[slice]:
    """Blocks of items that bound the memory and are enough for every thread, with some to spare."""
    row = 12 * n_examples
    share = -(-n_items // (4 * n_threads))
    return row_blocks(n_items, row, min(MEMORY, row * share))
