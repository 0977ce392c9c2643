"""Random hyperplanes and two other random hash functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.hashing.base import Bits, Hasher, Rows, check_number
from bittern.hashing.linear import LinearHasher
from bittern.hashing.targets import Targets

__all__ = ["LSH"]


class LSH(LinearHasher):
    r"""Random hyperplanes: bit k of x is 1 if :math:`w_k^\top (x - \bar x) > 0`, w normal.

    Two rows at angle θ (seen from the mean of the training rows) differ in a bit with probability
    θ/π [Charikar-2002]; ``centre=False`` sees them from the origin, as LSH for cosines does.

    Reference: [Gionis-Indyk-Motwani-1999].
    """

    name = "lsh"

    def __init__(self, n_bits: int = 32, *, centre: bool = True, random_state: int | None = 0):
        self.n_bits = n_bits
        self.centre = centre
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        dim = X.shape[1]
        mean = X.mean(axis=0, dtype=np.float64) if self.centre else np.zeros(dim)
        projection = self._generator().standard_normal((dim, self.n_bits))
        self._keep(mean_=mean, projection_=projection)
