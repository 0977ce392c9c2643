"""Targets: how training rows relate to each other; the only code that interprets ``y``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_array, check_labels, row_blocks
from bittern.errors import InputError
from bittern.relevance import Relevance

FORMS_OF_Y = "class labels, multi-hot tags (n, n_tags), or a square Relevance of the training rows"


@dataclass(frozen=True)
class Targets:
    """Affinities of training rows, from class labels, tags, or a square Relevance.

    Two rows of the same class, or that share a tag, have affinity 1; others have 0.  With a
    Relevance the affinity is the gain, divided by the largest gain.
    """

    n: int
    labels: NDArray[np.intp] | None = None  # (n,) classes numbered from 0
    tags: Float32Array | None = None  # (n, n_tags) zeros and ones
    relevance: Relevance | None = None  # (n, n)

    @classmethod
    def of(cls, y: Any, n: int, name: str) -> Targets:
        """Interpret ``y`` for n rows; error messages begin with ``name``."""
        if y is None:
            raise InputError(
                f"{name}: requires y to be passed, but the target y is None; pass {FORMS_OF_Y}."
            )
        if isinstance(y, Relevance):
            if (y.n_queries, y.n_database) != (n, n):
                raise InputError(
                    f"{name}: a Relevance as y must relate the {n:,} training rows to each other, "
                    f"got {y.n_queries:,} × {y.n_database:,}."
                )
            return cls(n, relevance=y)
        if hasattr(y, "tocsr"):
            y = y.toarray()
        array = check_array(y, f"{name}: y")
        if array.ndim == 2:
            _check_length(len(array), n, name)
            if array.shape[1] == 0:
                raise InputError(f"{name}: tags as y must have a column; y may be {FORMS_OF_Y}.")
            if not np.isin(array, (0, 1)).all():
                raise InputError(
                    f"{name}: tags as y must be booleans or 0/1; y may be {FORMS_OF_Y}."
                )
            return cls(n, tags=array.astype(np.float32))
        labels = check_labels(y, f"{name}: y")
        _check_length(len(labels), n, name)
        return cls(n, labels=np.unique(labels, return_inverse=True)[1])

    @property
    def given(self) -> Any:
        """A ``y`` with these targets."""
        return next(y for y in (self.labels, self.tags, self.relevance) if y is not None)

    def affinity(self, rows: Any = None, columns: Any = None) -> Float32Array:
        """Affinities, 0 … 1, of some rows to some others (by default all), as a dense block."""
        rows = np.arange(self.n) if rows is None else np.asarray(rows)
        columns = np.arange(self.n) if columns is None else np.asarray(columns)
        if self.labels is not None:
            return (self.labels[rows][:, None] == self.labels[columns]).astype(np.float32)
        if self.tags is not None:
            return (self.tags[rows] @ self.tags[columns].T > 0).astype(np.float32)
        assert self.relevance is not None
        gains = (self.relevance.gains / self.relevance.gains[-1]).astype(np.float32)
        chosen, out = self.relevance.take(rows), np.empty((len(rows), len(columns)), np.float32)
        for some in row_blocks(len(rows), 8 * self.n):
            out[some] = gains[chosen.block(some)[:, columns]]
        return out

    def gains(self, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.int64]:
        """Gains of some rows for others: 1 in the same class, number of shared tags, or given."""
        if self.labels is not None:
            return (self.labels[rows][:, None] == self.labels[columns]).astype(np.int64)
        if self.tags is not None:
            return (self.tags[rows] @ self.tags[columns].T).astype(np.int64)
        assert self.relevance is not None
        chosen, out = self.relevance.take(rows), np.empty((len(rows), len(columns)), np.int64)
        for some in row_blocks(len(rows), 8 * self.n):
            out[some] = self.relevance.gains[chosen.block(some)[:, columns]]
        return out

    def as_relevance(self) -> Relevance:
        """The gains of all rows for each other."""
        if self.labels is not None:
            return Relevance.from_classes(self.labels, self.labels)
        if self.tags is not None:
            return Relevance.from_tags(self.tags, self.tags, graded=True)
        assert self.relevance is not None
        return self.relevance

    def indicators(self, random_state: np.random.Generator, most: int = 256) -> Float32Array:
        """Columns ``(n, m)`` that describe each row: classes, tags, or affinities.

        For a Relevance, these are the affinities to ``most`` random rows.
        """
        if self.labels is not None:
            return np.eye(int(self.labels.max()) + 1, dtype=np.float32)[self.labels]
        if self.tags is not None:
            return self.tags
        columns = random_state.permutation(self.n)[:most]
        return self.affinity(columns=np.sort(columns))

    def take(self, rows: NDArray[Any]) -> Targets:
        """The targets of some of the training rows."""
        if self.labels is not None:
            return Targets(len(rows), labels=self.labels[rows])
        if self.tags is not None:
            return Targets(len(rows), tags=self.tags[rows])
        if len(rows) == self.n and (rows == np.arange(self.n)).all():
            return self
        from scipy.sparse import csr_array, vstack

        blocks = row_blocks(len(rows), 8 * self.n)
        gains = vstack([csr_array(self.gains(rows[some], rows)) for some in blocks])
        return Targets(len(rows), relevance=Relevance.from_matrix(gains))


def _check_length(n_labels: int, n: int, name: str) -> None:
    if n_labels != n:
        raise InputError(f"{name}: y must have one entry for each row, got {n_labels:,} for {n:,}.")
