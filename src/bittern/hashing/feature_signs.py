"""Bits that are the signs of a feature's own numbers, as in perceptual hashes."""

from __future__ import annotations

import numpy as np

from bittern.errors import InputError
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.targets import Targets


class FeatureSigns(Hasher):
    """Bit k of a row is 1 if its number k is above 0; learns nothing.

    A row has ``n_bits`` numbers.  It is the hasher of collections whose feature is a perceptual
    hash; as it does not make codes of any length, it is not among ``HASHERS``.
    """

    name = "feature-signs"

    n_numbers_: int

    def __init__(self, n_bits: int = 64, *, random_state: int | None = 0):
        self.n_bits = n_bits
        self.random_state = random_state

    @classmethod
    def of_length(cls, n_bits: int) -> FeatureSigns:
        """A hasher that is ready for rows of so many numbers."""
        return cls(n_bits).fit(np.zeros((1, n_bits)))

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        if X.shape[1] != self.n_bits:
            raise InputError(
                f"{self._title}: rows must have n_bits = {self.n_bits} numbers, got {X.shape[1]}."
            )
        self._keep(n_numbers_=X.shape[1])

    def _logits(self, X: Rows) -> Rows:
        return X
