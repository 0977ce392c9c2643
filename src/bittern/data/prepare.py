"""Preprocessing that the papers state, learned from training rows only and applied when read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from bittern.checks import check_positions, row_blocks
from bittern.data.blocks import MEMORY, RowBlocks, check_rows
from bittern.data.dataset import Dataset
from bittern.data.pca import PCA
from bittern.data.rows import Rows, RowView
from bittern.errors import InputError
from bittern.registry import Registry

__all__ = ["PCA", "STEPS", "Centre", "PreparedRows", "UnitLength", "make_steps", "prepared"]


class Centre(TransformerMixin, BaseEstimator):
    """Subtract the mean of the training rows.

    Sparse rows are refused, for the difference would be full; :class:`PCA` centres without that.
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
    """Divide each row by its Euclidean length; a row of zeros stays one.

    ``n_zero_rows_`` counts those among the rows of ``fit``.
    """

    def fit(self, X: Any, y: Any = None) -> UnitLength:
        """Learn nothing; count the rows of zeros."""
        counts = [int((_lengths(rows) == 0).sum()) for rows in RowBlocks(self, X)]
        self.n_zero_rows_ = sum(counts)
        return self

    def transform(self, X: Any) -> Any:
        """Rows of unit length, dense or sparse as they came."""
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


# Every step but PCA, which is written with its number of components: pca1000.
STEPS: Registry[Callable[[], Any]] = Registry(
    "step", {"centre": Centre, "l2": UnitLength, "pca<number>": PCA}
)


def make_steps(steps: Sequence[str | Any], random_state: int = 0) -> Pipeline:
    """An unfitted scikit-learn pipeline of steps by name, such as ``("l2", "centre")``.

    A step may also be a transformer of your own, which is cloned.
    """
    if isinstance(steps, str) or not len(steps):
        raise InputError(f"make_steps: steps must be a list of names, got {steps!r}.")
    made = [_step(step, random_state) for step in steps]
    return Pipeline([(f"{i}-{name}", step) for i, (name, step) in enumerate(made, start=1)])


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRows:
    """Rows of another source, put through a fitted pipeline when they are read.

    ``np.asarray(rows)`` reads them all, block by block, into one array.  Integers and half floats
    become float32, doubles stay doubles.
    """

    source: Rows
    pipeline: Pipeline
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    memory: int = MEMORY

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        positions = np.arange(len(self))[rows]
        if positions.ndim == 0:
            return self._read(positions[None])[0]
        if len(positions) == 0:
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        blocks = self._row_blocks(len(positions))
        first = self._read(positions[blocks[0]])
        if len(blocks) == 1:
            return first
        if scipy.sparse.issparse(first):
            rest = [self._read(positions[some]) for some in blocks[1:]]
            return scipy.sparse.vstack([first, *rest], "csr")
        out = np.empty((len(positions), self.shape[1]), dtype=self.dtype)
        out[blocks[0]] = first
        for some in blocks[1:]:
            out[some] = self._read(positions[some])
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self[:]
        if scipy.sparse.issparse(array):
            array = array.toarray()
        return array if dtype is None else array.astype(dtype, copy=False)

    def _read(self, positions: NDArray[np.intp]) -> Any:
        done = self.pipeline.transform(_numbers(self.source[positions]))
        return done.astype(self.dtype, copy=False)

    def _row_blocks(self, n: int) -> list[slice]:
        wide = max(self.shape[1], *getattr(self.source, "shape", (0,))[1:2], 1)
        return row_blocks(n, 24 * wide, self.memory)


def prepared(
    dataset: Dataset,
    train: Any,
    steps: Sequence[str | Any],
    modality: str | None = None,
    *,
    random_state: int = 0,
    memory: int = MEMORY,
) -> Dataset:
    """The dataset with one modality (the first, if none is named) put through preprocessing.

    The steps are learned from the rows at the positions ``train`` and from no others, and applied
    to any row when it is read; ``dataset[modality].pipeline`` is what was learned.  The notes say
    what was applied and on how many training rows it was fitted.
    """
    name = next(iter(dataset.modalities)) if modality is None else modality
    rows = dataset[name]
    if len(train) == 0:
        raise InputError(f"{dataset.name}: preprocessing needs training rows, got none.")
    positions = np.unique(check_positions(train, f"{dataset.name}: train", len(dataset)))
    pipeline = make_steps(steps, random_state)
    _fit(pipeline, RowView.of(rows, positions), memory)
    sample = pipeline.transform(_numbers(rows[positions[:1]]))
    shape = (len(dataset), sample.shape[1])
    done = PreparedRows(rows, pipeline, shape, sample.dtype, memory)
    return dataset.with_note(
        _note(name, pipeline, len(positions)),
        modalities={**dataset.modalities, name: done},
    )


def _fit(pipeline: Pipeline, rows: Rows, memory: int) -> None:
    """Fit step after step, each on what the earlier ones make of the rows, read by blocks.

    ``Pipeline.fit`` would hold the whole result of every step.
    """
    done: list[tuple[str, Any]] = []
    current: Any = _Numbers(rows)
    for name, step in pipeline.steps:
        step.fit(current)
        done.append((name, step))
        fitted = Pipeline(list(done))
        sample = fitted.transform(_numbers(rows[:1]))
        current = PreparedRows(rows, fitted, (len(rows), sample.shape[1]), sample.dtype, memory)


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Rows as numbers of the type that preprocessing works in."""

    source: Rows

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Any) -> Any:
        return _numbers(self.source[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *getattr(self.source, "shape", ())[1:])


def _numbers(rows: Any) -> Any:
    """Integers and half floats as float32: counts and pixels need no more."""
    kind = getattr(rows, "dtype", None)
    if kind is not None and (kind == np.float16 or np.dtype(kind).kind in "biu"):
        return rows.astype(np.float32)
    return rows


def _step(step: Any, random_state: int) -> tuple[str, Any]:
    if not isinstance(step, str):
        return type(step).__name__.lower(), clone(step)
    if match := re.fullmatch(r"pca([1-9][0-9]*)", step):
        return step, PCA(int(match[1]), random_state=random_state)
    if step not in STEPS or step.startswith("pca"):
        raise InputError(f"make_steps: {STEPS.refusal(step)}")
    return step, STEPS[step]()


def _note(modality: str, pipeline: Pipeline, n_train: int) -> str:
    names = ", ".join(name.split("-", 1)[1] for name, _ in pipeline.steps)
    zeros = sum(getattr(step, "n_zero_rows_", 0) for _, step in pipeline.steps)
    left = f"; {zeros:,} training rows are zero and stay so" if zeros else ""
    return f"applied to {modality}: {names}; fitted on {n_train:,} training rows{left}"


def _lengths(rows: Any) -> NDArray[np.float64]:
    if scipy.sparse.issparse(rows):
        return np.sqrt(np.asarray(rows.astype(np.float64).power(2).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
