"""GrowingArray: rows that are appended without moving the earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE, SPARE = 1 << 20, 64  # after so many rows, one in SPARE may be late


class GrowingArray:
    """An array that grows at the end.

    It doubles its memory when that is full, so that a row is copied a few times at most.  Doubling
    many rows takes seconds, though.  So after :data:`LARGE` rows a few new ones are *late*: they
    wait in an array of their own until there are more, or until :attr:`whole` is read.
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self._rows, self._n = np.require(rows, requirements="W"), len(rows)
        self._late, self._n_late = rows[:0], 0
        self._parts: tuple[NDArray[Any], NDArray[Any]] | None = None  # until rows are appended

    def __len__(self) -> int:
        return self._n + self._n_late

    @property
    def whole(self) -> NDArray[Any]:
        """All rows in one array, a view; it does not change when rows are appended."""
        if self._n_late:
            late = self._late[: self._n_late]
            self._rows = _placed(self._rows, self._n, late)
            self._n, self._late, self._n_late = self._n + len(late), late[:0], 0
            self._parts = None
        return self._rows[: self._n]

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The first rows, and the late ones after them; views."""
        if self._parts is None:
            self._parts = self._rows[: self._n], self._late[: self._n_late]
        return self._parts

    def append(self, new: NDArray[Any]) -> None:
        """Add rows at the end."""
        is_full = self._n_late > 0 or self._n + len(new) > len(self._rows)
        if is_full and self._n >= LARGE and self._n_late + len(new) <= self._n // SPARE:
            self._late = _placed(self._late, self._n_late, new)
            self._n_late += len(new)
        else:
            n = len(self.whole)
            self._rows, self._n = _placed(self._rows, n, new), n + len(new)
        self._parts = None

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Some rows, by their numbers."""
        if self._n_late == 0:
            return self._rows[rows]
        taken = self._rows[np.minimum(rows, self._n - 1)]
        is_late = rows >= self._n
        taken[is_late] = self._late[rows[is_late] - self._n]
        return taken


def _placed(rows: NDArray[Any], n: int, new: NDArray[Any]) -> NDArray[Any]:
    """The array with new rows after the first n, in place or in one of at least twice the size."""
    stop = n + len(new)
    if stop > len(rows):
        larger = np.empty((max(stop, 2 * n), *rows.shape[1:]), rows.dtype)
        larger[:n] = rows[:n]
        rows = larger
    rows[n:stop] = new
    return rows
