"""Hashers whose bits say on which side of a hyperplane a row is; and principal axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.checks import Float64Array
from bittern.data.steps import check_rows
from bittern.hashing.base import Bits, Hasher, Rows

SLACK = 16  # rounding errors of a sum of products that count as 0


class LinearHasher(Hasher):
    """Bit k of x is 1 if ``(x - mean_) @ projection_[:, k] > 0``."""

    mean_: Float64Array  # (dim,)
    projection_: Float64Array  # (dim, n_bits)

    def _logits(self, X: Rows) -> Rows:
        with np.errstate(invalid="ignore", over="ignore"):
            found = margins(X, self.mean_, self.projection_)
        if np.isfinite(found).all():
            return found
        return margins(X.astype(np.float64), self.mean_, self.projection_)

    def _checked_bits(self, X: Any) -> Bits:
        """Look for infinity and NaN in the products, which are far fewer than the entries."""
        rows = check_rows(self, X, sparse=False, finite=False)
        with np.errstate(invalid="ignore", over="ignore"):
            products = rows @ self.projection_.astype(rows.dtype)
        if np.isfinite(products).all():
            return products > _offset(self.mean_, self.projection_, rows.dtype)
        return self._bits(check_rows(self, X, sparse=False).astype(np.float64))


def margins(
    X: Rows, mean: Float64Array, projection: Float64Array, intercept: Float64Array | None = None
) -> Rows:
    """How far ``(X - mean) @ projection + intercept`` is above 0.

    Computed as ``X @ projection - (mean @ projection - intercept)`` in the precision of the rows,
    so that they are not copied.  For rows on a hyperplane, up to rounding, it is not above 0, so
    that a row's bits do not depend on the other rows in its block.
    """
    found: Rows = X @ projection.astype(X.dtype)
    found -= _offset(mean, projection, X.dtype, intercept)
    return found


def _offset(
    mean: Float64Array, projection: Float64Array, dtype: Any, intercept: Float64Array | None = None
) -> Rows:
    """The value that a product must exceed: the mean's, plus a margin for rounding."""
    size = np.abs(mean) @ np.abs(projection)
    level = mean @ projection + SLACK * np.finfo(dtype).eps * size
    return (level if intercept is None else level - intercept).astype(dtype)


def principal_axes(X: Rows, n: int) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Mean ``(dim,)``, the n directions of largest variance ``(dim, n)``, and the variances.

    If the rows vary in fewer directions than n, the rest are zero, with variance 0.
    """
    import scipy.linalg
    from sklearn.utils.extmath import svd_flip

    mean = X.mean(axis=0, dtype=np.float64)
    centred = X - mean
    axes, variances = np.zeros((X.shape[1], n)), np.zeros(n)
    if X.shape[0] >= X.shape[1]:
        values, vectors = scipy.linalg.eigh(centred.T @ centred)
        values, vectors = values[::-1], vectors[:, ::-1].T
    else:
        _, singular, vectors = scipy.linalg.svd(centred, full_matrices=False)
        values = singular**2
    _, vectors = svd_flip(None, vectors, u_based_decision=False)
    real = int((values > values[0] * X.shape[1] * np.finfo(X.dtype).eps).sum())
    r = min(n, real) if values[0] > 0 else 0
    axes[:, :r], variances[:r] = vectors[:r].T, values[:r] / len(X)
    return mean, axes, variances
