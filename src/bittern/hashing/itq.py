"""Iterative quantisation: principal components, rotated towards their signs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.hashing.base import Rows
from bittern.hashing.linear import principal_axes
from bittern.hashing.sums import RowSums, SumHasher
from bittern.hashing.targets import Targets
from bittern.parallel import interruptible
from bittern.progress import track


class ITQ(SumHasher):
    r"""Rotate the principal components so that taking signs loses least.

    For the training rows V in their ``n_bits`` leading principal components, alternate between the
    two factors of

    .. math:: \min_{B \in \{-1, 1\}^{n \times b},\; R^\top R = I} \lVert B - V R \rVert_F^2

    from a random rotation: the best B for an R is the signs of VR; the best R for a B is the
    orthogonal factor of :math:`V^\top B`.  Repeats ``n_iter`` times, or until no sign changes.

    If the rows vary in only r < b directions, the other columns of V are 0, so only the first r
    rows of R matter; they stay orthonormal.

    Reference: [Gong-Lazebnik-2011].
    """

    name = "itq"
    cost_power = 3

    def __init__(self, n_bits: int = 32, *, n_iter: int = 50, random_state: int | None = 0):
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        check_count(self.n_iter, f"{self._title}: n_iter")
        rng = self._generator()
        mean, axes, variances = principal_axes(X, self.n_bits)
        axes = axes[:, : np.count_nonzero(variances)]
        V = (X - mean) @ axes
        for R in rotations(V, self.n_bits, self.n_iter, rng, f"{self._title}: rotating"):
            self._keep(mean_=mean, projection_=axes @ R)

    def _fit_sums(self, sums: RowSums) -> None:
        check_count(self.n_iter, f"{self._title}: n_iter")
        rng = self._generator()
        mean, axes, variances = sums.principal_axes(self.n_bits)
        axes = axes[:, : np.count_nonzero(variances)]
        for R in sums.rotations(axes, self.n_bits, self.n_iter, rng, f"{self._title}: rotating"):
            self._keep(mean_=mean, projection_=axes @ R)


def rotations(
    V: Float64Array, n_bits: int, n_iter: int, rng: np.random.Generator, title: str
) -> Iterator[Float64Array]:
    r"""Yield R ``(r, n_bits)`` with orthonormal rows that bring VR closer and closer to its signs.

    V is ``(n, r)`` with r ≤ ``n_bits``.  The first R is random; each next one is the best for the
    signs of the previous one.  Ends before ``n_iter`` steps if a step changes no sign.
    """
    positive = np.empty((0, 0), np.bool_)

    def product(R: Float64Array, before: Float64Array | None) -> tuple[Float64Array, bool]:
        nonlocal positive
        last, positive = positive, V @ R > 0
        return V.T @ np.where(positive, 1.0, -1.0), not np.array_equal(last, positive)

    return rotations_by(product, V.shape[1], n_bits, n_iter, rng, title)


Product = Callable[[Float64Array, Float64Array | None], tuple[Float64Array, bool]]


def rotations_by(
    product: Product, r: int, n_bits: int, n_iter: int, rng: np.random.Generator, title: str
) -> Iterator[Float64Array]:
    """The same for a V that need not be in one place.

    ``product(R, before)`` gives VᵀB, a sum over rows, for the signs B of VR, and whether they
    differ from those of the rotation before, if there was one.
    """
    R = random_rotation(n_bits, rng)[:r]
    M, _ = product(R, None)
    yield R
    for _ in track(range(n_iter), title):
        before, R = R, nearest_orthogonal(M)
        yield R
        M, is_changed = product(R, before)
        if not is_changed:
            break


def nearest_orthogonal(M: Float64Array) -> Float64Array:
    """The matrix with orthonormal rows nearest to M ``(r, n_bits)``: orthogonal Procrustes."""
    left, _, right = interruptible(lambda: np.linalg.svd(M, full_matrices=False), min(M.shape))
    return left @ right


def random_rotation(n: int, rng: np.random.Generator) -> Float64Array:
    """An orthogonal matrix ``(n, n)``, of a random one."""
    drawn = rng.standard_normal((n, n))
    return interruptible(lambda: np.linalg.qr(drawn)[0], n)
