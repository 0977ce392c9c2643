"""QuantisedIndex: the nearest items by the distances that a quantiser estimates."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_array, check_count, check_same_length, check_type
from bittern.errors import InputError
from bittern.index.hits import NONE, Hits
from bittern.index.items import IndexedItems, Where
from bittern.index.rerank import rerank
from bittern.io.files import reading
from bittern.io.npz import read_arrays, write_arrays
from bittern.kernels.nearest import keep_nearest
from bittern.parallel import run_blocks
from bittern.quantise import QuantisedCodes, Quantiser, Scorer
from bittern.quantise.base import Kept

ARRAYS = ("bytes", "fingerprint", "ids")
DISTANCES = {"euclidean": "l2", "cosine": "cosine", "inner-product": "inner-product"}  # of rerank


class QuantisedIndex:
    """The bytes of items with their ids, and the items nearest to a query by estimated distance.

    The search is exact: it finds the items with the smallest estimates, and of equal ones those
    that were added first.  For quick answers it keeps twelve bytes an item more in memory, if the
    quantiser has a use for them.

    Ids are distinct whole numbers from 0; by default they continue from the largest so far.

    >>> import numpy as np, bittern as bt
    >>> X = np.random.default_rng(0).standard_normal((500, 16))
    >>> quantiser = bt.quantise.QUANTISERS["int8"]().fit(X)
    >>> index = bt.QuantisedIndex(quantiser, quantiser.encode(X))
    >>> index.search(X[:2], k=1).ids.ravel()
    array([0, 1])
    """

    def __init__(
        self,
        quantiser: Quantiser,
        stored: QuantisedCodes | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> None:
        check_type(quantiser, Quantiser, f"{self._title}: quantiser")
        self.quantiser = quantiser
        self._fingerprint = quantiser.fingerprint  # fails if it is not fitted
        self._items = IndexedItems()
        self._kept: Kept | None = None
        if stored is not None:
            self.add(stored, ids)
        elif ids is not None:
            raise InputError(f"{self._title}: ids need codes, got ids alone.")

    def add(self, stored: QuantisedCodes, ids: ArrayLike | None = None) -> None:
        """Add items at the end; fails and adds none if an id exists already."""
        self.quantiser._check_stored(stored)
        self._items.append(_Bytes(stored.bytes), ids, self._title)

    def remove(self, ids: ArrayLike) -> None:
        """Remove the items with these ids; fails and removes none if an id is unknown."""
        if self._items.remove(ids, self._title):
            self._kept = None

    def search(self, queries: Any, k: int, *, where: Where | None = None) -> Hits:
        """The k nearest items of each query vector, or all of them if there are fewer.

        ``where`` restricts the search to some items: a boolean mask over the items in their order,
        or ids.  Unknown ids match nothing.
        """
        k = check_count(k, f"{self._title}: k")
        scorer = self.quantiser.scorer(queries)
        allowed, n_allowed = self._items.allowed(where, self._title)
        k = min(k, n_allowed)
        kept = self._keep() if k and scorer.looks_up else None
        if kept is None:
            nearest, rows = self._scan(scorer, k, allowed)
        else:
            nearest, rows = scorer.nearest(self._every, kept, k, allowed)
        ids = self._items.ids[rows] if k else rows
        return Hits(np.where(rows == NONE, NONE, ids), nearest)

    def _scan(
        self, scorer: Scorer, k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Distances and rows of the k nearest, block by block."""
        nearest = np.full((len(scorer), k), np.inf, np.float32)
        rows = np.full((len(scorer), k), NONE, np.int64)
        none = np.empty(0, np.bool_)
        for some, block in scorer.blocks(self._every) if k else ():
            may = none if allowed is None else allowed[some]
            _keep_all(block, some.start, may, nearest, rows)
        return nearest, rows

    def rerank(self, hits: Hits, queries: Any, k: int | None = None) -> Hits:
        """The same hits, sorted by estimated distance, equal ones in the order of the hits.

        ``hits`` are the k nearest of another index with the same ids, one row for each query; with
        ``k`` only the first k are given.
        """
        check_type(hits, Hits, f"{self._title}: hits")
        scorer = self.quantiser.scorer(queries)
        check_same_length(len(scorer), len(hits), f"{self._title}: queries and rows of hits")
        if hits.offsets is not None:
            raise InputError(f"{self._title}: rerank needs hits of the k nearest, (n_queries, k).")
        query, place = np.nonzero(hits.ids != NONE)
        rows = self._items.rows_of(hits.ids[query, place])
        if (rows < 0).any():
            raise InputError(
                f"{self._title}: no item has the id {hits.ids[query, place][rows < 0][0]}."
            )
        distances = np.full(hits.ids.shape, np.inf, np.float32)
        distances[query, place] = scorer.of(self._every, query, rows, self._keep())
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return Hits(np.take_along_axis(hits.ids, order, 1), np.take_along_axis(distances, order, 1))

    def rescore(
        self,
        vectors: ArrayLike | QuantisedCodes,
        factor: int = 4,
        *,
        quantiser: Quantiser | None = None,
    ) -> RescoredIndex:
        """A search that finds ``factor`` times as many, and sorts them by their full vectors.

        Row i of ``vectors`` belongs to id i; they can be float32, float16 or int8, in memory or
        mapped from disk, and only the rows found are read.  They can also be what a ``quantiser``
        stored, for instance of :class:`~bittern.quantise.Int8`; then its vectors are decoded.
        """
        full = FullVectors(vectors, self.quantiser, quantiser)
        return RescoredIndex(self, full, check_count(factor, "rescore: factor"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the items to one file; the quantiser has a file of its own."""
        if self._items.compact():
            self._kept = None
        print_ = np.array(self._fingerprint)
        write_arrays(
            path, {"bytes": self._items.words, "fingerprint": print_, "ids": self._items.ids}
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], quantiser: Quantiser) -> Self:
        """Read what :meth:`save` wrote, for the quantiser that made the bytes."""
        arrays = read_arrays(path, ARRAYS)
        with reading(path, "index"):
            stored = QuantisedCodes(arrays["bytes"], str(arrays["fingerprint"]))
            return cls(quantiser, stored, ids=arrays["ids"])

    @property
    def stored(self) -> QuantisedCodes:
        """The bytes of the items, in the order of adding."""
        return QuantisedCodes(self._items.living(self._items.words), self._fingerprint)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids, in the order of adding."""
        return self._items.living(self._items.ids)

    def __len__(self) -> int:
        return self._items.n_alive

    @property
    def _every(self) -> QuantisedCodes:
        """The bytes of all rows, removed ones too."""
        return QuantisedCodes(self._items.words, self._fingerprint)

    def _keep(self) -> Kept | None:
        """What the quantiser keeps of all rows; computed for the rows that are new."""
        n = 0 if self._kept is None else len(self._kept.numbers)
        if n < len(self._items.words):
            new = self.quantiser.keep(self._every[n:])
            if self._kept is not None and new is not None:
                new = Kept(np.concatenate([self._kept.numbers, new.numbers]))
            self._kept = new
        return self._kept

    def __repr__(self) -> str:
        return f"<{self._title} of {len(self):,} items of {self.quantiser.n_bytes_} bytes>"

    @property
    def _title(self) -> str:
        return type(self).__name__


class FullVectors:
    """Rows that sort candidates in the end: numbers, or the bytes of a fine quantiser."""

    def __init__(
        self,
        vectors: ArrayLike | QuantisedCodes,
        by: Quantiser,
        quantiser: Quantiser | None = None,
    ) -> None:
        self._by, self._quantiser = by, quantiser
        self._vectors: Any = vectors
        dim = by.n_features_in_
        if isinstance(vectors, QuantisedCodes):
            if quantiser is None:
                raise InputError("rescore: stored codes need the quantiser that wrote them.")
            quantiser._check_stored(vectors)
            shape: tuple[int, ...] = (len(vectors), quantiser.n_features_in_)
        else:
            self._vectors = check_array(vectors, "rescore: vectors")
            shape = self._vectors.shape
        if len(shape) != 2 or shape[1] != dim:
            raise InputError(f"rescore: vectors must be rows of {dim} numbers, got {shape}.")

    def sort(self, candidates: Hits, queries: Any, k: int) -> Hits:
        """The k nearest of the candidates of each query, by the distance of full vectors."""
        found = np.unique(candidates.ids[candidates.ids != NONE])
        if len(found) and found[-1] >= len(self._vectors):
            check_same_length(len(self._vectors), int(found[-1]) + 1, "rescore: vectors and ids")
        rows = np.empty((0, self._by.n_features_in_), np.float32)
        if len(found):
            some = self._vectors[found]
            rows = np.asarray(self._quantiser.decode(some) if self._quantiser else some, np.float32)
        by = DISTANCES[self._by.metric]
        best = rerank(candidates, self._by._rows(queries), rows, distance=by, ids=found)
        return Hits(best.ids[:, :k], best.distances[:, :k])


class RescoredIndex:
    """An index whose best candidates are sorted by their full vectors."""

    def __init__(self, index: QuantisedIndex, full: FullVectors, factor: int) -> None:
        self.index = index
        self.full = full
        self.factor = factor

    def search(self, queries: Any, k: int, *, where: Where | None = None) -> Hits:
        """The k nearest of the ``factor * k`` candidates, by the distance of full vectors."""
        k = check_count(k, "rescore: k")
        candidates = self.index.search(queries, self.factor * k, where=where)
        return self.full.sort(candidates, queries, k)


class _Bytes(NamedTuple):
    """Rows of bytes as :class:`IndexedItems` takes them."""

    words: NDArray[np.uint8]

    @property
    def n_bits(self) -> int:
        return 8 * self.words.shape[1]

    def __len__(self) -> int:
        return len(self.words)


def _keep_all(
    block: NDArray[np.float32],
    first: int,
    allowed: NDArray[np.bool_],
    nearest: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Insert a block of distances, some queries in each thread."""
    step = max(1, -(-len(block) // 16))
    run_blocks(
        lambda some: keep_nearest(block[some], first, allowed, nearest[some], rows[some]),
        [slice(q, q + step) for q in range(0, len(block), step)],
    )
