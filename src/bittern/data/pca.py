"""Principal components of rows that may be sparse, many, or on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bittern.checks import Float64Array, check_count
from bittern.data.blocks import MEMORY, RowBlocks, check_rows
from bittern.errors import InputError

__all__ = ["PCA"]

OVERSAMPLES = 10  # extra directions that a random subspace carries
QUICK = 2e10  # multiplications that take seconds

Solver = Callable[[RowBlocks, "PCA"], tuple[Float64Array, Float64Array, Float64Array]]


class PCA(TransformerMixin, BaseEstimator):
    r"""Project on the ``n_components`` directions of largest variance of the training rows.

    .. math:: z = (x - \bar x)\, W, \qquad W = \text{the first eigenvectors of }
        C = \textstyle\sum_i (x_i - \bar x)(x_i - \bar x)^\top

    Three solvers, of which ``"auto"`` takes the first that is quick enough:

    - ``"svd"`` decomposes the centred rows, all at once and full;
    - ``"covariance"`` sums :math:`\sum_b X_b^\top X_b - n\,\bar x \bar x^\top` over blocks of rows
      and decomposes it: exact too, though directions with less than 10⁻⁸ of the largest deviation
      are lost to rounding;
    - ``"randomised"`` iterates :math:`Q \leftarrow \mathrm{orth}(C\,Q)` from random directions
      [Halko-Martinsson-Tropp-2011], with :math:`C\,Q = \sum_b X_b^\top (X_b Q) - n\,\bar x\,
      (\bar x^\top Q)`, never forming :math:`C`.

    The last two never centre a sparse row, which would fill it, and hold blocks of about
    ``memory`` octets besides their (dim × dim) or (dim × components) arrays.  The sign of a
    component is chosen so that its largest entry is positive.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        solver: str = "auto",
        n_iter: int = 7,
        memory: int = 4 * MEMORY,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.n_iter = n_iter
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PCA:
        """Learn mean and directions from ``(n, dim)`` rows, dense, sparse or read by blocks."""
        blocks = RowBlocks(self, X, memory=self.memory)
        n, dim = blocks.shape
        check_count(self.n_iter, "PCA: n_iter")
        if check_count(self.n_components, "PCA: n_components") > min(n, dim):
            raise InputError(
                f"PCA: n_components={self.n_components} must be at most min(n, dim) = "
                f"{min(n, dim)} for {n:,} rows of {dim:,} dimensions."
            )
        name = self._choice(blocks) if self.solver == "auto" else self.solver
        if name not in SOLVERS:
            known = ["auto", *SOLVERS]
            raise InputError(f"PCA: solver must be one of {known}, got {self.solver!r}.")
        self.mean_, axes, self.explained_variance_ = SOLVERS[name](blocks, self)
        largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
        self.components_ = np.where(largest < 0, -1.0, 1.0)[:, None] * axes
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """``(n, n_components)`` coordinates; sparse rows are not filled."""
        check_is_fitted(self)
        rows = check_rows(self, X)
        components = self.components_.astype(rows.dtype, copy=False)
        if scipy.sparse.issparse(rows):
            # x W - mean W: the same as (x - mean) W, without centring x.
            offset = (self.mean_ @ self.components_.T).astype(rows.dtype)
            return np.asarray(rows @ components.T) - offset
        return (rows - self.mean_.astype(rows.dtype)) @ components.T

    def _choice(self, blocks: RowBlocks) -> str:
        n, dim = blocks.shape
        if not blocks.is_sparse and 8 * n * dim <= self.memory and n * dim * min(n, dim) <= QUICK:
            return "svd"
        # Forming C costs n dim² for full rows; passes, 2 n dim components each, twice as much.
        is_cheap = dim <= 2 * (self.n_components + OVERSAMPLES) * (self.n_iter + 1)
        return "covariance" if is_cheap and 8 * dim * dim <= self.memory else "randomised"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _svd(blocks: RowBlocks, pca: PCA) -> tuple[Float64Array, Float64Array, Float64Array]:
    if blocks.is_sparse:
        raise InputError("PCA: solver='svd' would fill sparse rows; use 'covariance'.")
    mean = blocks.mean()
    _, s, axes = scipy.linalg.svd(blocks.whole() - mean, full_matrices=False)
    k = pca.n_components
    return mean, axes[:k], _variances(s[:k] ** 2, len(blocks))


def _covariance(blocks: RowBlocks, pca: PCA) -> tuple[Float64Array, Float64Array, Float64Array]:
    n, dim = blocks.shape
    mean = blocks.mean()
    scatter = -n * np.outer(mean, mean)
    for rows in blocks.narrowed(0):
        product = rows.T @ rows
        scatter += product.toarray() if blocks.is_sparse else product
    values, vectors = scipy.linalg.eigh(
        scatter, subset_by_index=(dim - pca.n_components, dim - 1), overwrite_a=True
    )
    return mean, vectors[:, ::-1].T, _variances(values[::-1], n)


def _randomised(blocks: RowBlocks, pca: PCA) -> tuple[Float64Array, Float64Array, Float64Array]:
    n, dim = blocks.shape
    mean = blocks.mean()
    width = min(dim, pca.n_components + OVERSAMPLES)
    q = np.random.default_rng(pca.random_state).standard_normal((dim, width))
    for _ in range(pca.n_iter):
        # Any basis of the span will do on the way, and LU is the quickest.
        q = scipy.linalg.lu(_times(blocks, mean, q), permute_l=True)[0]
    q = np.linalg.qr(q)[0]
    small = q.T @ _times(blocks, mean, q)
    values, vectors = np.linalg.eigh((small + small.T) / 2)  # Rayleigh–Ritz: best within the span
    first = slice(None, -pca.n_components - 1, -1)
    return mean, (q @ vectors[:, first]).T, _variances(values[first], n)


def _times(blocks: RowBlocks, mean: Float64Array, q: Float64Array) -> Float64Array:
    """``C @ q`` for the scatter matrix ``C`` of centred rows, block by block."""
    product = -len(blocks) * np.outer(mean, mean @ q)
    for rows in blocks.narrowed(q.shape[1]):
        product += rows.T @ (rows @ q)
    return product


def _variances(eigenvalues: Float64Array, n: int) -> Float64Array:
    return np.maximum(eigenvalues, 0) / max(n - 1, 1)


SOLVERS: dict[str, Solver] = {"svd": _svd, "covariance": _covariance, "randomised": _randomised}
