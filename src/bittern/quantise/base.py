"""The base class of every quantiser: bytes of items in, estimated distances out."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from bittern.checks import (
    Float32Array,
    check_choice,
    check_count,
    check_type,
    check_vectors,
    refuse_odd_rows,
    row_blocks,
    squared_lengths,
    to_unit_length,
)
from bittern.data.steps import MEMORY, check_rows, refuse_tiny
from bittern.errors import InputError, NotFittedError
from bittern.io.models import learned_attributes
from bittern.progress import track
from bittern.quantise.stored import Bytes, QuantisedCodes

FEW = 8  # queries; for more, decoding the items once is faster
NEARBY = 1 << 22  # bytes of a block of distances and its items, which stay in the cache
METRICS = ("euclidean", "cosine", "inner-product")
PARTS = {"euclidean": (1.0, -2.0), "cosine": (0.5, -1.0), "inner-product": (0.0, -1.0)}


class Expanded(NamedTuple):
    """What the bytes of some items say, ready for products with queries.

    The product of a query q with item i is about ``<q, centres[groups[i]]> + <P q, vectors[i]>``,
    where P is the quantiser's projection, and the squared length of the item ``lengths[i]``.
    """

    vectors: Float32Array  # (n, k)
    groups: NDArray[np.intp]  # (n,)
    lengths: Float32Array  # (n,)


class Queries(NamedTuple):
    """Queries in the space of the codes, and their products with the centres."""

    vectors: Float32Array  # (q, k)
    to_centres: Float32Array  # (q, g)
    lengths: Float32Array  # (q,), squared


class Kept(NamedTuple):
    """What scores of items need of them, computed once so that scoring one item is quick.

    Of each item: the scale of what its code says, its squared length, and the length of what its
    code says without its largest components.
    """

    numbers: Float32Array  # (n, 3)


class Quantiser(TransformerMixin, BaseEstimator, ABC):
    """Keeps a few bytes of each vector, and estimates distances from full queries to them.

    A scikit-learn estimator: ``fit(X)`` learns from training rows, ``encode(X)`` gives the bytes of
    items, and ``distances(queries, stored)`` estimates their distances, smaller being nearer:

    - ``metric="euclidean"``: the squared Euclidean distance;
    - ``"cosine"``: one minus the cosine, which is half the squared distance of unit vectors;
    - ``"inner-product"``: the negative product.

    In a pipeline, ``transform(X)`` gives the vectors that the bytes stand for, so that the next
    step sees what is left of the rows; ``score(X)`` says how much that is, for a grid search.

    Each method is a class in its own file.  :meth:`_learn` learns; :meth:`_payload` writes the
    bytes of residuals, which are rows minus their centre; :meth:`_values` reads them again as
    vectors of the space to which :meth:`_projected` maps rows.
    """

    name: ClassVar[str]

    metric: str
    random_state: int | None
    centres_: Float32Array  # (g, dim): subtracted from rows; an item has one byte if g > 1
    n_bytes_: int  # kept of each item
    _fingerprint: str = ""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from training rows; ``y`` is ignored."""
        check_choice(self.metric, f"{self._title}: metric", METRICS)
        if self.random_state is not None:
            check_count(self.random_state, f"{self._title}: random_state", 0)
        for name in learned_attributes(self):
            delattr(self, name)
        self._fingerprint = ""
        rows = self._rows(X, reset=True)
        self._learn(rows, np.random.default_rng(self.random_state))
        self.n_bytes_ = self._encoded(rows[:1]).shape[1]
        return self

    def encode(self, X: Any) -> QuantisedCodes:
        """The bytes of rows; rows on disk may be larger than memory."""
        self._check_fitted()
        parts = [
            self._encoded(self._rows(X[some]))
            for some in track(self._blocks_of(X), f"{self._title}: encoding")
        ]
        empty = np.empty((0, self.n_bytes_), np.uint8)
        return QuantisedCodes(np.concatenate([empty, *parts]), self.fingerprint)

    def decode(self, stored: QuantisedCodes) -> Float32Array:
        """The vectors that the bytes stand for; for cosine, of length about 1."""
        self._check_stored(stored)
        found = self._expanded(stored.bytes)
        return self.centres_[found.groups] + self._unprojected(found.vectors)

    def transform(self, X: Any) -> Float32Array:
        """The vectors ``(n, dim)`` that the bytes of rows stand for."""
        return self.decode(self.encode(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared distance of rows from what their bytes stand for."""
        lost = [
            squared_float32(rows - self.transform(rows))
            for rows in (self._rows(X[some]) for some in self._blocks_of(X))
        ]
        return -float(np.concatenate(lost).mean())

    def distances(self, queries: Any, stored: QuantisedCodes) -> Float32Array:
        """Estimated distances ``(n_queries, n)``, smaller being nearer."""
        scorer = self.scorer(queries)
        out = np.empty((len(scorer), len(stored)), np.float32)
        for some, block in scorer.blocks(stored):
            out[:, some] = block
        return out

    def scorer(self, queries: Any) -> Scorer:
        """The estimates of some queries, block by block or for single items."""
        self._check_fitted()
        return Scorer(self, self._rows(queries))

    def keep(self, stored: QuantisedCodes) -> Kept | None:
        """What makes scores of single items quick, twelve bytes an item; None if nothing does."""
        self._check_stored(stored)
        return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted quantiser to a file of arrays and JSON, which :func:`load` reads."""
        from bittern.quantise.storage import save

        self._check_fitted()
        save(self, path)

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that depend on all that was learned."""
        self._check_fitted()
        if not self._fingerprint:  # kept, because every search asks for it
            self._fingerprint = _digest(self).hexdigest()[:16]
        return self._fingerprint

    @abstractmethod
    def _learn(self, X: Float32Array, draw: np.random.Generator) -> None:
        """Set the learned attributes, ``centres_`` among them."""

    @abstractmethod
    def _payload(self, residuals: Float32Array) -> Bytes:
        """The bytes of residuals."""

    @abstractmethod
    def _values(self, payload: Bytes) -> Float32Array:
        """The projected residuals that bytes stand for, ``(n, k)``."""

    def _projected(self, X: Float32Array) -> Float32Array:
        """Rows in the space of :meth:`_values`; products there are those of the rows."""
        return X

    def _unprojected(self, values: Float32Array) -> Float32Array:
        """Rows whose projection has these values."""
        return values

    def _queries(self, X: Float32Array) -> Queries:
        """What queries need for products with :class:`Expanded` items."""
        return Queries(self._projected(X), X @ self.centres_.T, squared_float32(X))

    def _looks_up(self, n_queries: int) -> bool:
        """Whether what is kept of items makes a search for so many queries quicker."""
        return n_queries <= FEW

    def _pair_distances(
        self,
        asked: Queries,
        rows: Bytes,
        kept: Kept,
        queries: NDArray[np.intp],
        items: NDArray[np.intp],
    ) -> Float32Array:
        """Distances of pairs of a query and an item, from the codes as they are.

        Only a quantiser that keeps something (:meth:`keep`) is asked.
        """
        raise InputError(f"{self._title}: keeps nothing of its items.")

    def _nearest(
        self, asked: Queries, rows: Bytes, kept: Kept, k: int, allowed: NDArray[np.bool_]
    ) -> tuple[Float32Array, NDArray[np.int64]]:
        """Distances and rows of the k nearest items; infinity and -1 if there are fewer.

        Only a quantiser that keeps something (:meth:`keep`) is asked.
        """
        raise InputError(f"{self._title}: keeps nothing of its items.")

    def _distance(
        self, products: Float32Array, of_queries: Float32Array, of_items: Float32Array
    ) -> Float32Array:
        """Distances, from products, which they replace, and squared lengths."""
        of_lengths, of_products = np.array(PARTS[self.metric], np.float32)
        products *= of_products
        if of_lengths:
            products += of_lengths * of_items
            products += of_lengths * of_queries
        return products

    def _encoded(self, X: Float32Array) -> Bytes:
        """All bytes of rows: of the centre if there are several, then of the residual."""
        groups = self._nearest_centres(X)
        payload = self._payload(X - self.centres_[groups])
        if len(self.centres_) == 1:
            return payload
        return np.hstack([groups.astype(np.uint8)[:, None], payload])

    def _expanded(self, rows: Bytes) -> Expanded:
        """What rows of bytes say."""
        groups, payload = self._divided(rows)
        values = self._values(payload)
        return Expanded(values, groups, self._lengths(values, groups, squared_float32(values)))

    def _divided(self, rows: Bytes) -> tuple[NDArray[np.intp], Bytes]:
        """The centre of each item, and the bytes after that."""
        if len(self.centres_) == 1:
            return np.zeros(len(rows), np.intp), rows
        return rows[:, 0].astype(np.intp), rows[:, 1:]

    def _lengths(
        self, values: Float32Array, groups: NDArray[np.intp], own: Float32Array
    ) -> Float32Array:
        """Squared lengths of items whose residuals have the squared lengths ``own``."""
        centres = self._projected(self.centres_)
        with_centre = np.einsum("ij,ij->i", values, centres[groups])
        return own + 2 * with_centre + squared_float32(self.centres_)[groups]

    def _nearest_centres(self, X: Float32Array) -> NDArray[np.intp]:
        if len(self.centres_) == 1:
            return np.zeros(len(X), np.intp)
        gaps = squared_float32(self.centres_) - 2 * (X @ self.centres_.T)
        return np.asarray(gaps.argmin(axis=1))

    def _rows(self, X: Any, reset: bool = False) -> Float32Array:
        """Checked rows as float32; of length 1 for cosine."""
        rows = check_rows(self, X, reset=reset, sparse=False)
        if reset:
            refuse_tiny(rows, self._title)
        if self.metric == "cosine":
            rows = to_unit_length(rows, self._title)
        rows = np.ascontiguousarray(rows, np.float32)
        if not np.isfinite(rows).all():
            raise InputError(f"{self._title}: some numbers are too large for 32 bits; scale them.")
        return rows

    def _blocks_of(self, X: Any) -> list[slice]:
        refuse_odd_rows(X, self._title)
        rows = X if hasattr(X, "shape") else check_vectors(X, f"{self._title}: rows")
        if getattr(rows, "ndim", 2) != 2 or len(rows) == 0:
            check_rows(self, X, sparse=False)  # says what is wrong
        return row_blocks(len(rows), 16 * self.n_features_in_, MEMORY)

    def _check_stored(self, stored: QuantisedCodes) -> None:
        self._check_fitted()
        check_type(stored, QuantisedCodes, f"{self._title}: stored")
        if stored.fingerprint != self.fingerprint or stored.n_bytes != self.n_bytes_:
            raise InputError(
                f"{self._title}: these codes are of another quantiser; encode the items anew."
            )

    def _check_learned(self) -> None:
        """Raise ValueError if learned arrays, read from a file, do not fit together."""
        centres = self.centres_
        if centres.ndim != 2 or centres.shape[1] != self.n_features_in_ or not len(centres):
            raise ValueError(f"centres_ must have {self.n_features_in_} columns")
        if centres.dtype != np.float32:
            raise ValueError(f"centres_ must be float32, got {centres.dtype}")

    def _check_fitted(self) -> None:
        if "n_bytes_" not in vars(self):
            raise NotFittedError(f"{self._title}: call fit() first.")

    def __sklearn_is_fitted__(self) -> bool:
        return "n_bytes_" in vars(self)

    @property
    def _title(self) -> str:
        return type(self).__name__


class Scorer:
    """Estimated distances from some queries to the items of one quantiser."""

    def __init__(self, quantiser: Quantiser, queries: Float32Array) -> None:
        self._quantiser = quantiser
        self._queries = quantiser._queries(queries)

    def __len__(self) -> int:
        """Number of queries."""
        return len(self._queries.lengths)

    @property
    def looks_up(self) -> bool:
        """Whether :meth:`nearest` is quicker than :meth:`blocks`."""
        return self._quantiser._looks_up(len(self))

    def blocks(self, stored: QuantisedCodes) -> Iterator[tuple[slice, Float32Array]]:
        """Blocks of the items, and the distances ``(n_queries, n)`` of their items.

        Each item is decoded once for all queries.
        """
        self._quantiser._check_stored(stored)
        q = self._queries
        for some in row_blocks(len(stored), 4 * (q.vectors.shape[1] + len(self)), NEARBY):
            items = self._quantiser._expanded(stored.bytes[some])
            products = q.vectors @ items.vectors.T
            products += q.to_centres[:, items.groups]
            yield some, self._quantiser._distance(products, q.lengths[:, None], items.lengths)

    def of(
        self,
        stored: QuantisedCodes,
        queries: NDArray[np.intp],
        rows: NDArray[np.intp],
        kept: Kept | None = None,
    ) -> Float32Array:
        """The distances of pairs of a query and an item, given by their numbers.

        It is much faster with what :meth:`Quantiser.keep` gave for the items.
        """
        self._quantiser._check_stored(stored)
        if kept is not None:
            return self._quantiser._pair_distances(self._queries, stored.bytes, kept, queries, rows)
        q, items = self._queries, self._quantiser._expanded(stored.bytes[rows])
        products = np.einsum("ij,ij->i", q.vectors[queries], items.vectors)
        products += q.to_centres[queries, items.groups]
        return self._quantiser._distance(products, q.lengths[queries], items.lengths)

    def nearest(
        self, stored: QuantisedCodes, kept: Kept, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[Float32Array, NDArray[np.int64]]:
        """Distances and rows of the k nearest items, ``(n_queries, k)``; of ties the first rows.

        With what :meth:`Quantiser.keep` gave, and quicker than :meth:`blocks` if :attr:`looks_up`:
        most items are abandoned after their largest components, or after a rough distance.
        ``allowed`` is a mask of rows.
        """
        self._quantiser._check_stored(stored)
        every = np.empty(0, np.bool_) if allowed is None else allowed
        return self._quantiser._nearest(self._queries, stored.bytes, kept, k, every)


def _digest(estimator: Any) -> hashlib._Hash:
    """Of a fitted estimator's name and all that it learned, other estimators included."""
    digest = hashlib.sha256(estimator.name.encode())
    for name, value in sorted(learned_attributes(estimator).items()):
        if isinstance(value, BaseEstimator):
            digest.update(name.encode() + _digest(value).digest())
            continue
        values = value if isinstance(value, dict) else {"": value}
        for key, array in values.items():
            digest.update(f"{name}:{key}:{np.asarray(array).dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest


def squared_float32(rows: Float32Array) -> Float32Array:
    """The squared length of each row."""
    return squared_lengths(rows).astype(np.float32)  # type: ignore[arg-type]
