"""The base class of your own cross-modal hash functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from bittern.hashing.base import Bits, Rows
from bittern.hashing.crossmodal.base import CrossModalHasher, Modality
from bittern.hashing.custom import check_bits, check_learned
from bittern.hashing.targets import Targets


class CustomCrossModalHasher(CrossModalHasher):
    """A cross-modal hash function of your own.

    A subclass writes a constructor, :meth:`learn` and :meth:`bits`, as for
    :class:`~bittern.hashing.CustomHasher`.
    """

    @abstractmethod
    def learn(self, images: Rows, texts: Rows, targets: Targets | None) -> Mapping[str, Any]:
        """What was learned from pairs, by name; the names end in ``_`` and become attributes."""

    @abstractmethod
    def bits(self, rows: Rows, modality: Modality) -> Bits:
        """The bits of images or of texts, ``(n, n_bits)`` booleans."""

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        self._keep(**check_learned(self.learn(images, texts, targets), self._title))

    def _bits(self, rows: Rows, modality: Modality) -> Bits:
        bits = self.bits(rows, modality)
        return check_bits(bits, (len(rows), self.n_stored_bits), self._title)
