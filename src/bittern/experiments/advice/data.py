"""The data of an advice: rows and queries, divided so that nothing searched is fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import (
    Float32Array,
    PositionArray,
    check_array,
    check_labels,
    check_vectors,
    row_blocks,
    to_unit_length,
)
from bittern.errors import InputError
from bittern.relevance import Relevance

METRICS = ("euclidean", "cosine")
FEWEST = 200  # rows
FEWEST_QUERIES = 20  # of the user's own
MOST_QUERIES, MOST_TRAIN, MOST_DATABASE = 500, 5_000, 20_000
LARGEST_DATABASE = 100_000  # if time is left
FEWEST_PER_PLACE = 64  # items of a smaller database for each of the first k places
HALVINGS = 3  # smaller databases in which recall is measured, each half as large as the next


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The rows that are used: queries that choose, queries that judge, and all others.

    The queries are the same in every split, so that no query both chooses and judges.  Each split
    divides the other rows differently into training rows and database.
    """

    given: Any  # (n, dim) numbers as given, perhaps mapped from a file
    metric: str
    queries: Float32Array  # (n_queries, dim), of length 1 for cosine
    query_labels: NDArray[Any] | None
    labels: NDArray[Any] | None  # (n,) classes, or (n, n_tags) zeros and ones
    gains: Any  # (n_queries, n) sparse, of the user's own queries; or None
    n_validation: int  # the first of the queries
    pool: PositionArray  # rows that are no queries
    n_train: int
    random_state: int

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return int(self.given.shape[1])

    @property
    def truth(self) -> str:
        """What makes an item relevant: 'classes', 'tags', 'judgements' or 'neighbours'."""
        if self.gains is not None:
            return "judgements"
        if self.labels is None:
            return "neighbours"
        return "classes" if self.labels.ndim == 1 else "tags"

    @property
    def n_searchable(self) -> int:
        """Rows that are neither queries nor training rows."""
        return len(self.pool) - self.n_train

    @property
    def n_database(self) -> int:
        """Rows that are searched in each split; the first one may search more at the end."""
        return min(self.n_searchable, MOST_DATABASE)

    @property
    def validation(self) -> slice:
        """The queries that choose."""
        return slice(0, self.n_validation)

    @property
    def test(self) -> slice:
        """The queries that judge."""
        return slice(self.n_validation, len(self.queries))

    def divide(self, split: int) -> tuple[PositionArray, PositionArray]:
        """Training rows, and the others in the order in which databases take them.

        Rows that a user judged relevant are searched, in databases of any size, if others are
        enough for training.
        """
        rng = np.random.default_rng([self.random_state, 1 + split])
        order = rng.permutation(self.pool)
        if self.gains is not None:
            order = order[np.argsort(self._is_judged()[order], kind="stable")]
            rest = order[self.n_train :]
            judged = self._is_judged()[rest]
            order = np.concatenate([order[: self.n_train], rest[judged], rest[~judged]])
        return order[: self.n_train], order[self.n_train :]

    def fewest_searched(self, k: int) -> int:
        """The smallest database in which anything is measured."""
        judged = 0 if self.gains is None else int(self._is_judged().sum())
        return max(FEWEST_PER_PLACE * k, 2 * judged)

    def rows(self, positions: PositionArray) -> Float32Array:
        """Rows in memory, checked; of length 1 for cosine."""
        order = np.argsort(positions, kind="stable")
        out = np.empty((len(positions), self.dim), np.float32)
        out[order] = _checked_rows(self.given, positions[order], self.metric)
        return out

    def truth_of(self, items: Float32Array, positions: PositionArray, k: int) -> Relevance:
        """Relevance of these items, whose rows are given by position."""
        if self.gains is not None:
            return Relevance.from_matrix(self.gains[:, positions])
        if self.labels is None or self.query_labels is None:
            return Relevance.from_neighbours(self.queries, items, min(k, len(items)))
        of = Relevance.from_classes if self.labels.ndim == 1 else Relevance.from_tags
        return of(self.query_labels, self.labels[positions])

    def _is_judged(self) -> NDArray[np.bool_]:
        judged = np.zeros(len(self.given), bool)
        judged[self.gains.tocoo().col] = True
        return judged


def sizes_up_to(n: int, fewest: int, begin: int = 0) -> tuple[int, ...]:
    """Sizes of databases, ascending: n, and halves of it that are large enough.

    With ``begin``, sizes above that.
    """
    sizes = [n >> i for i in range(HALVINGS + 1)]
    return tuple(size for size in sorted(sizes) if size == n or size >= max(fewest, 2 * begin))


