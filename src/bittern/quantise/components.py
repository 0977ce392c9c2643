r"""Principal components, and how many bits each of them gets.

With :math:`e = x - \hat x`, an estimate is :math:`|q - \hat x|^2 = |q - x|^2
+ 2 \langle q - x, e \rangle + |e|^2`.  What matters for the first ranks is e along the differences
:math:`q - x` of near rows, and these differ less along large components than rows at large do.  So
the squared error of component j is weighted by :math:`\sqrt{w_j}`, where :math:`w_j` is the mean
squared difference of near training rows: half-way to the plain error, which the last term asks for.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array
from bittern.hashing.linear import principal_axes
from bittern.quantise.base import squared_float32
from bittern.quantise.corrected import CorrectedQuantiser

N_NEAR = 30  # rows near each of some others
N_AMONG = (500, 10_000)  # these others, and the rows among which they are near
LEAST = 1e-6  # weight of a component, as a share of the mean


def water_filling(
    variances: Float64Array, distortions: Float64Array, n_bits: int
) -> NDArray[np.int64]:
    """Bits of each component: every next bit goes where it lowers the distortion most.

    ``distortions[b]`` is what b bits leave of a component's variance.  This is reverse
    water-filling: components of small variance get no bit, and the others are left with about the
    same distortion.  Gains shrink with every bit, so taking the largest first is optimal.
    """
    gains = np.outer(variances, distortions[:-1] - distortions[1:])
    n_bits = min(n_bits, int((gains > 0).sum()))
    order = np.argsort(-gains, axis=None, kind="stable")[:n_bits]
    return np.bincount(order // gains.shape[1], minlength=len(variances))


class ComponentQuantiser(CorrectedQuantiser):
    """Codes principal components, each with its own number of bits and its own scale."""

    axes_: Float32Array  # (dim, k), of the components that have bits
    n_bits_: NDArray[np.int64]  # (k,)
    scales_: Float32Array  # (k,), standard deviations
    weights_: Float32Array  # (k,), roots of the weights of squared errors
    _near: Float32Array | None  # (dim, dim), moments of near differences; forgotten after training

    def __init__(
        self,
        n_bytes: int = 32,
        *,
        metric: str = "euclidean",
        centres: Any = "auto",
        correction: Any = "auto",
        random_state: int | None = 0,
    ):
        self.n_bytes = n_bytes
        self.metric = metric
        self.centres = centres
        self.correction = correction
        self.random_state = random_state

    @property
    @abstractmethod
    def _distortions(self) -> Float64Array:
        """What 0, 1, … bits leave of a Gaussian's variance."""

    def _look(self, X: Float32Array, draw: np.random.Generator) -> None:
        self._near = None if self.metric == "inner-product" else near_moments(X, draw)

    def _forget(self) -> None:
        super()._forget()
        del self._near

    def _prepare(self, residuals: Float32Array, draw: np.random.Generator) -> None:
        axes, variances = principal_axes(residuals, residuals.shape[1])[1:]
        weights = np.ones(len(variances))
        if self._near is not None:
            weights = np.einsum("ij,ij->j", axes, self._near @ axes)
            weights = np.sqrt(np.maximum(weights, LEAST * weights.mean()))
        self._space = axes, variances, weights / (weights.mean() or 1.0)

    def _allocate(self, n_bytes: int, draw: np.random.Generator) -> None:
        axes, variances, weights = self._space
        n_bits = water_filling(weights * variances, self._distortions, 8 * n_bytes)
        used = np.argsort(weights * variances, kind="stable")  # those that count least first
        used = used[n_bits[used] > 0]
        self.axes_ = np.ascontiguousarray(axes[:, used], np.float32)
        self.n_bits_ = n_bits[used]
        self.scales_ = np.sqrt(variances[used]).astype(np.float32)
        self.weights_ = np.sqrt(weights[used]).astype(np.float32)

    def _check_learned(self) -> None:
        """Compiled loops believe these numbers."""
        super()._check_learned()
        b, k = self.n_bits_, len(self.n_bits_)
        if b.ndim != 1 or b.dtype.kind not in "iu" or (b < 1).any():
            raise ValueError("n_bits_ must be whole numbers, 1 or more")
        if (b >= len(self._distortions)).any():
            raise ValueError(f"n_bits_ must be at most {len(self._distortions) - 1}")
        for name, shape in (("axes_", (self.n_features_in_, k)), ("scales_", (k,))):
            array = getattr(self, name)
            if array.dtype != np.float32 or array.shape != shape:
                raise ValueError(f"{name} must be float32 of shape {shape}")

    @property
    def _n_payload(self) -> int:
        """Bytes of a code."""
        return -(-int(self.n_bits_.sum()) // 8)

    def _projected(self, X: Float32Array) -> Float32Array:
        return X @ self.axes_

    def _unprojected(self, values: Float32Array) -> Float32Array:
        return values @ self.axes_.T


def near_moments(X: Float32Array, draw: np.random.Generator) -> Float32Array:
    """The mean outer product of the differences of near rows, ``(dim, dim)``."""
    order = draw.permutation(len(X))[: sum(N_AMONG)]
    some, among = np.split(order, [min(N_AMONG[0], len(order) // 5)])
    some, among = (some, among) if len(some) else (order, order)
    n_near = min(N_NEAR, len(among))
    gaps = squared_float32(X[among]) - 2 * X[some] @ X[among].T
    near = np.argpartition(gaps, n_near - 1, axis=1)[:, :n_near]
    moments = np.zeros((X.shape[1], X.shape[1]), np.float32)
    for row, places in zip(X[some], near, strict=True):
        apart = X[among[places]] - row
        moments += apart.T @ apart
    return moments / np.float32(near.size)
