"""The data of an advice: sampled rows, divided so that no hasher is fitted on a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import (
    Float64Array,
    PositionArray,
    check_array,
    check_labels,
    check_vectors,
    row_blocks,
    squared_lengths,
    to_unit_length,
)
from bittern.errors import InputError
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance

METRICS = ("euclidean", "cosine")
FEWEST = 200  # rows
MOST_QUERIES, MOST_TRAIN, MOST_DATABASE = 1_000, 5_000, 20_000
N_NEAREST = 100  # items that a timed search finds
BLOCK = 1 << 26  # bytes of distances held at once


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The rows that are used: queries that choose, queries that judge, and all others.

    The queries are the same in every split, so that no query both chooses and judges.  Each split
    divides the other rows differently into training rows and database.
    """

    vectors: NDArray[np.floating[Any]]  # (n, dim)
    labels: NDArray[Any] | None  # (n,) classes, or (n, n_tags) zeros and ones
    n_given: int  # rows that it was drawn from
    itemsize: int  # bytes of a number in the given vectors
    queries: PositionArray
    n_validation: int  # the first of the queries
    others: PositionArray
    n_train: int
    random_state: int

    @property
    def n_database(self) -> int:
        """Rows that are searched in each split."""
        return len(self.others) - self.n_train

    @property
    def validation(self) -> slice:
        """The queries that choose."""
        return slice(0, self.n_validation)

    @property
    def test(self) -> slice:
        """The queries that judge."""
        return slice(self.n_validation, len(self.queries))

    def divide(self, split: int) -> tuple[PositionArray, PositionArray]:
        """Training rows and database of one split; disjoint, and without queries."""
        rng = np.random.default_rng([self.random_state, 1 + split])
        order = rng.permutation(self.others)
        return np.sort(order[: self.n_train]), np.sort(order[self.n_train :])


def draw_sample(vectors: Any, labels: Any, random_state: int) -> Sample:
    """Check the shapes, draw the rows that are used, and check those."""
    given = _two_dimensional(vectors)
    n = len(given)
    if n < FEWEST:
        raise InputError(f"advise: vectors must have at least {FEWEST} rows, got {n}.")
    y = None if labels is None else _checked_labels(labels, n)
    rng = np.random.default_rng([random_state, 0])
    most = MOST_QUERIES + MOST_TRAIN + MOST_DATABASE
    rows = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    order = rng.permutation(len(rows))
    n_queries = min(MOST_QUERIES, len(rows) // 5)
    return Sample(
        vectors=_finite(given, rows),
        labels=None if y is None else y[rows],
        n_given=n,
        itemsize=given.dtype.itemsize,
        queries=order[:n_queries],
        n_validation=n_queries // 2,
        others=np.sort(order[n_queries:]),
        n_train=min(MOST_TRAIN, 2 * len(rows) // 5),
        random_state=random_state,
    )


@dataclass(frozen=True, slots=True, eq=False)
class SplitTruth:
    """The ground truth of one split, and the float ranking's average precision under it."""

    relevance: Relevance
    ceiling: Float64Array  # (n_queries,), NaN for a query with nothing relevant


def truth_of(sample: Sample, database: PositionArray, metric: str, k: int) -> SplitTruth:
    """Relevance by classes or tags; without labels, by the k nearest neighbours.

    Ranking by real distances finds the k nearest perfectly, so its precision is then 1.
    """
    queries, items = sample.vectors[sample.queries], sample.vectors[database]
    if sample.labels is None:
        relevance = Relevance.from_neighbours(queries, items, k, metric=metric)
        return SplitTruth(relevance, np.ones(len(queries)))
    y = sample.labels
    of = Relevance.from_classes if y.ndim == 1 else Relevance.from_tags
    relevance = of(y[sample.queries], y[database])
    for part in (sample.validation, sample.test):
        if not relevance.n_relevant[part].any():
            raise InputError(
                f"advise: none of {part.stop - part.start} queries has anything relevant among "
                f"{len(database)} items; are these class labels?"
            )
    blocks = _distances(queries.astype(np.float64), items.astype(np.float64), metric)
    profile = TieProfile.from_distances(blocks, relevance, compact=True)
    ceiling = evaluate(profile, "ap")["ap"].per_query
    assert ceiling is not None
    return SplitTruth(relevance, ceiling)


def _two_dimensional(vectors: Any) -> Any:
    """Vectors as an array, still mapped if they are: only the sample is read later."""
    v = check_array(vectors, "advise: vectors")
    if v.ndim != 2 or 0 in v.shape:
        raise InputError(f"advise: vectors must be 2-D (n, dim), got shape {v.shape}.")
    if v.dtype.kind not in "fiub":
        raise InputError(f"advise: vectors must be numbers, got dtype {v.dtype}.")
    return v


def _checked_labels(labels: Any, n: int) -> NDArray[Any]:
    """Classes of all rows, or their tags."""
    if hasattr(labels, "toarray"):
        labels = labels.toarray()
    if np.ndim(labels) != 2:
        y = check_labels(labels, "advise: labels", n)
        if len(np.unique(y)) < 2:
            raise InputError("advise: labels must have at least two classes, got one.")
        return y
    tags = check_array(labels, "advise: labels")
    if len(tags) != n:
        raise InputError(
            f"advise: labels must have one entry for each of {n} rows, got {len(tags)}."
        )
    if not np.isin(tags, (0, 1)).all():
        raise InputError("advise: 2-D labels must be tags (n, n_tags), booleans or 0/1.")
    return tags.astype(bool)


def _finite(given: Any, rows: PositionArray) -> NDArray[np.floating[Any]]:
    """The sampled rows in memory; errors give the row's number in the user's array."""
    sample = np.asarray(given[rows])
    for some in row_blocks(len(sample), 8 * sample.shape[1]):
        finite = np.isfinite(sample[some]).all(axis=1)
        if not finite.all():
            row = int(rows[some][finite.argmin()])
            raise InputError(f"advise: vectors must be finite, but row {row} is not.")
    return check_vectors(sample, "advise: vectors")


def _distances(queries: Float64Array, items: Float64Array, metric: str) -> Iterator[Float64Array]:
    """Blocks of squared distances, which rank the items as the metric does."""
    if metric == "cosine":
        queries, items = to_unit_length(queries, "advise"), to_unit_length(items, "advise")
    else:
        # Near the origin rounding loses less; whole numbers stay whole, so their ties stay ties.
        centre = np.round(items.mean(axis=0))
        queries, items = queries - centre, items - centre
    squares = squared_lengths(items)
    for some in row_blocks(len(queries), 8 * len(items), BLOCK):
        q = queries[some]
        yield squared_lengths(q)[:, None] - 2 * (q @ items.T) + squares
