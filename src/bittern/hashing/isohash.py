"""Isotropic hashing: rotated principal components of equal variance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.hashing.base import Rows
from bittern.hashing.itq import random_rotation
from bittern.hashing.linear import principal_axes
from bittern.hashing.sums import RowSums, SumHasher
from bittern.hashing.targets import Targets
from bittern.parallel import interruptible
from bittern.progress import track

TOLERANCE = 1e-9  # relative difference of variances that counts as 0


class IsoHash(SumHasher):
    r"""Rotate the principal components so that all have the same variance.

    With Λ the variances of the ``n_bits`` leading principal components and a their mean, find an
    orthogonal R such that every diagonal entry of :math:`R^\top \Lambda R` is a.  Such an R
    exists; it belongs to a point in both sets

    .. math:: M = \{ R^\top \Lambda R : R^\top R = I \}, \qquad
        T = \{ S = S^\top : \operatorname{diag} S = a \},

    and lift and projection finds it: from a random Z in M, replace the diagonal by a (the nearest S
    in T), then the eigenvalues of S by those of Λ, in order (the nearest Z in M).  The distance
    between the two sets never grows.  Repeats ``n_iter`` times, or until the variances are equal.

    If the rows vary in fewer directions than there are bits, the other variances are 0.

    Reference: [Kong-Li-2012b].
    """

    name = "isohash"
    cost_power = 3

    def __init__(self, n_bits: int = 32, *, n_iter: int = 100, random_state: int | None = 0):
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        self._rotate(*principal_axes(X, self.n_bits))

    def _fit_sums(self, sums: RowSums) -> None:
        self._rotate(*sums.principal_axes(self.n_bits))

    def _rotate(self, mean: Float64Array, axes: Float64Array, variances: Float64Array) -> None:
        check_count(self.n_iter, f"{self._title}: n_iter")
        rng = self._generator()
        for R in lift_and_project(variances, self.n_iter, rng, f"{self._title}: rotating"):
            self._keep(mean_=mean, projection_=axes @ R)


def lift_and_project(
    variances: Float64Array, n_iter: int, rng: np.random.Generator, title: str
) -> Iterator[Float64Array]:
    r"""Orthogonal R for which the diagonal of :math:`R^\top \Lambda R` becomes more and more equal.

    ``variances`` are the diagonal of Λ, the largest first.
    """
    a = variances.mean()
    n = len(variances)
    R = random_rotation(n, rng)
    Z = interruptible(lambda: (R.T * variances) @ R, n)
    yield R
    for _ in track(range(n_iter), title):
        if np.abs(np.diagonal(Z) - a).max() <= TOLERANCE * a:
            break
        np.fill_diagonal(Z, a)  # the nearest in T
        R, Z = interruptible(partial(_nearest_with, Z, variances), n)
        yield R


def _nearest_with(Z: Float64Array, variances: Float64Array) -> tuple[Float64Array, Float64Array]:
    """R and the matrix Rᵀ Λ R that is nearest to Z, in M."""
    R = np.linalg.eigh(Z)[1][:, ::-1].T
    return R, (R.T * variances) @ R
