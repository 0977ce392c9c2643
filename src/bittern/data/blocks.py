"""Rows for a transformer, checked once and read block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from bittern.checks import row_blocks
from bittern.errors import InputError

__all__ = ["MEMORY", "RowBlocks", "check_rows", "is_lazy"]

MEMORY = 1 << 26  # octets of rows held at once


def is_lazy(X: Any) -> bool:
    """Whether rows are read when asked for, rather than an array, a sparse matrix or lists."""
    is_whole = isinstance(X, np.ndarray | list | tuple) or scipy.sparse.issparse(X) or _is_frame(X)
    return not is_whole and hasattr(X, "__len__") and hasattr(X, "__getitem__")


def check_rows(
    estimator: Any, X: Any, *, reset: bool = False, sparse: bool = True, finite: bool = True
) -> Any:
    """Finite ``(n, dim)`` rows, float32 or float64, dense or CSR, of the dimension fitted on.

    What scikit-learn refuses is refused as our own error, which is a ``ValueError`` as theirs is.
    With ``finite=False`` the caller looks for infinity and NaN.
    """
    X = _array(estimator, X)
    if not sparse and scipy.sparse.issparse(X):
        raise InputError(
            f"{type(estimator).__name__}: sparse rows would become full; use PCA, which centres "
            f"them without that, or pass rows.toarray()."
        )
    kind = getattr(X, "dtype", None)
    dtype = np.float32 if kind == np.float16 else (np.float64, np.float32)
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if sparse else False,
            dtype=dtype,
            ensure_all_finite=finite,
        )
    except ValueError as error:
        raise InputError(f"{type(estimator).__name__}: {error}") from error


class RowBlocks:
    """The training rows of a transformer, as checked blocks that can be gone through again.

    Rows that are read when asked for are never held whole; arrays and sparse matrices are sliced.
    """

    def __init__(self, estimator: Any, X: Any, *, memory: int = MEMORY, sparse: bool = True):
        self._estimator, self._memory, self._sparse = estimator, memory, sparse
        self._lazy = is_lazy(X)
        self._rows = X if self._lazy else check_rows(estimator, X, reset=True, sparse=sparse)
        n = len(X) if self._lazy else self._rows.shape[0]
        if self._lazy and n == 0:
            raise InputError(f"{type(estimator).__name__}: at least one row is needed, got none.")
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
        """Blocks in double precision that leave room for ``width`` more doubles a row."""
        n, dim = self.shape
        stored = self._stored() if self.is_sparse else dim
        for some in row_blocks(n, 8 * (2 * stored + width), self._memory):
            rows = self._rows[some]
            if self._lazy:
                rows = check_rows(self._estimator, rows, sparse=self._sparse)
            yield rows.astype(np.float64, copy=False)

    def whole(self) -> Any:
        """All rows at once; not for sparse ones."""
        return np.concatenate(list(self))

    def mean(self) -> NDArray[np.float64]:
        """Mean row, summed in double precision."""
        total = np.zeros(self.shape[1])
        for rows in self:
            total += np.asarray(rows.sum(axis=0)).ravel()
        return total / len(self)

    def _stored(self) -> int:
        """Numbers stored for a sparse row, on average, with its columns; guessed if not known."""
        if self._lazy:
            return max(1, self.shape[1] // 10)
        return max(1, 2 * self._rows.nnz // max(1, len(self)))


def _array(estimator: Any, X: Any) -> Any:
    """Rows that were read, as scikit-learn expects them."""
    if is_lazy(X):
        X = X[:]
    if isinstance(X, list) and X and isinstance(X[0], np.ndarray | str):
        raise InputError(
            f"{type(estimator).__name__}: needs vectors, got images or texts; extract features."
        )
    if isinstance(X, np.ndarray) and X.ndim > 2:
        raise InputError(
            f"{type(estimator).__name__}: needs vectors (n, dim), got shape {X.shape}; "
            f"extract features, or reshape."
        )
    return X


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") or hasattr(X, "__dataframe__")
