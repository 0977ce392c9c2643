"""Each number by itself: as 8 bits between bounds, or as 16-bit floating point."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.errors import InputError
from bittern.quantise.base import Quantiser
from bittern.quantise.stored import Bytes

STEPS = 255


class _FirstColumns(Quantiser):
    """Keeps the first columns, as many as fit in ``n_bytes``; all if that is None."""

    bits_each: ClassVar[int]  # of a number

    n_columns_: int

    def __init__(
        self,
        n_bytes: int | None = None,
        *,
        metric: str = "euclidean",
        random_state: int | None = 0,
    ):
        self.n_bytes = n_bytes
        self.metric = metric
        self.random_state = random_state

    def _learn(self, X: Float32Array, draw: np.random.Generator) -> None:
        self.centres_ = np.zeros((1, X.shape[1]), np.float32)
        self.n_columns_ = first_columns(self.n_bytes, X.shape[1], self.bits_each, self._title)

    def _projected(self, X: Float32Array) -> Float32Array:
        return X[:, : self.n_columns_]

    def _unprojected(self, values: Float32Array) -> Float32Array:
        return np.pad(values, ((0, 0), (0, self.n_features_in_ - values.shape[1])))


class Int8(_FirstColumns):
    """Each number as one of 256 values between the least and the largest of its column.

    ``n_bytes`` keeps the first columns only, for embeddings whose first numbers matter most; None
    keeps all.  Numbers beyond those of the training rows are clipped.
    """

    name = "int8"
    bits_each = 8

    low_: Float32Array  # (k,)
    step_: Float32Array  # (k,)

    def _learn(self, X: Float32Array, draw: np.random.Generator) -> None:
        super()._learn(X, draw)
        kept = self._projected(X)
        self.low_ = kept.min(axis=0)
        self.step_ = (kept.max(axis=0) - self.low_) / STEPS

    def _payload(self, residuals: Float32Array) -> Bytes:
        gaps = self._projected(residuals) - self.low_
        steps = np.divide(gaps, self.step_, out=np.zeros_like(gaps), where=self.step_ > 0)
        return np.clip(np.rint(steps), 0, STEPS).astype(np.uint8)

    def _values(self, payload: Bytes) -> Float32Array:
        return self.low_ + payload * self.step_


class Float16(_FirstColumns):
    """Each number in 16-bit floating point; ``n_bytes`` keeps the first columns only."""

    name = "float16"
    bits_each = 16

    def _payload(self, residuals: Float32Array) -> Bytes:
        with np.errstate(over="ignore"):
            short = np.ascontiguousarray(self._projected(residuals).astype("<f2"))
        if not np.isfinite(short).all():
            raise InputError(f"{self._title}: some numbers are beyond 65,504; scale the rows.")
        return short.view(np.uint8).reshape(len(short), -1)

    def _values(self, payload: Bytes) -> Float32Array:
        return np.ascontiguousarray(payload).view("<f2").astype(np.float32)


def first_columns(n_bytes: int | None, dim: int, bits_each: int, title: str) -> int:
    """How many columns fit in so many bytes; all if None."""
    if n_bytes is None:
        return dim
    fit = 8 * check_count(n_bytes, f"{title}: n_bytes") // bits_each
    if fit < 1:
        raise InputError(
            f"{title}: {n_bytes} bytes hold no number; give at least {bits_each // 8}."
        )
    return min(fit, dim)
