"""Rows of several arrays as one, and rows decoded when they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bittern.errors import InputError, PositionError

__all__ = ["DecodedRows", "StackedRows"]


class _ArrayLike(ABC):
    """Rows with a shape and a dtype that become an array when asked to."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array: NDArray[Any] = np.asarray(self[:])
        return array if dtype is None else array.astype(dtype, copy=False)


class StackedRows(_ArrayLike):
    """Arrays or memory maps one after the other, as one sequence of rows; none is copied.

    Indexing by a position, a slice, a mask or an array of positions reads just those rows.
    """

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        shapes = {part.shape[1:] for part in parts}
        if len(shapes) != 1:
            raise InputError(f"StackedRows: rows must have one shape, got {sorted(shapes)}.")
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

    def _gather(self, positions: NDArray[np.intp]) -> NDArray[Any]:
        out = np.empty((len(positions), *self.shape[1:]), self.dtype)
        of_part = np.searchsorted(self.starts, positions, side="right") - 1
        for i, part in enumerate(self.parts):
            here = of_part == i
            out[here] = part[positions[here] - self.starts[i]]
        return out

    def _positions(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        if rows.size == 0:
            return rows.astype(np.intp)
        if rows.dtype.kind not in "iu" or rows.min() < -len(self) or rows.max() >= len(self):
            raise PositionError(f"rows: no such rows among {len(self)}, got {rows!r}.")
        return np.where(rows < 0, rows + len(self), rows).astype(np.intp)

    def _marked(self, mask: NDArray[np.bool_]) -> NDArray[np.intp]:
        if mask.shape != (len(self),):
            raise PositionError(f"rows: a mask over {len(self)} rows has shape {mask.shape}.")
        return np.flatnonzero(mask)


class DecodedRows(_ArrayLike):
    """Rows stored in fewer bytes than they mean; ``decode`` turns what is read into ``dtype``."""

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
