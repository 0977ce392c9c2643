"""Rows of a dataset that are not copied until they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bittern.checks import PositionArray
from bittern.errors import InputError, PositionError


class Rows(Protocol):
    """A modality: a length, and rows by position; indexing reads the rows."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def __getitem__(self, rows: Any) -> Any:
        """The rows chosen by a position, a slice or an array."""
        ...


class LazyRows(ABC):
    """Rows that are read on demand, and that ``np.asarray`` turns into a dense array."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        rows = self[:]
        array = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        return array if dtype is None else array.astype(dtype, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class RowView(LazyRows):
    """Some rows of a source, kept as positions and read on demand.

    ``np.asarray(view)`` or ``view[:]`` reads them all.
    """

    source: Rows
    positions: PositionArray

    @classmethod
    def of(cls, source: Rows, positions: PositionArray) -> RowView:
        """A view of ``source``; a view of a view becomes one view."""
        if isinstance(source, RowView):
            return cls(source.source, source.positions[positions])
        return cls(source, positions)

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: Any) -> Any:
        try:
            return self.source[self.positions[rows]]
        except IndexError:
            raise PositionError(f"rows: no such rows among {len(self)}, got {rows!r}.") from None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape that the rows have when they are read."""
        return (len(self), *getattr(self.source, "shape", ())[1:])


class Texts(Sequence[Any]):
    """Texts, one per row."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = np.array(list(texts), dtype=object)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: Any) -> Any:
        chosen = self.texts[rows]
        return chosen if isinstance(chosen, str) else list(chosen)


class SparseRows(LazyRows):
    """Rows of a ``scipy.sparse`` matrix, which has no ``len``; ``rows[:]`` is the matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr()

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, rows: Any) -> Any:
        return self.matrix[rows]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return self.matrix.dtype


class _ArrayRows(LazyRows):
    """Rows with the shape and the dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)


class StackedRows(_ArrayRows):
    """Arrays or memory maps one after another as one sequence of rows, without copying them.

    Indexing by a position, a slice, a mask or an array of positions reads only those rows.
    """

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        shapes = {part.shape[1:] for part in parts}
        if len(shapes) != 1:
            raise InputError(f"StackedRows: rows must have the same shape, got {sorted(shapes)}.")
        self.parts = tuple(parts)
        self.starts = np.cumsum([0, *map(len, parts)])
        self.shape = (int(self.starts[-1]), *parts[0].shape[1:])
        self.dtype = np.result_type(*parts)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._span(start, stop)
            return self._gather(np.arange(start, stop, step))
        p = np.asarray(rows)
        if p.dtype == bool:
            return self._gather(self._marked(p))
        p = self._positions(p)
        return self._gather(p.ravel()).reshape(*p.shape, *self.shape[1:])

    def _span(self, start: int, stop: int) -> NDArray[Any]:
        pieces = [
            part[max(start - first, 0) : max(stop - first, 0)]
            for part, first in zip(self.parts, self.starts[:-1].tolist(), strict=True)
        ]
        filled = [piece for piece in pieces if len(piece)]
        if len(filled) == 1:
            return filled[0].astype(self.dtype, copy=False)
        return np.concatenate(filled or pieces, dtype=self.dtype)

    def _gather(self, positions: PositionArray) -> NDArray[Any]:
        out = np.empty((len(positions), *self.shape[1:]), self.dtype)
        of_part = np.searchsorted(self.starts, positions, side="right") - 1
        for i, part in enumerate(self.parts):
            here = of_part == i
            out[here] = part[positions[here] - self.starts[i]]
        return out

    def _positions(self, rows: NDArray[Any]) -> PositionArray:
        if rows.size == 0:
            return rows.astype(np.intp)
        if rows.dtype.kind not in "iu" or rows.min() < -len(self) or rows.max() >= len(self):
            raise PositionError(f"rows: no such rows among {len(self)}, got {rows!r}.")
        return np.where(rows < 0, rows + len(self), rows).astype(np.intp)

    def _marked(self, mask: NDArray[np.bool_]) -> PositionArray:
        if mask.shape != (len(self),):
            raise PositionError(f"rows: a mask over {len(self)} rows has shape {mask.shape}.")
        return np.flatnonzero(mask)


class DecodedRows(_ArrayRows):
    """Rows stored in a compact form; ``decode`` turns the rows read into ``dtype``."""

    def __init__(
        self,
        stored: NDArray[Any],
        decode: Callable[[NDArray[Any]], NDArray[Any]],
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.stored = stored
        self.decode = decode
        self.shape = stored.shape
        self.dtype = np.dtype(dtype)

    def __getitem__(self, rows: Any) -> Any:
        try:
            return self.decode(self.stored[rows])
        except IndexError:
            raise PositionError(f"rows: no such rows among {len(self)}, got {rows!r}.") from None
