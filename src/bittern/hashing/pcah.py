"""PCA hashing: signs of the principal components."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array
from bittern.hashing.base import Rows
from bittern.hashing.linear import principal_axes
from bittern.hashing.sums import RowSums, SumHasher
from bittern.hashing.targets import Targets


class PCAH(SumHasher):
    r"""Signs of the principal components.

    Bit k of x is 1 if :math:`a_k^\top (x - \bar x) > 0`, with :math:`a_k` the direction of the k-th
    largest variance of the training rows.

    If the rows vary in fewer directions than there are bits, the other bits are random hyperplanes
    within those directions: :math:`\sum_k g_k a_k` with g standard normal.

    Reference: [Wang-Zhang-Jing-Ma-2006].
    """

    name = "pcah"

    def __init__(self, n_bits: int = 32, *, random_state: int | None = 0):
        self.n_bits = n_bits
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        self._keep_axes(*principal_axes(X, self.n_bits))

    def _fit_sums(self, sums: RowSums) -> None:
        self._keep_axes(*sums.principal_axes(self.n_bits))

    def _keep_axes(self, mean: Float64Array, axes: Float64Array, variances: Float64Array) -> None:
        rank = int(np.count_nonzero(variances))
        mixtures = self._generator().standard_normal((rank, self.n_bits - rank))
        axes[:, rank:] = axes[:, :rank] @ mixtures
        self._keep(mean_=mean, projection_=axes)
