"""Buckets: the hash tables of a database, sorted, in flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks
from bittern.errors import FileError, InputError
from bittern.index.tables import Tables
from bittern.parallel import available_threads, run_blocks

__all__ = ["Buckets", "Found", "query_blocks"]

BLOCK = 1 << 20  # items found in one block of work
LOOK_UPS = 1 << 20  # in one block of measuring
MOST_QUERIES = 1 << 12  # in one block of work
SCRATCH = 1 << 30  # octets that sorting may take over all threads, where one table takes less


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a block of queries found: query q's rows are ``rows[offsets[q] : offsets[q + 1]]``."""

    offsets: NDArray[np.int64]  # (n_queries + 1,)
    rows: NDArray[np.uint32]  # distinct for each query, in the order found
    examined: NDArray[np.int64]  # (n_queries,) the same with repetitions
    occupied: NDArray[np.uint8]  # (n_queries, …) a bit for each look-up, set if it found any


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The rows of a database in the order of their keys, for each of several tables.

    ``directory`` tells where the keys with each prefix begin.  A prefix has about as many bits as
    the number of rows; where it is the whole key, its range is the bucket and ``keys`` is empty.
    Four to twelve octets a row and table with keys of up to 32 bits, four more with longer ones.
    """

    tables: Tables
    ids: NDArray[np.uint32]  # (n_tables, n)
    directory: NDArray[np.uint32]  # (n_tables, 2^prefix bits + 1)
    keys: NDArray[Any]  # (n_tables, n) sorted, or (n_tables, 0)

    @classmethod
    def build(
        cls, words: NDArray[np.uint64], tables: Tables, n_threads: int | None = None
    ) -> Buckets:
        """Sort the rows of ``words`` for each table, with scratch memory for a few at a time."""
        from bittern.kernels import buckets

        n, n_tables, width = len(words), tables.n_tables, tables.bits_per_table
        if n >= 1 << 32:
            raise InputError(f"Buckets: a part has fewer than 2^32 rows, got {n}; divide them.")
        n_prefixes = 1 << _prefix_bits(n, tables)
        ids = np.empty((n_tables, n), np.uint32)
        directory = np.zeros((n_tables, n_prefixes + 1), np.uint32)
        shift = _shift(n, tables)
        keys = np.empty((n_tables, n if shift else 0), tables.key_type)

        def sort(table: int) -> None:
            own = tables.keys(words, table)
            buckets.sort_keys(own, width, ids[table], np.empty_like(own), np.empty(n, np.uint32))
            buckets.count_prefixes(own, shift, directory[table])
            if shift:
                keys[table] = own

        most = max(1, SCRATCH // (24 * max(1, n)))
        run_blocks(sort, range(n_tables), min(available_threads(n_threads), most))
        return cls(tables, ids, directory, keys)

    def __len__(self) -> int:
        return self.ids.shape[1]

    def check(self, n_rows: int) -> None:
        """Refuse arrays of a file that are not the buckets of so many rows."""
        n_tables, key_type = self.tables.n_tables, self.tables.key_type
        n_prefixes = 1 << _prefix_bits(n_rows, self.tables)
        wanted = {
            "ids": ((n_tables, n_rows), np.uint32),
            "directory": ((n_tables, n_prefixes + 1), np.uint32),
            "keys": ((n_tables, n_rows if _shift(n_rows, self.tables) else 0), key_type),
        }
        for name, (shape, dtype) in wanted.items():
            array = getattr(self, name)
            if array.shape != shape or array.dtype != dtype:
                raise InputError(f"Buckets: {name} must be {np.dtype(dtype)} of shape {shape}.")
        for part in self.directory:
            if part[0] != 0 or part[-1] != n_rows or (part[1:] < part[:-1]).any():
                raise InputError(f"Buckets: directory must ascend from 0 to {n_rows}.")
        # What is mapped is read when it is needed, and not before: look_up() checks it then.
        if not _is_mapped(self.ids) and self.ids.max() >= n_rows:
            raise InputError(f"Buckets: ids must be below {n_rows}.")

    def sizes(self, query_keys: NDArray[Any], n_threads: int | None = None) -> NDArray[np.int64]:
        """Rows in all buckets of each query, repetitions counted."""
        from bittern.kernels import buckets

        tables, sizes = self.tables, np.zeros(query_keys.shape[1], np.int64)

        def measure(rows: slice) -> None:
            keys = np.ascontiguousarray(query_keys[:, rows])
            buckets.measure_buckets(
                keys, tables.probes, self._shift(), self.directory, self.keys, sizes[rows]
            )

        run_blocks(measure, row_blocks(len(sizes), tables.n_look_ups, LOOK_UPS), n_threads)
        return sizes

    def look_up(
        self,
        query_keys: NDArray[Any],
        sizes: NDArray[np.int64],
        excluded: NDArray[np.int64] | None = None,
    ) -> Found:
        """The union of each query's buckets, without the row ``excluded[q]``."""
        from bittern.kernels import buckets

        n_queries = query_keys.shape[1]
        offsets = np.zeros(n_queries + 1, np.int64)
        rows = np.empty(np.minimum(sizes, len(self)).sum(), np.uint32)
        examined = np.zeros(n_queries, np.int64)
        occupied = np.zeros((n_queries, -(-self.tables.n_look_ups // 8)), np.uint8)
        is_sound = buckets.collect(
            query_keys,
            self.tables.probes,
            self._shift(),
            self.directory,
            self.keys,
            self.ids,
            np.full(n_queries, -1) if excluded is None else excluded,
            np.zeros(-(-len(self) // 64), np.uint64),
            offsets,
            rows,
            examined,
            occupied,
        )
        if not is_sound:
            raise FileError(
                "Buckets: the tables name rows that are not there; their file is damaged, and "
                "must be made anew."
            )
        return Found(offsets, rows[: offsets[-1]], examined, occupied)

    def _shift(self) -> np.uint64:
        return _shift(len(self), self.tables)


def query_blocks(sizes: NDArray[np.int64]) -> list[slice]:
    """Slices of queries that find about as much each, and not too much at once."""
    blocks, start, total = [], 0, 0
    for q, size in enumerate(sizes.tolist()):
        if q > start and (total + size > BLOCK or q - start >= MOST_QUERIES):
            blocks.append(slice(start, q))
            start, total = q, 0
        total += size
    return [*blocks, slice(start, len(sizes))]


def _prefix_bits(n: int, tables: Tables) -> int:
    return min(tables.bits_per_table, max(1, n.bit_length() - 1))


def _shift(n: int, tables: Tables) -> np.uint64:
    """What is left of a key after its prefix, in bits."""
    return np.uint64(tables.bits_per_table - _prefix_bits(n, tables))


def _is_mapped(array: NDArray[Any]) -> bool:
    """Whether the numbers are in a file rather than in memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return False