def draw_sample(
    vectors: Any,
    labels: Any = None,
    random_state: int = 0,
    *,
    metric: str = "euclidean",
    queries: Any = None,
    gains: Any = None,
) -> Sample:
    """Check the shapes, draw the rows that are used, and check the queries."""
    given = _two_dimensional(vectors, "vectors")
    n = len(given)
    if n < FEWEST:
        raise InputError(f"advise: vectors must have at least {FEWEST} rows, got {n}.")
    y = None if labels is None else _checked_labels(labels, n)
    rng = np.random.default_rng([random_state, 0])
    if queries is None:
        n_queries = min(MOST_QUERIES, n // 5)
        drawn = _drawn(rng, n, n_queries + MOST_TRAIN + LARGEST_DATABASE)
        asked, pool, sparse = drawn[:n_queries], np.sort(drawn[n_queries:]), None
        rows = _checked_rows(given, asked, metric)
    else:
        rows, asked = _own_queries(queries, given.shape[1], metric, rng)
        sparse = None if gains is None else _checked_gains(gains, len(queries), n)[asked]
        pool = np.sort(_drawn(rng, n, MOST_TRAIN + LARGEST_DATABASE))
        if sparse is not None:  # what is relevant is always searched
            pool = np.union1d(pool, sparse.tocoo().col)
    return Sample(
        given=given,
        metric=metric,
        queries=rows,
        query_labels=None if y is None else y[asked],
        labels=y,
        gains=sparse,
        n_validation=len(rows) // 2,
        pool=pool,
        n_train=min(MOST_TRAIN, 2 * (len(pool) + (len(rows) if queries is None else 0)) // 5),
        random_state=random_state,
    )


def _drawn(rng: np.random.Generator, n: int, most: int) -> PositionArray:
    """At most so many of n rows, in random order."""
    return rng.permutation(n) if n <= most else rng.choice(n, most, replace=False)


def _own_queries(
    queries: Any, dim: int, metric: str, rng: np.random.Generator
) -> tuple[Float32Array, PositionArray]:
    """The user's queries, at most MOST_QUERIES of them, and which ones."""
    given = _two_dimensional(queries, "queries")
    if given.shape[1] != dim:
        raise InputError(f"advise: queries must have {dim} columns, got {given.shape[1]}.")
    if len(given) < FEWEST_QUERIES:
        raise InputError(
            f"advise: queries must have at least {FEWEST_QUERIES} rows, got {len(given)}."
        )
    asked = _drawn(rng, len(given), MOST_QUERIES)
    return _checked_rows(given, asked, metric, "queries"), asked


def _checked_gains(gains: Any, n_queries: int, n: int) -> Any:
    """The user's judgements as a sparse matrix with rows of gains."""
    import scipy.sparse as sp

    matrix = gains if sp.issparse(gains) else check_array(gains, "advise: relevance")
    if matrix.shape != (n_queries, n):
        raise InputError(
            f"advise: relevance must have a row for each of {n_queries} queries and a column for "
            f"each of {n} vectors, got shape {matrix.shape}."
        )
    csr = sp.csr_array(matrix)
    csr.eliminate_zeros()
    if not csr.nnz or not (csr.data > 0).all():
        raise InputError("advise: relevance must be gains of at least 0, some of them above.")
    return csr


def _two_dimensional(vectors: Any, name: str) -> Any:
    """Vectors as an array, still mapped if they are: only the sample is read later."""
    v = check_array(vectors, f"advise: {name}")
    if v.ndim != 2 or 0 in v.shape:
        raise InputError(f"advise: {name} must be 2-D (n, dim), got shape {v.shape}.")
    if v.dtype.kind not in "fiub":
        raise InputError(f"advise: {name} must be numbers, got dtype {v.dtype}.")
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


def _checked_rows(
    given: Any, rows: PositionArray, metric: str, name: str = "vectors"
) -> Float32Array:
    """Some rows in memory; errors give the row's number in the user's array."""
    sample = np.asarray(given[rows])
    for some in row_blocks(len(sample), 8 * sample.shape[1]):
        finite = np.isfinite(sample[some]).all(axis=1)
        if not finite.all():
            row = int(rows[some][finite.argmin()])
            raise InputError(f"advise: {name} must be finite, but row {row} is not.")
    checked = check_vectors(sample, f"advise: {name}")
    if metric == "cosine":
        checked = to_unit_length(checked.astype(np.float64), "advise")
    with np.errstate(over="ignore"):
        out = checked.astype(np.float32)
    if not np.isfinite(out).all():
        raise InputError(f"advise: {name} must fit in 32 bits; scale them.")
    return out
