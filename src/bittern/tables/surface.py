"""TableSurface: what hash tables retrieve over a grid of settings, from one pass over the pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_array, check_choice, row_blocks
from bittern.codes import Codes
from bittern.errors import InputError, shown
from bittern.index.hash_tables import SEGMENTS, Tables
from bittern.metrics.precision import ratio
from bittern.parallel import Progress, run_blocks
from bittern.relevance import Relevance
from bittern.tables.profile import check_sides

PART = 1 << 15  # database items whose keys are held at once
PAIRS = 1 << 20  # pairs in one block of work
NOT_POSSIBLE = -1
OTHER, RELEVANT, LEFT_OUT = range(3)  # kinds of pairs, as the kernel counts them


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableSurface:
    """What hash tables retrieve for each query, for every K and L of a grid.

    A setting is not possible if its segments do not fit into a code: its counts are -1 and its
    values NaN.  Surfaces of shards of one database add up to that of the whole.
    """

    bits_per_table: NDArray[np.int64]  # (n_k,) the values of K, ascending
    n_tables: NDArray[np.int64]  # (n_l,) the values of L, ascending
    true_positives: NDArray[np.int64]  # (n_queries, n_k, n_l)
    false_positives: NDArray[np.int64]  # (n_queries, n_k, n_l)
    examined: NDArray[np.int64]  # (n_queries, n_k, n_l), with repetitions
    n_relevant: NDArray[np.int64]  # (n_queries,)
    settings: tuple[Tables, ...]  # (n_k,) the largest number of tables for each K

    @property
    def is_possible(self) -> NDArray[np.bool_]:
        """Which settings are possible, ``(n_k, n_l)``."""
        most = np.array([tables.n_tables for tables in self.settings])
        return self.n_tables <= most[:, None]

    @property
    def false_negatives(self) -> NDArray[np.int64]:
        """Relevant items that were not retrieved, ``(n_queries, n_k, n_l)``."""
        missed = self.n_relevant[:, None, None] - self.true_positives
        return np.where(self.is_possible, missed, NOT_POSSIBLE)

    @property
    def n_empty(self) -> NDArray[np.int64]:
        """Number of queries that retrieved nothing, ``(n_k, n_l)``; -1 where not possible."""
        empty = (self.true_positives + self.false_positives == 0).sum(axis=0)
        return np.where(self.is_possible, empty, NOT_POSSIBLE)

    @property
    def retrieved(self) -> Float64Array:
        """Items retrieved over all queries, ``(n_k, n_l)``; NaN where not possible."""
        return self._sum(self.true_positives) + self._sum(self.false_positives)

    @property
    def precision(self) -> Float64Array:
        """Micro precision ``(n_k, n_l)`` (eq. 3.8 of [Moran-2016]); NaN if nothing is retrieved."""
        return ratio(self._sum(self.true_positives), self.retrieved)

    @property
    def recall(self) -> Float64Array:
        """Micro recall ``(n_k, n_l)`` (eq. 3.9 of [Moran-2016]); NaN if nothing is relevant."""
        found = self._sum(self.true_positives)
        return ratio(found, np.full(found.shape, self.n_relevant.sum()))

    def f_beta(self, beta: float = 1.0) -> Float64Array:
        """Micro F ``(n_k, n_l)`` (eq. 3.10 of [Moran-2016]); NaN if nothing is relevant."""
        n_relevant = self.n_relevant.sum()
        whole = self.retrieved + beta**2 * n_relevant if n_relevant else np.zeros_like(self.recall)
        return ratio((1 + beta**2) * self._sum(self.true_positives), whole)

    def tables(self, bits_per_table: int, n_tables: int) -> Tables:
        """The tables of one setting; L need not be in the grid."""
        known = self.bits_per_table.tolist()
        if bits_per_table not in known:
            raise InputError(f"TableSurface: K must be one of {known}, got {bits_per_table}.")
        most = self.settings[known.index(bits_per_table)]
        if not 1 <= n_tables <= most.n_tables:
            raise InputError(
                f"TableSurface: with {bits_per_table} bits per table, L must be between 1 and "
                f"{most.n_tables}, got {n_tables}."
            )
        return Tables(most.bits[:n_tables], most.n_bits, most.probe)

    def __add__(self, other: TableSurface) -> TableSurface:
        """The surface of two shards of one database together."""
        if not isinstance(other, TableSurface):
            return NotImplemented
        same_grid = np.array_equal(self.n_tables, other.n_tables)
        if len(self.n_relevant) != len(other.n_relevant) or not (
            same_grid and self.settings == other.settings
        ):
            raise InputError(
                "TableSurface: only shards of one database, for the same queries and grid, can be "
                f"added, got {self!r} and {other!r}."
            )
        return TableSurface(
            bits_per_table=self.bits_per_table,
            n_tables=self.n_tables,
            true_positives=self._with(self.true_positives + other.true_positives),
            false_positives=self._with(self.false_positives + other.false_positives),
            examined=self._with(self.examined + other.examined),
            n_relevant=self.n_relevant + other.n_relevant,
            settings=self.settings,
        )

    def __repr__(self) -> str:
        return (
            f"<TableSurface: {len(self.n_relevant):,} queries, K {self.bits_per_table.tolist()}, "
            f"L {self.n_tables.tolist()}>"
        )

    def _sum(self, counts: NDArray[np.int64]) -> Float64Array:
        return np.where(self.is_possible, counts.sum(axis=0), np.nan)

    def _with(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(self.is_possible, counts, NOT_POSSIBLE)


def table_surface(
    queries: Codes,
    database: Codes,
    relevance: Relevance,
    *,
    bits_per_table: Sequence[int] | NDArray[np.integer[Any]],
    n_tables: Sequence[int] | NDArray[np.integer[Any]],
    segments: str = "consecutive",
    probe: int = 0,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> TableSurface:
    """Compare every query with the whole database, and count for all settings of hash tables.

    A pair that first collides in table t is retrieved by every setting of more than t tables.  So
    one pass over the pairs, with one count for each K, gives all L.  Tables and counts of a setting
    are those of :func:`table_profile` with the same arguments.
    """
    check_sides("table_surface", queries, database, relevance)
    k_grid = _grid(bits_per_table, "bits_per_table")
    l_grid = _grid(n_tables, "n_tables")
    settings = tuple(
        Tables.choose("table_surface", queries.n_bits, most, int(k), segments, probe, random_state)
        for k in k_grid
        for most in [_most_tables(queries.n_bits, int(k), int(l_grid[-1]), segments)]
    )
    counts = np.zeros((len(k_grid), len(queries), 3, len(l_grid) + 1), np.int64)
    examined = np.zeros((len(k_grid), len(queries), len(l_grid) + 1), np.int64)
    for part in row_blocks(len(database), 1, PART):
        shard = relevance.shard(part.start, part.stop)
        out = counts, examined
        work = _counter(queries.words, database.words[part], shard, settings, l_grid, out)
        blocks = row_blocks(len(queries), part.stop - part.start, PAIRS)
        run_blocks(work, blocks, n_threads)
        if progress is not None:
            progress(part.stop * len(queries), len(queries) * len(database))

    found, examined = (_up_to_each(c, settings, l_grid) for c in (counts, examined[:, :, None]))
    return TableSurface(
        bits_per_table=k_grid,
        n_tables=l_grid,
        true_positives=found[:, :, RELEVANT],
        false_positives=found[:, :, OTHER],
        examined=examined[:, :, 0],
        n_relevant=relevance.n_relevant,
        settings=settings,
    )


def _counter(
    queries: NDArray[np.uint64],
    items: NDArray[np.uint64],
    relevance: Relevance,
    settings: Sequence[Tables],
    l_grid: NDArray[np.int64],
    out: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Callable[[slice], None]:
    """A function that adds some items to the counts of a slice of queries.

    ``out`` is counts and examined.  ``counts[k, q, v, j]`` has the pairs of kind v that a setting
    of ``l_grid[j]`` tables is the first to retrieve; the last j, beyond the grid, has the pairs
    that collide in no table.
    """
    from bittern.kernels import hash_tables

    counts, examined = out
    item_keys = [tables.all_keys(items) for tables in settings]
    bins = [np.searchsorted(l_grid, np.arange(1, t.n_tables + 1)) for t in settings]

    def count(rows: slice) -> None:
        kinds = _kinds(relevance, rows)
        for k, tables in enumerate(settings):
            hash_tables.count_collisions(
                tables.all_keys(queries[rows]),
                item_keys[k],
                tables.probe,
                kinds,
                np.append(bins[k], len(l_grid)),
                counts[k, rows],
                examined[k, rows],
            )

    return count


def _kinds(relevance: Relevance, rows: slice) -> NDArray[np.uint8]:
    """Whether each item is relevant to each of a few queries, or left out."""
    kinds = np.where(relevance.block(rows) > 0, np.uint8(RELEVANT), np.uint8(OTHER))
    if relevance.excluded is not None:
        excluded = relevance.excluded[rows]
        named = np.flatnonzero(excluded >= 0)
        kinds[named, excluded[named]] = LEFT_OUT
    return kinds


def _up_to_each(
    counts: NDArray[np.int64], settings: Sequence[Tables], l_grid: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Counts ``(n_queries, n_k, n_kinds, n_l)`` of all pairs that each setting retrieves."""
    summed = np.cumsum(counts, axis=-1)[..., :-1].swapaxes(0, 1)
    most = np.array([tables.n_tables for tables in settings])
    return np.where((l_grid <= most[:, None])[:, None], summed, NOT_POSSIBLE)


def _most_tables(n_bits: int, bits_per_table: int, wanted: int, segments: str) -> int:
    """The wanted number of tables, but no more than there are segments, and at least one."""
    fit = max(1, n_bits // bits_per_table)
    check_choice(segments, "table_surface: segments", SEGMENTS)
    return min(wanted, fit) if segments == "consecutive" else wanted


def _grid(values: Any, name: str) -> NDArray[np.int64]:
    """Values of K or L, ascending and distinct."""
    v = np.atleast_1d(check_array(values, f"table_surface: {name}"))
    if v.ndim != 1 or not len(v) or v.dtype.kind not in "iu" or v.min() < 1:
        raise InputError(
            f"table_surface: {name} must be one or more whole numbers of at least 1, "
            f"got {shown(values)}."
        )
    return np.unique(v).astype(np.int64)
