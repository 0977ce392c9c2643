"""CascadeIndex: candidates by Hamming distance, sorted by a quantiser, then by full vectors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count, check_type
from bittern.errors import FileError
from bittern.hashing import Hasher
from bittern.hashing import load as load_hasher
from bittern.index.hits import Hits
from bittern.index.items import Where
from bittern.index.multi_index import MultiIndex
from bittern.index.quantised_index import FullVectors, QuantisedIndex
from bittern.quantise import QuantisedCodes, Quantiser
from bittern.quantise import load as load_quantiser

FILES = ("hasher.npz", "quantiser.npz", "codes.npz", "bytes.npz")


class CascadeIndex:
    """Three steps of search, each over fewer items and more exact than the one before.

    1. :class:`~bittern.MultiIndex` finds ``candidates`` times k items by Hamming distance of the
       codes of ``hasher``, without comparing everything;
    2. ``quantiser`` keeps ``factor`` times k of them, by estimated distance;
    3. full vectors sort those, if there are any (:meth:`rescore`); otherwise the estimates do.

    Both models are fitted before, on the same rows.  Ids are distinct whole numbers from 0; by
    default they continue from the largest so far.

    >>> import numpy as np, bittern as bt
    >>> X = np.random.default_rng(0).standard_normal((2000, 32))
    >>> hasher, quantiser = bt.hashing.ITQ(32).fit(X), bt.quantise.Int8().fit(X)
    >>> index = CascadeIndex(hasher, quantiser, X)
    >>> index.rescore(X).search(X[:2], k=1).ids.ravel()
    array([0, 1])
    """

    def __init__(
        self,
        hasher: Hasher,
        quantiser: Quantiser,
        X: Any = None,
        *,
        ids: ArrayLike | None = None,
        candidates: int = 100,
        factor: int = 4,
    ) -> None:
        check_type(hasher, Hasher, f"{self._title}: hasher")
        self.hasher = hasher
        self.candidates = check_count(candidates, f"{self._title}: candidates")
        self.factor = check_count(factor, f"{self._title}: factor")
        self._codes = MultiIndex()
        self._stored = QuantisedIndex(quantiser)
        self._full: FullVectors | None = None
        if X is not None:
            self.add(X, ids)

    def add(self, X: Any, ids: ArrayLike | None = None) -> None:
        """Add vectors at the end; fails and adds none if an id exists already."""
        codes, stored = self.hasher.encode(X), self._stored.quantiser.encode(X)
        self._codes.add(codes, ids)
        self._stored.add(stored, self._codes.ids[-len(codes) :])

    def remove(self, ids: ArrayLike) -> None:
        """Remove the items with these ids; fails and removes none if an id is unknown."""
        self._codes.remove(ids)
        self._stored.remove(ids)

    def rescore(
        self, vectors: ArrayLike | QuantisedCodes, *, quantiser: Quantiser | None = None
    ) -> Self:
        """Let full vectors decide in the end, as in :meth:`QuantisedIndex.rescore`."""
        self._full = FullVectors(vectors, self._stored.quantiser, quantiser)
        return self

    def search(self, queries: Any, k: int, *, where: Where | None = None) -> Hits:
        """The k nearest that the three steps find; ``where`` as in :meth:`Index.search`."""
        k = check_count(k, f"{self._title}: k")
        n = max(self.candidates, self.factor) * k
        found = self._codes.search(self.hasher.encode(queries), n, where=where)
        if self._full is None:
            return self._stored.rerank(found, queries, k)
        return self._full.sort(self._stored.rerank(found, queries, self.factor * k), queries, k)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write models and items to files of a folder; full vectors are not among them."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        parts: tuple[Any, ...] = self.hasher, self._stored.quantiser, self._codes, self._stored
        for name, part in zip(FILES, parts, strict=True):
            part.save(place / name)

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, candidates: int = 100, factor: int = 4
    ) -> Self:
        """Read what :meth:`save` wrote; fails if the files do not belong together."""
        hasher, quantiser, codes, stored = (Path(folder) / name for name in FILES)
        index = cls(
            load_hasher(hasher), load_quantiser(quantiser), candidates=candidates, factor=factor
        )
        index._codes = MultiIndex.load(codes)
        index._stored = QuantisedIndex.load(stored, index._stored.quantiser)
        if not np.array_equal(index._codes.ids, index._stored.ids):
            raise FileError(f"{folder}: its codes and bytes are not of the same items.")
        return index

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids, in the order of adding."""
        return self._codes.ids

    def __len__(self) -> int:
        return len(self._codes)

    def __repr__(self) -> str:
        quantiser = self._stored.quantiser
        return f"<{self._title} of {len(self):,} items: {self.hasher.name}, then {quantiser.name}>"

    @property
    def _title(self) -> str:
        return type(self).__name__
