"""Rows of a dataset that are not copied until they are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bittern.data.decoding import read_image
from bittern.errors import PositionError

__all__ = [
    "ImageFiles",
    "RowView",
    "Rows",
    "SparseRows",
    "Texts",
]


class Rows(Protocol):
    """What a modality is: a length, and rows by position; indexing by many rows reads them."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def __getitem__(self, rows: Any) -> Any:
        """The rows chosen by a position, a slice or an array."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RowView:
    """Some rows of other rows, remembered by position and read when asked for.

    ``np.asarray(view)`` or ``view[:]`` reads them all; a view of a view remembers one list.
    """

    source: Rows
    positions: NDArray[np.intp]

    @classmethod
    def of(cls, source: Rows, positions: NDArray[np.intp]) -> RowView:
        """A view of ``source``; views do not pile up."""
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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        rows = self[:]
        array = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        return array if dtype is None else array.astype(dtype, copy=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows if they were read."""
        return (len(self), *getattr(self.source, "shape", ())[1:])


class ImageFiles(Sequence[Any]):
    """Images in files, each read when asked for: ``images[3]`` is an ``(h, w, 3)`` uint8 array.

    ``read`` turns a path into an array; by default Pillow, as
    :func:`~bittern.data.decoding.decode_image` says.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        read: Callable[[Path], NDArray[np.uint8]] | None = None,
    ) -> None:
        self.paths = np.array([str(path) for path in paths], dtype=object)
        self._read = read or read_image

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: Any) -> Any:
        chosen = self.paths[rows]
        if isinstance(chosen, str):
            return self._read(Path(chosen))
        return [self._read(Path(path)) for path in chosen]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self._read(Path(path)) for path in self.paths)


class Texts(Sequence[Any]):
    """Texts, one a row."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = np.array(list(texts), dtype=object)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: Any) -> Any:
        chosen = self.texts[rows]
        return chosen if isinstance(chosen, str) else list(chosen)


class SparseRows:
    """Rows of a ``scipy.sparse`` matrix, which has no ``len`` itself; ``rows[:]`` is the matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr()

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, rows: Any) -> Any:
        return self.matrix[rows]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array: NDArray[Any] = self.matrix.toarray()
        return array if dtype is None else array.astype(dtype, copy=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return self.matrix.dtype
