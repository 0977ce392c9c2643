"""Hash tables: which bits of a code make the keys, and the sorted buckets of a database."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_choice, check_count, row_blocks
from bittern.errors import FileError, InputError
from bittern.parallel import available_threads, run_blocks

SEGMENTS = ("consecutive", "random")
MOST_KEY_BITS = 64
MOST_TABLES = 1 << 12
MOST_PROBES = 1 << 20
BLOCK = 1 << 20  # items found in one block of work
LOOK_UPS = 1 << 20  # in one block of measuring
MOST_QUERIES = 1 << 12  # in one block of work
SCRATCH = 1 << 30  # bytes that sorting may take over all threads, unless one table takes more


@dataclass(frozen=True, eq=False)
class Tables:
    """A setting of hash tables: bit j of a key of table t is bit ``bits[t, j]`` of the code.

    A query *collides* with an item if their keys differ in at most ``probe`` bits in at least one
    table: the query looks into the bucket of its own key and, if ``probe`` is above 0, into those
    of the keys around it.

    Reference: sections 3.4.2 and 3.4.3 of [Moran-2016], after [Gionis-Indyk-Motwani-1999].
    """

    bits: NDArray[np.int64]  # (n_tables, bits_per_table)
    n_bits: int
    probe: int = 0

    def __post_init__(self) -> None:
        b = self.bits
        if b.ndim != 2 or b.dtype != np.int64 or not b.size or b.shape[1] > MOST_KEY_BITS:
            raise InputError(
                f"Tables: bits must be int64 (n_tables, bits_per_table), with keys of at most "
                f"{MOST_KEY_BITS} bits, got {b.dtype} of shape {b.shape}."
            )
        if b.min() < 0 or b.max() >= self.n_bits:
            raise InputError(f"Tables: bits must lie in [0, {self.n_bits}).")

    @classmethod
    def choose(
        cls,
        owner: str,
        n_bits: int,
        n_tables: int,
        bits_per_table: int,
        segments: str = "consecutive",
        probe: int = 0,
        random_state: int = 0,
    ) -> Tables:
        """Tables over consecutive segments of a code, or over random bits.

        Segment t is bits :math:`tK … tK + K - 1`, so :math:`L K` must not exceed the code length.
        Random table t has the first K bits of the t-th random permutation: no bit occurs twice in
        one table, tables may share bits, and a larger K or L adds to the bits of a smaller one.
        """
        n_tables = check_count(n_tables, f"{owner}: n_tables", most=MOST_TABLES)
        most = min(MOST_KEY_BITS, n_bits)
        width = check_count(bits_per_table, f"{owner}: bits_per_table", most=most)
        probe = check_count(probe, f"{owner}: probe", least=0, most=width)
        random_state = check_count(random_state, f"{owner}: random_state", least=0)
        segments = check_choice(segments, f"{owner}: segments", SEGMENTS)
        if segments == "consecutive" and n_tables * width > n_bits:
            raise InputError(
                f"{owner}: {n_tables} segments of {width} bits do not fit into codes of {n_bits} "
                "bits; use fewer or shorter ones, or segments='random'."
            )
        if sum(comb(width, i) for i in range(probe + 1)) > MOST_PROBES:
            raise InputError(
                f"{owner}: keys of {width} bits have more than {MOST_PROBES} others within "
                f"{probe} bits; use a smaller probe, or compare with all codes."
            )
        if segments == "consecutive":
            return cls(np.arange(n_tables * width).reshape(n_tables, width), n_bits, probe)
        orders = [_permutation(n_bits, random_state, t)[:width] for t in range(n_tables)]
        return cls(np.stack(orders), n_bits, probe)

    @property
    def n_tables(self) -> int:
        """L, the number of tables."""
        return len(self.bits)

    @property
    def bits_per_table(self) -> int:
        """K, the length of a key."""
        return self.bits.shape[1]

    @property
    def probes(self) -> NDArray[Any]:
        """Masks that turn a query's key, by XOR, into the keys of its buckets, nearest first."""
        return _masks(self.bits_per_table, self.probe).astype(self.key_type)

    @property
    def n_look_ups(self) -> int:
        """Number of buckets that one query looks into, over all tables."""
        return self.n_tables * sum(comb(self.bits_per_table, i) for i in range(self.probe + 1))

    @property
    def certain_radius(self) -> int:
        r"""A radius within which every item is certain to collide.

        An item that collides in none of :math:`L` tables differs in :math:`p + 1` bits of each.  If
        the :math:`d` bits that occur most often in the tables occur fewer than :math:`L (p + 1)`
        times, distance :math:`d` is too small for that.  Segments share no bits, so their radius is
        :math:`L (p + 1) - 1`, and no larger one is certain.
        """
        times = np.sort(np.bincount(self.bits.ravel(), minlength=self.n_bits))[::-1]
        return int(np.count_nonzero(np.cumsum(times) < self.n_tables * (self.probe + 1)))

    @property
    def farthest(self) -> int:
        r"""The largest distance at which an item may still collide, :math:`b - K + p`."""
        return self.n_bits - self.bits_per_table + self.probe

    @property
    def key_type(self) -> type[np.uint32] | type[np.uint64]:
        """The type of the keys."""
        return np.uint32 if self.bits_per_table <= 32 else np.uint64

    def keys(self, words: NDArray[np.uint64], table: int) -> NDArray[Any]:
        """The key of each code in one table."""
        from bittern.kernels import hash_tables as kernels

        keys = np.empty(len(words), self.key_type)
        kernels.gather_keys(words, self._pieces[table], keys)
        return keys

    def all_keys(self, words: NDArray[np.uint64]) -> NDArray[Any]:
        """The keys of each code in all tables, ``(n_tables, n)``."""
        return np.stack([self.keys(words, table) for table in range(self.n_tables)])

    @cached_property
    def _pieces(self) -> list[NDArray[np.uint64]]:
        return [_pieces(bits) for bits in self.bits]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tables):
            return NotImplemented
        same = self.n_bits == other.n_bits and self.probe == other.probe
        return same and np.array_equal(self.bits, other.bits)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        probe = f", probing {self.probe}" if self.probe else ""
        return f"<{self.n_tables} tables of {self.bits_per_table} of {self.n_bits} bits{probe}>"


