"""Hashers whose bits say on which side of a hyperplane a row is; and principal axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.checks import Float64Array, PositionArray
from bittern.data.steps import check_rows
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.io.onnx_graph import OnnxGraph

SLACK = 16  # rounding errors of a sum of products that count as 0
ROUNDING = 0.5  # of the length of both factors, for each √d: beyond any error of their product


class LinearHasher(Hasher):
    """Bit k of x is 1 if ``(x - mean_) @ projection_[:, k] > 0``."""

    mean_: Float64Array  # (dim,)
    projection_: Float64Array  # (dim, n_bits)

    def _logits(self, X: Rows) -> Rows:
        """Margins in the precision of the rows, with the signs of those in double precision."""
        if X.dtype == np.float64:
            return margins(X, self.mean_, self.projection_)
        with np.errstate(invalid="ignore", over="ignore"):
            found = X @ self.projection_.astype(X.dtype)
            found -= (self.mean_ @ self.projection_).astype(X.dtype)
            near = self._near(X, found)
            found[near] = margins(X[near].astype(np.float64), self.mean_, self.projection_)
            is_finite = np.isfinite(found.sum())
        return found if is_finite else margins(X.astype(np.float64), self.mean_, self.projection_)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        return onnx_margins(graph, rows, self.mean_, self.projection_)

    def _near(self, X: Rows, found: Rows) -> PositionArray:
        """Rows with a margin whose sign may be wrong, as it was found in single precision.

        One bound for all rows costs least; rows much longer than others count as near.
        """
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
        longest = 2 * float(np.median(lengths))
        near = (np.abs(found) <= self._rounding(X, longest)).any(axis=1)
        return np.flatnonzero(near | ~(lengths <= longest))  # NaN is near as well

    def _rounding(self, X: Rows, longest: float) -> Rows:
        """More than the error of the margins of rows up to this length, ``(n_bits,)``.

        A sum of d products is wrong by about ε √d times the lengths of both factors, times a
        number that was .08 at most in 10⁶ sums of 1280 positive products each.
        """
        lengths = longest * np.linalg.norm(self.projection_, axis=0)
        offsets = np.abs(self.mean_) @ np.abs(self.projection_)
        eps = np.finfo(X.dtype).eps
        bound: Rows = eps * (ROUNDING * np.sqrt(X.shape[1]) * lengths + offsets)
        return bound.astype(X.dtype)

    def _checked_bits(self, X: Any) -> Bits:
        """Look for infinity and NaN in the products, which are far fewer than the entries."""
        rows = check_rows(self, X, sparse=False, finite=False)
        with np.errstate(invalid="ignore", over="ignore"):
            found = self._logits(rows)
            is_finite = np.isfinite(found.sum())
        return found > 0 if is_finite else self._bits(self._ready(X))

    def _ready(self, X: Any) -> Any:
        return self._checked(X)  # rows in single precision are not copied


def margins(
    X: Rows, mean: Float64Array, projection: Float64Array, intercept: Float64Array | None = None
) -> Rows:
    """How far ``(X - mean) @ projection + intercept`` is above 0.

    Computed as ``X @ projection - (mean @ projection - intercept)``, so that the rows are not
    copied.  For rows on a hyperplane, up to rounding, it is not above 0, so that a row's bits do
    not depend on the other rows in its block.
    """
    found: Rows = X @ projection
    found -= offset(mean, projection, intercept)
    return found


def onnx_margins(
    graph: OnnxGraph,
    rows: str,
    mean: Float64Array,
    projection: Float64Array,
    intercept: Float64Array | None = None,
) -> str:
    """The same in an ONNX graph."""
    found = graph.add("MatMul", rows, projection)
    return graph.add("Sub", found, offset(mean, projection, intercept))


def offset(
    mean: Float64Array, projection: Float64Array, intercept: Float64Array | None = None
) -> Float64Array:
    """The value that a product must exceed: the mean's, plus a margin for rounding."""
    size = np.abs(mean) @ np.abs(projection)
    level: Float64Array = mean @ projection + SLACK * np.finfo(np.float64).eps * size
    return level if intercept is None else level - intercept


def principal_axes(X: Rows, n: int) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Mean ``(dim,)``, the n directions of largest variance ``(dim, n)``, and the variances.

    If the rows vary in fewer directions than n, the rest are zero, with variance 0.
    """
    import scipy.linalg

    mean = X.mean(axis=0, dtype=np.float64)
    centred = X - mean
    eps = float(np.finfo(X.dtype).eps)
    if X.shape[0] >= X.shape[1]:
        return mean, *axes_of_scatter(centred.T @ centred, len(X), n, eps)
    _, singular, vectors = scipy.linalg.svd(centred, full_matrices=False)
    return mean, *_leading(singular**2, vectors, len(X), n, eps)


def axes_of_scatter(
    scatter: Float64Array, n_rows: int, n: int, eps: float
) -> tuple[Float64Array, Float64Array]:
    """The n directions of largest variance ``(dim, n)``, and the variances, from a sum over rows.

    ``scatter`` is the sum of ``(x - mean) (x - mean)ᵀ``, ``eps`` the precision of the rows.
    """
    import scipy.linalg

    values, vectors = scipy.linalg.eigh(scatter)
    return _leading(values[::-1], vectors[:, ::-1].T, n_rows, n, eps)


def _leading(
    values: Float64Array, vectors: Float64Array, n_rows: int, n: int, eps: float
) -> tuple[Float64Array, Float64Array]:
    """The first n axes, of settled sign, and their variances; zero where rows do not vary."""
    from sklearn.utils.extmath import svd_flip

    dim = vectors.shape[1]
    axes, variances = np.zeros((dim, n)), np.zeros(n)
    _, vectors = svd_flip(None, vectors, u_based_decision=False)
    real = int((values > values[0] * dim * eps).sum())
    r = min(n, real) if values[0] > 0 else 0
    axes[:, :r], variances[:r] = vectors[:r].T, values[:r] / n_rows
    return axes, variances
