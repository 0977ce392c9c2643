"""RaBitQ: randomly rotated directions on a grid, with an unbiased estimate and a bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.hashing.linear import principal_axes
from bittern.kernels.grid_directions import nearest_directions
from bittern.quantise.base import squared_float32
from bittern.quantise.corrected import CorrectedQuantiser
from bittern.quantise.correction import N_BYTES, from_bytes
from bittern.quantise.stored import Bytes, QuantisedCodes

EPSILON = 1.9  # ε₀ of the bound


class RaBitQ(CorrectedQuantiser):
    r"""The direction of a residual, rotated at random, as the nearest one of a grid.

    With ``bits`` = B bits a dimension, the grid has the half-integers from
    :math:`-(2^B - 1)/2` to :math:`(2^B - 1)/2` in every dimension, and the code is the grid
    vector y with the largest cosine f to the residual r.  B = 1 keeps the signs.  With two bytes
    for the length of r and for f, the product with a query is estimated as

    .. math:: \langle q, r \rangle \approx \frac{|r|}{f\,|y|} \langle q, y \rangle,

    which is unbiased over rotations [Gao-Long-2024], and [Gao-2024] for B > 1.  If ``n_bytes`` hold
    fewer than B bits for every dimension, principal components come first.

    ``fitted`` chooses γ and β of the :mod:`~bittern.quantise.correction` on training rows instead
    (γ = −1 and β = 1 are those of RaBitQ); then there is no bound.  ``centres`` as in
    :class:`~bittern.quantise.TCQ`.
    """

    name = "rabitq"

    axes_: Float32Array  # (dim, k)

    def __init__(
        self,
        n_bytes: int = 32,
        *,
        bits: int = 1,
        metric: str = "euclidean",
        centres: Any = False,
        fitted: bool = False,
        random_state: int | None = 0,
    ):
        self.n_bytes = n_bytes
        self.bits = bits
        self.metric = metric
        self.centres = centres
        self.fitted = fitted
        self.random_state = random_state

    def error_bounds(self, queries: Any, stored: QuantisedCodes) -> Float32Array:
        r"""A bound ``(n_queries, n)`` on the error of each estimated distance, for most pairs.

        The product with a unit vector errs by at most :math:`\sqrt{(1 - f^2)/f^2}\,
        \varepsilon_0/\sqrt{k - 1}` with :math:`\varepsilon_0 = 1.9`, if all k dimensions are kept.
        """
        self._check_stored(stored)
        rows = self._rows(queries)
        groups, payload = self._divided(stored.bytes[:, :-N_BYTES])
        found = from_bytes(stored.bytes[:, -N_BYTES:], self.bounds_)
        apart = np.sqrt(1 / np.square(found.cosines) - 1) * EPSILON
        apart /= np.sqrt(max(1, self.axes_.shape[1] - 1))
        gaps = np.stack([np.linalg.norm(rows - centre, axis=1) for centre in self.centres_])
        lengths = found.ratios * np.sqrt(squared_float32(self._values(payload)))
        bound = gaps[groups].T * (lengths * apart)
        return np.asarray(bound * (2 if self.metric == "euclidean" else 1), np.float32)

    @property
    def correction(self) -> bool:
        """RaBitQ always has the two bytes."""
        return True

    @property
    def _powers(self) -> tuple[float, ...]:
        return super()._powers if self.fitted else (-1.0,)

    @property
    def _shares(self) -> tuple[float, ...]:
        return super()._shares if self.fitted else (1.0,)

    def _prepare(self, residuals: Float32Array, draw: np.random.Generator) -> None:
        check_count(self.bits, f"{self._title}: bits", 1, 8)
        self._space = residuals

    def _allocate(self, n_bytes: int, draw: np.random.Generator) -> None:
        residuals: Float32Array = self._space
        dim = residuals.shape[1]
        k = max(1, min(dim, 8 * n_bytes // self.bits))
        rotation = np.linalg.qr(draw.standard_normal((k, k)))[0]
        if k < dim:
            rotation = principal_axes(residuals, k)[1] @ rotation
        self.axes_ = rotation.astype(np.float32)

    def _projected(self, X: Float32Array) -> Float32Array:
        return X @ self.axes_

    def _unprojected(self, values: Float32Array) -> Float32Array:
        return values @ self.axes_.T

    def _payload(self, residuals: Float32Array) -> Bytes:
        numbers = nearest_directions(self._projected(residuals), self.bits)
        shifts = np.arange(self.bits - 1, -1, -1, dtype=np.uint8)
        bits = (numbers[:, :, None] >> shifts) & 1
        return np.packbits(bits.reshape(len(numbers), -1), axis=1)

    def _values(self, payload: Bytes) -> Float32Array:
        k = self.axes_.shape[1]
        bits = np.unpackbits(payload, axis=1, count=k * self.bits).reshape(-1, k, self.bits)
        weights = (1 << np.arange(self.bits - 1, -1, -1)).astype(np.float32)
        return bits @ weights - np.float32((2**self.bits - 1) / 2)
