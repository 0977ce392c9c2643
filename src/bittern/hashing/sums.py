"""Hashers that can learn from sums over rows, so that the rows never have to meet in one place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.codes import MAX_BITS
from bittern.hashing.linear import LinearHasher, axes_of_scatter


class RowSums(ABC):
    """Sums over training rows x, and over their indicators y, wherever the rows are."""

    n: int  # rows
    dim: int
    eps: float  # the precision of the rows

    @property
    @abstractmethod
    def mean(self) -> Float64Array:
        """The mean of the rows, ``(dim,)``."""

    @property
    @abstractmethod
    def scatter(self) -> Float64Array:
        """The sum of ``(x - mean) (x - mean)ᵀ``, ``(dim, dim)``."""

    @property
    @abstractmethod
    def target_scatters(self) -> tuple[Float64Array, Float64Array]:
        """The sums of ``(x - mean) (y - mean)ᵀ`` and of ``(y - mean) (y - mean)ᵀ``."""

    @abstractmethod
    def rotations(
        self, axes: Float64Array, n_bits: int, n_iter: int, rng: np.random.Generator, title: str
    ) -> Iterator[Float64Array]:
        """The rotations of :func:`bittern.hashing.itq.rotations` for ``(x - mean) @ axes``."""

    def principal_axes(self, n: int) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Mean, axes and variances, as :func:`bittern.hashing.linear.principal_axes`."""
        return self.mean, *axes_of_scatter(self.scatter, self.n, n, self.eps)


class SumHasher(LinearHasher):
    """A linear hasher that learns from rows, or from sums over rows that are elsewhere."""

    def fit_sums(self, sums: RowSums) -> Self:
        """Learn the hash functions from sums; the same as :meth:`fit` on the rows, up to rounding.

        :func:`bittern.scale.fit` calls it with sums over shards.
        """
        check_count(self.n_bits, f"{self._title}: n_bits", 1, MAX_BITS)
        self._generator()  # checks random_state
        self.n_features_in_ = sums.dim
        self._learn_anew(lambda: self._fit_sums(sums))
        return self

    @abstractmethod
    def _fit_sums(self, sums: RowSums) -> None:
        """Learn from sums, and call :meth:`_keep`."""
