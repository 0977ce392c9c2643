"""IndexedItems: the codes and ids of an index, appended at the end and marked when removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import LARGEST_ID, check_array, check_ids, check_new_ids
from bittern.errors import InputError
from bittern.index.growing_array import GrowingArray

Array = TypeVar("Array", bound=NDArray[Any])
RECENT = 1024  # ids that are looked up one by one before all are sorted again
Where = ArrayLike | Iterable[int]
PART = 1 << 20  # ids that are checked at a time


class Rows(Protocol):
    """Codes of items: bits in 64-bit words, or bytes of a quantiser."""

    @property
    def words(self) -> NDArray[Any]:
        """One row for each item."""

    @property
    def n_bits(self) -> int:
        """Bits of each item."""

    def __len__(self) -> int: ...


class IndexedItems:
    """Codes and ids by row; a removed row stays where it is until most rows are removed.

    So the cost of adding and removing does not grow with the number of rows, and an index that
    keeps something by row need not move it at every change.
    """

    def __init__(self) -> None:
        self.n_bits = 0
        self.n_alive = 0
        self.next_id = 0
        self._words = GrowingArray(np.empty((0, 0), np.uint64))
        self._ids = GrowingArray(np.empty(0, np.int64))
        self._dead: NDArray[np.bool_] | None = None
        self._are_ascending = True  # ids; if so, a binary search finds them
        self._order: NDArray[np.int64] = np.empty(0, np.int64)  # of the first rows, by id
        self._recent: dict[int, int] = {}  # rows of the later ids

    @property
    def words(self) -> NDArray[Any]:
        """Codes of all rows, ``(n_rows, n_words)``."""
        return self._words.whole

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Codes of the first rows, and of the few that were added since."""
        return self._words.parts

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of all rows."""
        return self._ids.whole

    @property
    def n_rows(self) -> int:
        """Number of rows, removed ones too."""
        return len(self._ids)

    def ids_at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids of some rows."""
        return self._ids.take(rows)

    @property
    def are_ascending(self) -> bool:
        """Whether the ids ascend in the order of rows."""
        return self._are_ascending

    @property
    def alive(self) -> NDArray[np.bool_] | None:
        """Which rows are not removed; None if none is removed."""
        return None if self._dead is None else ~self._dead[: self.n_rows]

    def living(self, array: Array) -> Array:
        """The entries of rows that are not removed; a read-only view if none is removed."""
        if self._dead is not None:
            return array[~self._dead[: self.n_rows]]  # type: ignore[return-value]
        view = array.view()
        view.flags.writeable = False
        return view

    def append(self, codes: Rows, ids: ArrayLike | None, owner: str) -> None:
        """Add rows at the end; without ids, continue from the largest so far."""
        new = self._counted_on(len(codes), owner) if ids is None else self._fresh(ids, codes, owner)
        n, self.n_bits = self.n_rows, codes.n_bits
        if n == 0:
            self._words, self._ids = GrowingArray(codes.words), GrowingArray(new)
        else:
            self._words.append(codes.words)
            self._ids.append(new)
        if self._dead is not None and self.n_rows > len(self._dead):
            self._dead = np.concatenate([self._dead, np.zeros(self.n_rows, np.bool_)])
        self._remember(new, n)
        self.n_alive += len(codes)
        self.next_id = max(self.next_id, int(new.max(initial=-1)) + 1)

    def adopt(self, codes: Rows, ids: NDArray[Any], owner: str, *, is_known: bool = False) -> None:
        """Use the first rows in place, on disk or in memory, if their ids ascend.

        If that ``is_known``, the ids are not read.
        """
        fits = ids.dtype == np.int64 and ids.shape == (len(codes),)
        if not fits or not (is_known or _ascend(ids)):
            self.append(codes, ids, owner)
            return
        self.n_bits, self.n_alive = codes.n_bits, len(codes)
        self._words, self._ids = GrowingArray(codes.words), GrowingArray(ids)
        self.next_id = int(ids[-1]) + 1 if len(ids) else 0

    def remove(self, ids: ArrayLike, owner: str) -> bool:
        """Mark rows as removed; True if rows have moved because most were removed."""
        wanted = np.unique(check_ids(ids, f"{owner}: ids"))
        rows = self.rows_of(wanted)
        if (rows < 0).any():
            raise InputError(f"{owner}: no item has the id {wanted[rows < 0][0]}.")
        if len(rows) == 0:
            return False
        if self._dead is None:
            self._dead = np.zeros(self.n_rows, np.bool_)
        self._dead[rows] = True
        self.n_alive -= len(rows)
        return 2 * self.n_alive < self.n_rows and self.compact()

    def compact(self) -> bool:
        """Drop removed rows; True if there were any."""
        if self._dead is None:
            return False
        alive = ~self._dead[: self.n_rows]
        self._words, self._ids = GrowingArray(self.words[alive]), GrowingArray(self.ids[alive])
        self._dead = None
        self._order, self._recent = np.empty(0, np.int64), {}
        self._are_ascending = True
        self._remember(self.ids, 0)
        return True

    def rows_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each id, -1 for an unknown one."""
        if self.n_rows == 0:
            return np.full(len(ids), -1, np.int64)
        rows = self._ascending_rows(ids) if self._are_ascending else self._ordered_rows(ids)
        if self._dead is not None:
            rows[(rows >= 0) & self._dead[rows]] = -1
        return rows

    def allowed(self, where: Where | None, owner: str) -> tuple[NDArray[np.bool_] | None, int]:
        """Which rows may be found, None if all may, and their number.

        ``where`` is a boolean mask over the items in their order, or ids, of which unknown ones
        match nothing.
        """
        if where is None:
            return None if self._dead is None else self.alive, self.n_alive
        if isinstance(where, set | frozenset | range):
            where = np.fromiter(where, np.int64, len(where))
        w = check_array(where, f"{owner}: where")
        if w.ndim != 1 or (w.dtype.kind not in "biu" and w.size):
            raise InputError(
                f"{owner}: where must be a boolean mask or ids, 1-D, "
                f"got {w.dtype} of shape {w.shape}."
            )
        mask = self._mask_over_all(w, owner) if w.dtype == bool else self._mask_of(w)
        return mask, int(np.count_nonzero(mask))

    def _mask_over_all(self, mask: NDArray[np.bool_], owner: str) -> NDArray[np.bool_]:
        """A mask over all rows, from one over those not removed."""
        if len(mask) != self.n_alive:
            raise InputError(
                f"{owner}: a mask must have one entry for each of {self.n_alive} items, "
                f"got {len(mask)}."
            )
        if self._dead is None:
            return mask
        whole = ~self._dead[: self.n_rows]
        whole[whole] = mask
        return whole

    def _mask_of(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """The mask of the rows of these ids; unknown ids match nothing."""
        mask = np.zeros(self.n_rows, np.bool_)
        rows = self.rows_of(ids.astype(np.int64))
        mask[rows[rows >= 0]] = True
        return mask

    def _counted_on(self, n: int, owner: str) -> NDArray[np.int64]:
        if self.next_id > LARGEST_ID - n:
            raise InputError(f"{owner}: no ids are left after {self.next_id - 1}; pass ids.")
        return np.arange(self.next_id, self.next_id + n)

    def _fresh(self, ids: ArrayLike, codes: Rows, owner: str) -> NDArray[np.int64]:
        """The given ids, checked to be distinct and new."""
        new = check_new_ids(ids, len(codes), owner)
        there = self.rows_of(new) >= 0
        if there.any():
            raise InputError(f"{owner}: the id {new[there][0]} exists already; remove() it first.")
        return new

    def _remember(self, new: NDArray[np.int64], n: int) -> None:
        """Let :meth:`rows_of` find the new ids, which are those of the rows from n on."""
        last = self.ids_at(np.array([n - 1]))[0] if n else -1
        follows = len(new) == 0 or (new[0] > last and bool((np.diff(new) > 0).all()))
        if self._are_ascending and not follows:
            self._are_ascending, self._order = False, np.arange(n)
        if not self._are_ascending:
            if len(self._recent) + len(new) > max(RECENT, len(self._order) // 4):
                self._order = np.argsort(self.ids, kind="stable")
                self._recent = {}
            else:
                self._recent.update(zip(new.tolist(), range(n, n + len(new)), strict=True))

    def _ascending_rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        first, late = self._ids.parts
        rows = np.searchsorted(first, ids)
        if len(late):
            beyond = rows == len(first)
            rows[beyond] += np.searchsorted(late, ids[beyond])
        rows[rows == self.n_rows] = 0
        rows[self.ids_at(rows) != ids] = -1
        return rows

    def _ordered_rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """For ids in any order; of an id that was removed and added again, the last row counts."""
        rows = np.full(len(ids), -1, np.int64)
        if len(self._order):
            known = self.ids[: len(self._order)]
            places = np.searchsorted(known, ids, side="right", sorter=self._order) - 1
            rows = self._order[places]
            rows[(places < 0) | (known[rows] != ids)] = -1
        if self._recent:
            later = [self._recent.get(i, -1) for i in ids.tolist()]
            rows = np.maximum(rows, np.array(later, np.int64))
        return rows


def _ascend(ids: NDArray[np.int64]) -> bool:
    """Whether ids are at least 0 and ascend strictly; checked a part at a time."""
    parts = (ids[first : first + PART + 1] for first in range(0, len(ids), PART))
    if len(ids) and ids[0] < 0:
        return False
    return all((part[1:] > part[:-1]).all() for part in parts)
