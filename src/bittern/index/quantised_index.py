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
from bittern.quantise import QuantisedCodes, Quantiser

ARRAYS = ("bytes", "fingerprint", "ids")
DISTANCES = {"euclidean": "l2", "cosine": "cosine", "inner-product": "inner-product"}  # of rerank


class QuantisedIndex:
    """The bytes of items with their ids, and the items nearest to a query by estimated distance.

    The search is exact: it finds the items with the smallest estimates, and of equal ones those
    that were added first.  Ids are distinct whole numbers from 0; by default they continue from the
    largest so far.

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
        self._items.remove(ids, self._title)

    def search(self, queries: Any, k: int, *, where: Where | None = None) -> Hits:
        """The k nearest items of each query vector, or all of them if there are fewer.

        ``where`` restricts the search to some items: a boolean mask over the items in their order,
        or ids.  Unknown ids match nothing.
        """
        k = check_count(k, f"{self._title}: k")
        scorer = self.quantiser.scorer(queries)
        allowed, n_allowed = self._items.allowed(where, self._title)
        k = min(k, n_allowed)
        nearest = np.full((len(scorer), k), np.inf, np.float32)
        rows = np.full((len(scorer), k), NONE, np.int64)
        if k:
            every = QuantisedCodes(self._items.words, self._fingerprint)
            none = np.empty(0, np.bool_)
            for some, block in scorer.blocks(every):
                may = none if allowed is None else allowed[some]
                _keep_all(block, some.start, may, nearest, rows)
        ids = self._items.ids[rows] if k else rows
        return Hits(np.where(rows == NONE, NONE, ids), nearest)

    def rescore(self, vectors: ArrayLike, factor: int = 4) -> RescoredIndex:
        """A search that finds ``factor`` times as many, and sorts them by their full vectors.

        Row i of ``vectors`` belongs to id i; they can be float32, float16 or int8, in memory or
        mapped from disk, and only the rows found are read.
        """
        return RescoredIndex(self, vectors, factor)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the items to one file; the quantiser has a file of its own."""
        self._items.compact()
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

    def __repr__(self) -> str:
        return f"<{self._title} of {len(self):,} items of {self.quantiser.n_bytes_} bytes>"

    @property
    def _title(self) -> str:
        return type(self).__name__


class RescoredIndex:
    """An index whose best candidates are sorted by their full vectors."""

    def __init__(self, index: QuantisedIndex, vectors: ArrayLike, factor: int) -> None:
        self.index = index
        self.factor = check_count(factor, "rescore: factor")
        self.vectors = check_array(vectors, "rescore: vectors")
        dim = index.quantiser.n_features_in_
        if self.vectors.ndim != 2 or self.vectors.shape[1] != dim:
            raise InputError(
                f"rescore: vectors must be rows of {dim} numbers, got {self.vectors.shape}."
            )

    def search(self, queries: Any, k: int, *, where: Where | None = None) -> Hits:
        """The k nearest of the ``factor * k`` candidates, by the distance of full vectors."""
        k = check_count(k, "rescore: k")
        candidates = self.index.search(queries, self.factor * k, where=where)
        q = self.index.quantiser._rows(queries)
        found = np.unique(candidates.ids[candidates.ids != NONE])
        if len(found) and found[-1] >= len(self.vectors):
            check_same_length(len(self.vectors), int(found[-1]) + 1, "rescore: vectors and ids")
        distance = DISTANCES[self.index.quantiser.metric]
        rows = np.asarray(self.vectors[found], np.float32)
        sorted_hits = rerank(candidates, q, rows, distance=distance, ids=found)
        return Hits(sorted_hits.ids[:, :k], sorted_hits.distances[:, :k])


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
