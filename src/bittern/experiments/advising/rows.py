"""Rows to try hashers on: sampled, checked, and divided so that nothing fitted sees a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_array, check_labels, check_vectors, row_blocks
from bittern.errors import InputError

__all__ = ["Material", "gather"]

FEWEST = 200  # rows that anything can be said from
MOST_QUERIES, MOST_TRAIN, MOST_DATABASE = 1_000, 5_000, 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Sampled rows: queries, first those that choose, then those that judge, and all others.

    The queries are the same in every split, so that no query both chooses and judges; a split
    divides the others anew into training rows and database.
    """

    vectors: NDArray[np.floating[Any]]  # (n, dim)
    labels: NDArray[Any] | None  # (n,) classes, or (n, n_tags) zeros and ones
    n_given: int  # rows that the sample is from
    itemsize: int  # octets of a number as it was given
    queries: PositionArray
    n_validation: int  # of the queries, the first
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
        """Training rows and database of one split, disjoint, of the rows that are no queries."""
        rng = np.random.default_rng([self.random_state, 1 + split])
        order = rng.permutation(self.others)
        return np.sort(order[: self.n_train]), np.sort(order[self.n_train :])


def gather(vectors: Any, labels: Any, random_state: int) -> Material:
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
    return Material(
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


def _two_dimensional(vectors: Any) -> Any:
    """Vectors as an array, or as they are mapped from a file; only the sample is read later."""
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
        raise InputError("advise: labels in two dimensions are tags, booleans or 0/1 (n, n_tags).")
    return tags.astype(bool)


def _finite(given: Any, rows: PositionArray) -> NDArray[np.floating[Any]]:
    """The sampled rows in memory; one that is not finite is named as the user counts it."""
    sample = np.asarray(given[rows])
    for some in row_blocks(len(sample), 8 * sample.shape[1]):
        finite = np.isfinite(sample[some]).all(axis=1)
        if not finite.all():
            row = int(rows[some][finite.argmin()])
            raise InputError(f"advise: vectors must be finite, row {row} is not.")
    return check_vectors(sample, "advise: vectors")
