"""Retrieval from positive and negative examples by a few features, chosen by boosting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import (
    Float64Array,
    check_count,
    check_positions,
    check_same_length,
    check_vectors,
    row_blocks,
)
from bittern.fusion.examples import check_negatives, flattened
from bittern.parallel import available_threads, run_blocks

N_ROUNDS = 20  # features of a classifier [Tieu-Viola-2000]


class Boosted(NamedTuple):
    """A classifier of a few features: each votes for an item on its positive side.

    Feature ``features[t]`` has ``weights[t]`` votes, and gives them to an item if ``signs[t]``
    times its value, in single precision, is above ``signs[t] * thresholds[t]``.
    """

    features: NDArray[np.int64]  # (rounds,) columns
    thresholds: Float64Array
    signs: Float64Array  # 1 or -1
    weights: Float64Array

    def scores(self, X: ArrayLike) -> Float64Array:
        """The votes for each row."""
        return _votes(self, check_vectors(X, "Boosted: X"))


def boost(positives: ArrayLike, negatives: ArrayLike, *, n_rounds: int = N_ROUNDS) -> Boosted:
    r"""Choose at most ``n_rounds`` features that tell the positive rows from the negative ones.

    A *weak classifier* looks at one feature and compares it with a threshold, half way between the
    means of the positive and of the negative rows.  At first, all positive rows together have half
    of the weight, and so have the negative rows.  Each round chooses the feature whose classifier
    has the least weighted error e, gives it

    .. math:: \alpha = \ln \frac{1 - e}{e}

    votes, and then scales the weights of the rows that it gets wrong, and of the others, to one
    half each.

    One feature can often separate a single positive row from all others, and its votes would be
    infinite.  So e counts as at least half of the least weight that a row has at first, no feature
    is chosen twice, and of features with equal errors the one whose means are farthest apart wins,
    in standard deviations of the negative rows.

    References: [Tieu-Viola-2000] for boosting in retrieval with 20 features, [Viola-Jones-2001] for
    the algorithm, where the threshold is the one of least error.  That one, and the details for few
    examples, are our choice.
    """
    positive = check_vectors(positives, "boost: positives")
    negative = check_vectors(negatives, "boost: negatives")
    check_same_length(positive.shape[1], negative.shape[1], "boost: dimensions of examples")
    check_count(n_rounds, "boost: n_rounds")
    pool = _float32(np.concatenate([positive, negative]))
    return _boost(pool, np.arange(len(positive)), np.arange(len(positive), len(pool)), n_rounds)


def boosted_scores(
    positives: ArrayLike | Sequence[ArrayLike],
    negatives: ArrayLike,
    pool: ArrayLike,
    database: ArrayLike,
    *,
    n_rounds: int = N_ROUNDS,
    n_threads: int | None = None,
) -> Float64Array:
    """The votes of each query's own classifier for every database row, ``(n_queries, n_database)``.

    Examples are given as for :func:`~bittern.fusion.similarities`; :func:`boost` explains the
    classifiers.
    """
    positive, offsets = flattened(positives)
    negative = check_negatives(negatives, len(offsets) - 1, "boosted_scores")
    check_count(n_rounds, "boosted_scores: n_rounds")
    examples = _float32(check_vectors(pool, "boosted_scores: pool"))
    items = check_vectors(database, "boosted_scores: database")
    check_same_length(
        examples.shape[1], items.shape[1], "boosted_scores: dimensions of pool and database"
    )
    positive = check_positions(positive, "boosted_scores: positives", len(examples))
    check_positions(negative.ravel(), "boosted_scores: negatives", len(examples))
    out = np.empty((len(negative), len(items)))

    def work(some: slice) -> None:
        for q in range(some.start, some.stop):
            own = positive[offsets[q] : offsets[q + 1]]
            out[q] = _votes(_boost(examples, own, negative[q], n_rounds), items)

    share = -(-len(out) // (4 * available_threads(n_threads)))
    run_blocks(work, row_blocks(len(out), 1, share), n_threads)
    return out


def _boost(pool: NDArray[np.float32], positives: Any, negatives: Any, n_rounds: int) -> Boosted:
    from bittern.kernels import boosting

    features = np.empty(n_rounds, np.int64)
    thresholds, signs, errors = np.empty(n_rounds), np.empty(n_rounds), np.empty(n_rounds)
    examples = np.asarray(positives, np.int64), np.asarray(negatives, np.int64)
    found = boosting.boost(pool, *examples, features, thresholds, signs, errors)
    least = 1 / (4 * max(map(len, examples)))
    e = np.maximum(errors[:found], least)
    return Boosted(features[:found], thresholds[:found], signs[:found], np.log((1 - e) / e))


def _votes(boosted: Boosted, rows: NDArray[Any]) -> Float64Array:
    values = rows[:, boosted.features].astype(np.float32)
    return (values * boosted.signs > boosted.thresholds * boosted.signs) @ boosted.weights


def _float32(rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(rows, np.float32)
