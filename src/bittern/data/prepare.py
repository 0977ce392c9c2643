"""Preprocess a dataset with steps that learn from training rows only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from bittern.checks import PositionArray, check_positions, row_blocks
from bittern.data.dataset import Dataset
from bittern.data.rows import LazyRows, Rows, RowView
from bittern.data.steps import MEMORY, make_steps
from bittern.errors import InputError


def prepared(
    dataset: Dataset,
    train: Any,
    steps: Sequence[str | Any],
    modality: str | None = None,
    *,
    random_state: int = 0,
    memory: int = MEMORY,
) -> Dataset:
    """The dataset with one modality (by default the first) preprocessed.

    The steps learn from the rows at positions ``train`` only, without items that lack the modality,
    and apply to every row when it is read; ``dataset[modality].pipeline`` is the fitted pipeline.
    The notes say what was applied and how many training rows it was fitted on.
    """
    name = next(iter(dataset.modalities)) if modality is None else modality
    rows = dataset[name]
    if len(train) == 0:
        raise InputError(f"{dataset.name}: preprocessing needs training rows, got none.")
    positions = np.unique(check_positions(train, f"{dataset.name}: train", len(dataset)))
    positions = positions[dataset.has(name)[positions]]
    if not len(positions):
        raise InputError(f"{dataset.name}: no training row has the modality '{name}'.")
    pipeline = make_steps(steps, random_state)
    _fit(pipeline, RowView.of(rows, positions), memory)
    sample = pipeline.transform(_as_floats(rows[positions[:1]]))
    shape = (len(dataset), sample.shape[1])
    present = dataset.present.get(name)
    prepared_rows = PreparedRows(rows, pipeline, shape, sample.dtype, memory, present)
    return dataset.with_note(
        _note(name, pipeline, len(positions)),
        modalities={**dataset.modalities, name: prepared_rows},
    )


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRows(LazyRows):
    """Rows of a source that go through a fitted pipeline when they are read.

    ``np.asarray(rows)`` reads all of them, block by block, into one array.  Integers and half
    floats become float32; doubles stay doubles.  Rows that are not ``present`` are zeros.
    """

    source: Rows
    pipeline: Pipeline
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    memory: int = MEMORY
    present: NDArray[np.bool_] | None = None

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

    def _read(self, positions: PositionArray) -> Any:
        if self.present is None or self.present[positions].all():
            prepared_rows = self.pipeline.transform(_as_floats(self.source[positions]))
            return prepared_rows.astype(self.dtype, copy=False)
        there = self.present[positions]
        known = positions[there] if there.any() else np.flatnonzero(self.present)[:1]
        # A matrix of zeros and ones moves each row to its place, dense or sparse.
        ones = (np.ones(there.sum(), self.dtype), (np.flatnonzero(there), np.arange(there.sum())))
        return scipy.sparse.csr_array(ones, (len(positions), len(known))) @ self._read(known)

    def _row_blocks(self, n: int) -> list[slice]:
        width = max(self.shape[1], *getattr(self.source, "shape", (0,))[1:2], 1)
        return row_blocks(n, 24 * width, self.memory)


def _fit(pipeline: Pipeline, rows: Rows, memory: int) -> None:
    """Fit one step after another, each on the output of the earlier ones, read in blocks.

    ``Pipeline.fit`` would hold the whole output of every step.
    """
    current: Any = _NumericRows(rows)
    for i, (_, step) in enumerate(pipeline.steps, start=1):
        step.fit(current)
        fitted = Pipeline(pipeline.steps[:i])
        sample = fitted.transform(_as_floats(rows[:1]))
        current = PreparedRows(rows, fitted, (len(rows), sample.shape[1]), sample.dtype, memory)


@dataclass(frozen=True, slots=True, eq=False)
class _NumericRows:
    """Rows converted to the type that preprocessing works in."""

    source: Rows

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Any) -> Any:
        return _as_floats(self.source[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *getattr(self.source, "shape", ())[1:])


def _as_floats(rows: Any) -> Any:
    """Integers and half floats as float32, which is enough for counts and pixels."""
    kind = getattr(rows, "dtype", None)
    if kind is not None and (kind == np.float16 or np.dtype(kind).kind in "biu"):
        return rows.astype(np.float32)
    return rows


def _note(modality: str, pipeline: Pipeline, n_train: int) -> str:
    names = ", ".join(name.split("-", 1)[1] for name, _ in pipeline.steps)
    zeros = sum(getattr(step, "n_zero_rows_", 0) for _, step in pipeline.steps)
    left = f"; {zeros:,} training rows are zero and stay so" if zeros else ""
    return f"applied to {modality}: {names}; fitted on {n_train:,} training rows{left}"