@dataclass(frozen=True, slots=True, eq=False)
class Retrieved:
    """What a block of queries found: query q's rows are ``rows[offsets[q] : offsets[q + 1]]``."""

    offsets: NDArray[np.int64]  # (n_queries + 1,)
    rows: NDArray[np.uint32]  # each once per query, in the order found
    examined: NDArray[np.int64]  # (n_queries,) rows found, repetitions counted
    occupied: NDArray[np.uint8]  # (n_queries, …) a bit per look-up, set if it found any row


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The rows of a database in the order of their keys, for each of several tables.

    ``directory`` says where the keys with each prefix begin.  A prefix has about as many bits as
    the number of rows; if it is the whole key, its range is the bucket and ``keys`` is empty.  A
    row takes four to twelve bytes in each table with keys of up to 32 bits, and four more with
    longer ones.
    """

    tables: Tables
    ids: NDArray[np.uint32]  # (n_tables, n)
    directory: NDArray[np.uint32]  # (n_tables, 2^prefix bits + 1)
    keys: NDArray[Any]  # (n_tables, n) sorted, or (n_tables, 0)

    @classmethod
    def build(
        cls, words: NDArray[np.uint64], tables: Tables, n_threads: int | None = None
    ) -> Buckets:
        """Sort the rows of ``words`` for each table, a few tables at a time to bound memory."""
        from bittern.kernels import hash_tables as kernels

        n, n_tables, width = len(words), tables.n_tables, tables.bits_per_table
        if n >= 1 << 32:
            raise InputError(f"Buckets: needs fewer than 2^32 rows, got {n}; divide them.")
        n_prefixes = 1 << _prefix_bits(n, tables)
        ids = np.empty((n_tables, n), np.uint32)
        directory = np.zeros((n_tables, n_prefixes + 1), np.uint32)
        shift = _shift(n, tables)
        keys = np.empty((n_tables, n if shift else 0), tables.key_type)

        def sort(table: int) -> None:
            own = tables.keys(words, table)
            kernels.sort_keys(own, width, ids[table], np.empty_like(own), np.empty(n, np.uint32))
            kernels.count_prefixes(own, shift, directory[table])
            if shift:
                keys[table] = own

        most = max(1, SCRATCH // (24 * max(1, n)))
        run_blocks(sort, range(n_tables), min(available_threads(n_threads), most))
        return cls(tables, ids, directory, keys)

    def __len__(self) -> int:
        return self.ids.shape[1]

    def check(self, n_rows: int) -> None:
        """Fail if arrays from a file are not the buckets of ``n_rows`` rows."""
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
        # Mapped arrays are read only when they are needed: look_up() checks them then.
        if not _is_mapped(self.ids) and self.ids.max() >= n_rows:
            raise InputError(f"Buckets: ids must be below {n_rows}.")

    def sizes(self, query_keys: NDArray[Any], n_threads: int | None = None) -> NDArray[np.int64]:
        """Number of rows in all buckets of each query, repetitions counted."""
        from bittern.kernels import hash_tables as kernels

        tables, sizes = self.tables, np.zeros(query_keys.shape[1], np.int64)

        def measure(rows: slice) -> None:
            keys = np.ascontiguousarray(query_keys[:, rows])
            kernels.measure_buckets(
                keys, tables.probes, self._shift(), self.directory, self.keys, sizes[rows]
            )

        run_blocks(measure, row_blocks(len(sizes), tables.n_look_ups, LOOK_UPS), n_threads)
        return sizes

    def look_up(
        self,
        query_keys: NDArray[Any],
        sizes: NDArray[np.int64],
        excluded: NDArray[np.int64] | None = None,
    ) -> Retrieved:
        """The union of each query's buckets, without the row ``excluded[q]``."""
        from bittern.kernels import hash_tables as kernels

        n_queries = query_keys.shape[1]
        offsets = np.zeros(n_queries + 1, np.int64)
        rows = np.empty(np.minimum(sizes, len(self)).sum(), np.uint32)
        examined = np.zeros(n_queries, np.int64)
        occupied = np.zeros((n_queries, -(-self.tables.n_look_ups // 8)), np.uint8)
        is_sound = kernels.collect(
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
                "Buckets: the tables name rows that do not exist, so their file is damaged; "
                "build the index again."
            )
        return Retrieved(offsets, rows[: offsets[-1]], examined, occupied)

    def _shift(self) -> np.uint64:
        return _shift(len(self), self.tables)


def look_up_blocks(sizes: NDArray[np.int64]) -> list[slice]:
    """Slices of queries that each find about the same number of rows."""
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
    """Number of bits of a key after its prefix."""
    return np.uint64(tables.bits_per_table - _prefix_bits(n, tables))


def _is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array is mapped from a file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return False


def _permutation(n_bits: int, random_state: int, table: int) -> NDArray[np.int64]:
    return np.random.default_rng([random_state, table]).permutation(n_bits)


@cache
def _masks(n_bits: int, most: int) -> NDArray[np.uint64]:
    """All masks of ``n_bits`` bits with at most ``most`` of them set."""
    sets = (combinations(range(n_bits), size) for size in range(most + 1))
    return np.array([sum(1 << j for j in chosen) for each in sets for chosen in each], np.uint64)


def _pieces(bits: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Neighbouring bits of one word together, as the kernel ``gather_keys`` moves them."""
    begins = np.diff(bits, prepend=-2) != 1
    begins |= bits % 64 == 0
    left = np.flatnonzero(begins)
    lengths = np.diff(np.append(left, len(bits)))
    masks = [(1 << int(length)) - 1 for length in lengths]
    first = bits[left]
    columns = (first // 64, first % 64, np.array(masks, np.uint64), left)
    return np.stack([column.astype(np.uint64) for column in columns], axis=1)
