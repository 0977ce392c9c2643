"""Preprocessing that the papers state, as scikit-learn transformers that read rows in blocks.

PCA is our own: scikit-learn's rounds differently (float32 rows, sums over blocks) and is only
approximate for rows on disk, and the values of earlier records must not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from bittern.checks import (
    Float64Array,
    check_count,
    refuse_infinite,
    refuse_odd_rows,
    row_blocks,
)
from bittern.errors import InputError
from bittern.io.files import reason_of
from bittern.registry import Registry

MEMORY = 1 << 26  # bytes of rows held at once
LARGEST, SMALLEST = 1e100, 1e-100  # magnitudes whose squares are well within doubles
OVERSAMPLES = 10  # extra directions of the random subspace
QUICK = 2e10  # this many multiplications take seconds


class Centre(TransformerMixin, BaseEstimator):
    """Subtract the mean of the training rows.

    Sparse rows are errors, because they would become dense; :class:`PCA` centres them without that.
    """

    def fit(self, X: Any, y: Any = None) -> Centre:
        """Learn the mean of ``(n, dim)`` rows."""
        self.mean_ = RowBlocks(self, X, sparse=False).mean()
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Rows minus the mean."""
        check_is_fitted(self)
        rows = check_rows(self, X, sparse=False)
        return rows - self.mean_.astype(rows.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class UnitLength(TransformerMixin, BaseEstimator):
    """Divide each row by its Euclidean length; a row of zeros stays zero.

    ``n_zero_rows_`` counts the zero rows seen by ``fit``.
    """

    def fit(self, X: Any, y: Any = None) -> UnitLength:
        """Count the zero rows; nothing is learned."""
        counts = [int((_lengths(rows) == 0).sum()) for rows in RowBlocks(self, X)]
        self.n_zero_rows_ = sum(counts)
        return self

    def transform(self, X: Any) -> Any:
        """Rows of unit length, dense or sparse like the input."""
        check_is_fitted(self)
        rows = check_rows(self, X)
        lengths = _lengths(rows)
        scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        if scipy.sparse.issparse(rows):
            return (scipy.sparse.diags_array(scale) @ rows).tocsr().astype(rows.dtype)
        return (rows * scale[:, None]).astype(rows.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Root(TransformerMixin, BaseEstimator):
    """Signed square roots: x becomes sign(x) √|x|.

    Euclidean distances between roots of histograms are Hellinger distances, in which frequent words
    count for less.
    """

    def fit(self, X: Any, y: Any = None) -> Root:
        """Check the rows; nothing is learned."""
        RowBlocks(self, X)
        return self

    def transform(self, X: Any) -> Any:
        """Roots, dense or sparse like the input."""
        check_is_fitted(self)
        rows = check_rows(self, X)
        if scipy.sparse.issparse(rows):
            return abs(rows).sqrt().multiply(rows.sign()).tocsr()
        return np.sign(rows) * np.sqrt(np.abs(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PCA(TransformerMixin, BaseEstimator):
    r"""Project on the ``n_components`` directions of largest variance of the training rows.

    .. math:: z = (x - \bar x)\, W, \qquad W = \text{the first eigenvectors of }
        C = \textstyle\sum_i (x_i - \bar x)(x_i - \bar x)^\top

    ``"auto"`` takes the first of three solvers that is quick enough:

    - ``"svd"`` decomposes the centred rows, dense and in memory;
    - ``"covariance"`` sums :math:`\sum_b X_b^\top X_b - n\,\bar x \bar x^\top` over blocks of rows
      and decomposes it: also exact, but directions with less than 10⁻⁸ of the largest deviation
      are lost to rounding;
    - ``"randomised"`` iterates :math:`Q \leftarrow \mathrm{orth}(C\,Q)` from random directions
      [Halko-Martinsson-Tropp-2011], with :math:`C\,Q = \sum_b X_b^\top (X_b Q) - n\,\bar x\,
      (\bar x^\top Q)`, never forming :math:`C`.

    The last two never centre a sparse row, which would make it dense, and hold blocks of about
    ``memory`` bytes besides their (dim × dim) or (dim × components) arrays.  The largest entry of
    each component is positive.
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
        """Learn mean and directions from ``(n, dim)`` rows: dense, sparse or read in blocks."""
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
        """``(n, n_components)`` coordinates; sparse rows stay sparse on the way."""
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
        # Forming C costs n dim² for dense rows; each pass of the other solver 2 n dim components.
        is_cheap = dim <= 2 * (self.n_components + OVERSAMPLES) * (self.n_iter + 1)
        return "covariance" if is_cheap and 8 * dim * dim <= self.memory else "randomised"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# PCA is written with its number of components: pca1000.
STEPS: Registry[Callable[[], Any]] = Registry(
    "step", {"centre": Centre, "l2": UnitLength, "root": Root, "pca<number>": PCA}
)


def make_steps(steps: Sequence[str | Any], random_state: int = 0) -> Pipeline:
    """An unfitted scikit-learn pipeline of steps by name, such as ``("l2", "centre")``.

    A step may also be your own transformer, which is cloned.
    """
    if isinstance(steps, str) or not len(steps):
        raise InputError(f"make_steps: steps must be a list of names, got {steps!r}.")
    made = [_step(step, random_state) for step in steps]
    return Pipeline([(f"{i}-{name}", step) for i, (name, step) in enumerate(made, start=1)])


def is_lazy(X: Any) -> bool:
    """Whether rows are read on demand, rather than an array, a sparse matrix or lists."""
    is_array = isinstance(X, np.ndarray) or scipy.sparse.issparse(X) or _is_frame(X)
    is_whole = is_array or isinstance(X, list | tuple | str | bytes | Mapping)
    return not is_whole and hasattr(X, "__len__") and hasattr(X, "__getitem__")


def check_rows(
    estimator: Any, X: Any, *, reset: bool = False, sparse: bool = True, finite: bool = True
) -> Any:
    """Finite ``(n, dim)`` rows, float32 or float64, dense or CSR, of the dimension fitted on.

    Turns scikit-learn's errors into :class:`InputError`, which is also a ``ValueError``.  With
    ``finite=False`` the caller checks for infinity and NaN.
    """
    validate = partial(validate_data, estimator, reset=reset)
    return _validated(validate, X, type(estimator).__name__, sparse, finite)


def check_matrix(X: Any, name: str) -> Any:
    """Finite ``(n, dim)`` rows as :func:`check_rows` gives them, of any dimension."""
    return _validated(partial(check_array, estimator=name), X, name, sparse=True, finite=True)


def _validated(validate: Callable[..., Any], X: Any, name: str, sparse: bool, finite: bool) -> Any:
    X = _array(name, X)
    refuse_odd_rows(X, name)
    if not sparse and scipy.sparse.issparse(X):
        raise InputError(
            f"{name}: sparse rows would become dense; use PCA, which centres them without that, "
            f"or pass rows.toarray()."
        )
    kind = getattr(X, "dtype", None)
    dtype = np.float32 if kind == np.float16 else (np.float64, np.float32)
    try:
        rows = validate(
            X,
            accept_sparse="csr" if sparse else False,
            dtype=dtype,
            ensure_all_finite=finite,
        )
    except ValueError as error:
        if finite and isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.ndim == 2:
            refuse_infinite(X, name)
        raise InputError(f"{name}: {reason_of(error)}") from error
    if finite and _largest(rows) > LARGEST:
        raise InputError(
            f"{name}: a number is larger than {LARGEST:g}, so that squares would overflow; scale "
            "the rows."
        )
    return rows


def refuse_tiny(rows: Any, name: str) -> None:
    """Raise an error for training rows so small that their squares vanish; zeros are no error."""
    if 0 < _largest(rows) < SMALLEST:
        raise InputError(
            f"{name}: no number is larger than {SMALLEST:g}, so that squares would vanish; scale "
            "the rows."
        )


def _largest(rows: Any) -> float:
    """The largest magnitude of rows in double precision; 1 for others, which are in bounds."""
    numbers = getattr(rows, "data", rows) if scipy.sparse.issparse(rows) else rows
    if numbers.dtype != np.float64:
        return 1.0
    return float(max(numbers.max(initial=0), -numbers.min(initial=0)))


class RowBlocks:
    """The training rows of a transformer as checked blocks; can be iterated more than once.

    Rows that are read on demand are never all in memory; arrays and sparse matrices are sliced.
    """

    def __init__(self, estimator: Any, X: Any, *, memory: int = MEMORY, sparse: bool = True):
        self._estimator, self._memory, self._sparse = estimator, memory, sparse
        self._lazy = is_lazy(X)
        self._rows = X if self._lazy else check_rows(estimator, X, reset=True, sparse=sparse)
        n = len(X) if self._lazy else self._rows.shape[0]
        if self._lazy and n == 0:
            raise InputError(f"{type(estimator).__name__}: needs at least one row, got none.")
        first = (
            check_rows(estimator, X[:1], reset=True, sparse=sparse) if self._lazy else self._rows
        )
        self.is_sparse = scipy.sparse.issparse(first)
        self.shape: tuple[int, int] = (n, first.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return self.narrowed(0)

    def narrowed(self, width: int) -> Iterator[Any]:
        """Blocks in double precision that leave room for ``width`` more doubles per row."""
        n, dim = self.shape
        stored = self._stored() if self.is_sparse else dim
        for some in row_blocks(n, 8 * (2 * stored + width), self._memory):
            rows = self._rows[some]
            if self._lazy:
                rows = check_rows(self._estimator, rows, sparse=self._sparse)
            yield rows.astype(np.float64, copy=False)

    def whole(self) -> Any:
        """All rows at once, for dense rows only."""
        return np.concatenate(list(self))

    def mean(self) -> NDArray[np.float64]:
        """Mean row, summed in double precision."""
        total = np.zeros(self.shape[1])
        for rows in self:
            total += np.asarray(rows.sum(axis=0)).ravel()
        return total / len(self)

    def _stored(self) -> int:
        """Mean count of numbers per sparse row, columns included; a guess for lazy rows."""
        if self._lazy:
            return max(1, self.shape[1] // 10)
        return max(1, 2 * self._rows.nnz // max(1, len(self)))


def _step(step: Any, random_state: int) -> tuple[str, Any]:
    if not isinstance(step, str):
        return type(step).__name__.lower(), clone(step)
    if match := re.fullmatch(r"pca([1-9][0-9]{0,8})", step):
        return step, PCA(int(match[1]), random_state=random_state)
    if step not in STEPS or step.startswith("pca"):
        raise InputError(f"make_steps: {STEPS.refusal(step)}")
    return step, STEPS[step]()


def _lengths(rows: Any) -> NDArray[np.float64]:
    if scipy.sparse.issparse(rows):
        return np.sqrt(np.asarray(rows.astype(np.float64).power(2).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _svd(blocks: RowBlocks, pca: PCA) -> tuple[Float64Array, Float64Array, Float64Array]:
    if blocks.is_sparse:
        raise InputError("PCA: solver='svd' would make sparse rows dense; use 'covariance'.")
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
        # Any basis of the span will do here, and LU is the quickest.
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


Solver = Callable[[RowBlocks, PCA], tuple[Float64Array, Float64Array, Float64Array]]
SOLVERS: dict[str, Solver] = {"svd": _svd, "covariance": _covariance, "randomised": _randomised}


def _array(name: str, X: Any) -> Any:
    """Rows in memory, in a form that scikit-learn accepts."""
    if is_lazy(X):
        X = X[:]
    if isinstance(X, list) and X and isinstance(X[0], np.ndarray | str):
        raise InputError(f"{name}: needs vectors, got images or texts; extract features.")
    return X


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") or hasattr(X, "__dataframe__")
