"""TableIndex: hash tables, which find the items that collide with the query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count, check_type
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.index.base import Index, Mask, Nearest, Within, Words
from bittern.index.hash_tables import MOST_KEY_BITS, Buckets, Tables, look_up_blocks
from bittern.index.hits import FAR, NONE, Hits
from bittern.index.items import Where
from bittern.parallel import run_blocks

# Query, distance and row in one number, which sorts by them in this order.
ROW_BITS, DISTANCE_BITS = np.uint64(32), np.uint64(13)


class TableIndex(Index):
    r"""Hash tables over segments of the codes, or over random bits of them.

    It finds the items that *collide* with the query: their keys differ from its key in at most
    ``probe`` bits in at least one of ``n_tables`` tables (L), whose keys are ``bits_per_table``
    bits of the code (K).  They are ranked by distance.  Unlike the others, this index is not exact:
    ``search`` may give fewer than k hits or miss nearer items, and ``within`` may miss items,
    except within :attr:`certain_radius`.  ``bt.table_profile`` measures what that costs.

    ``bits_per_table`` defaults to :math:`\log_2 n` for the :math:`n` codes that are added first, so
    that a bucket holds about one of them if they are uniform; ``n_tables`` defaults to the number
    of segments.

    Reference: section 3.4.2 of [Moran-2016], after [Gionis-Indyk-Motwani-1999]; probing after
    [Lv-Josephson-Wang-Charikar-Li-2007], here all keys within a radius.

    >>> import bittern as bt
    >>> database = bt.Codes.from_bits([[0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]])
    >>> index = bt.TableIndex(database, n_tables=2, bits_per_table=2)
    >>> index.search(bt.Codes.from_bits([[0, 0, 1, 1]]), k=3).to_lists()
    [[(0, 0), (2, 2)]]
    """

    kind = "table"

    def __init__(
        self,
        codes: Codes | None = None,
        *,
        n_tables: int | None = None,
        bits_per_table: int | None = None,
        segments: str = "consecutive",
        probe: int = 0,
        random_state: int = 0,
        ids: ArrayLike | None = None,
    ) -> None:
        self._n_tables, self._bits_per_table = n_tables, bits_per_table
        self._segments, self._probe, self._random_state = segments, probe, random_state
        self._chosen: Tables | None = None
        self._parts: list[Buckets] = []  # of consecutive rows
        super().__init__(codes, ids=ids)

    def add(self, codes: Codes, ids: ArrayLike | None = None) -> None:
        """Add codes at the end; fails and adds none if an id exists already."""
        check_type(codes, Codes, f"{self._title}: codes")
        tables = self._choose(codes) if self._chosen is None else self._chosen
        super().add(codes, ids)
        self._chosen = tables

    def candidates(
        self, queries: Codes, *, where: Where | None = None, n_threads: int | None = None
    ) -> Hits:
        """All items that collide with each query, each once, nearest first."""
        return self.within(queries, self.n_bits, where=where, n_threads=n_threads)

    @property
    def tables(self) -> Tables:
        """Which bits of a code make the keys."""
        if self._chosen is None:
            raise InputError(f"{self._title}: has no codes yet; add() some.")
        return self._chosen

    @property
    def certain_radius(self) -> int:
        """The largest radius within which every item is certain to be found."""
        return self.tables.certain_radius

    def _nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        rows = np.full((len(queries), k), NONE, np.int64)
        distances = np.full((len(queries), k), FAR, np.int32)

        def keep(block: slice, found: _Ranked) -> None:
            place = np.arange(len(found.rows)) - found.offsets[found.query]
            near = place < k
            target = found.query[near] + block.start, place[near]
            rows[target], distances[target] = found.rows[near], found.distances[near]

        self._each_block(queries, allowed, n_threads, keep)
        return rows, distances

    def _within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        parts: dict[int, _Ranked] = {}

        def keep(block: slice, found: _Ranked) -> None:
            parts[block.start] = found.up_to(radius)

        self._each_block(queries, allowed, n_threads, keep)
        ordered = [parts[start] for start in sorted(parts)]
        sizes = np.concatenate([np.diff(part.offsets) for part in ordered])
        return (
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([part.rows for part in ordered]),
            np.concatenate([part.distances for part in ordered]),
        )

    def _choose(self, codes: Codes) -> Tables:
        """The tables, with defaults that follow from the codes."""
        settings = self._settings()
        if settings["bits_per_table"] is None:
            longest = codes.n_bits // check_count(self._n_tables or 1, f"{self._title}: n_tables")
            width = min(longest, MOST_KEY_BITS, round(np.log2(max(2, len(codes)))))
            settings["bits_per_table"] = max(1, width)
        if settings["n_tables"] is None:
            width = check_count(settings["bits_per_table"], f"{self._title}: bits_per_table")
            settings["n_tables"] = max(1, codes.n_bits // width)
        return Tables.choose(self._title, codes.n_bits, **settings)

    def _each_block(
        self,
        queries: Words,
        allowed: Mask | None,
        n_threads: int | None,
        keep: Callable[[slice, _Ranked], None],
    ) -> None:
        """Pass what each block of queries finds to ``keep``, in any order."""
        parts = self._up_to_date(n_threads)
        keys = self.tables.all_keys(queries)
        sizes = [part.sizes(keys, n_threads) for part in parts]

        def work(block: slice) -> None:
            own = np.ascontiguousarray(keys[:, block])
            found, start = [], 0
            for part, size in zip(parts, sizes, strict=True):
                one = part.look_up(own, size[block])
                words = self._items.words[start : start + len(part)]
                found.append(_ordering(queries[block], words, one.offsets, one.rows, start))
                start += len(part)
            keep(block, _ranked(np.concatenate(found), block.stop - block.start, allowed))

        run_blocks(work, look_up_blocks(np.sum(sizes, axis=0)), n_threads)

    def _up_to_date(self, n_threads: int | None = None) -> list[Buckets]:
        """Buckets of all rows: new rows become a part, merged with older parts that are not larger.

        So parts are few, and a row is sorted again only a few times, however rows are added.
        """
        words, parts = self._items.words, list(self._parts)
        start = sum(map(len, parts))
        if start < len(words):
            if len(words) >> 32:
                raise InputError(f"{self._title}: holds fewer than 2^32 codes, got {len(words)}.")
            while parts and len(parts[-1]) <= len(words) - start:
                start -= len(parts.pop())
            parts.append(Buckets.build(words[start:], self.tables, n_threads))
            self._parts = parts
        return parts

    def _forget(self) -> None:
        self._parts = []

    def _settings(self) -> dict[str, Any]:
        known = self._chosen
        return {
            "n_tables": self._n_tables if known is None else known.n_tables,
            "bits_per_table": self._bits_per_table if known is None else known.bits_per_table,
            "segments": self._segments,
            "probe": self._probe,
            "random_state": self._random_state,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if self._chosen is None or len(self._items.words) == 0:
            return {}
        if len(self._up_to_date()) > 1:
            self._parts = [Buckets.build(self._items.words, self.tables)]
        (part,) = self._parts
        # The bits too: another version of NumPy may permute differently.
        return {
            "bits": self.tables.bits,
            "ids": part.ids,
            "directory": part.directory,
            "keys": part.keys,
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if self.n_bits:
            chosen = Tables.choose(self._title, self.n_bits, **self._settings())
            if "bits" in arrays:
                bits = arrays["bits"].reshape(chosen.bits.shape)
                chosen = Tables(bits.copy(), self.n_bits, chosen.probe)
            self._chosen = chosen
        if arrays:
            part = Buckets(self.tables, arrays["ids"], arrays["directory"], arrays["keys"])
            part.check(len(self._items.words))
            self._parts = [part]


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """The hits of a block of queries, by query, distance and row."""

    query: NDArray[np.intp]
    rows: NDArray[np.int64]
    distances: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def up_to(self, radius: int) -> _Ranked:
        """The hits within the radius."""
        near = self.distances <= radius
        query = self.query[near]
        offsets = np.searchsorted(query, np.arange(len(self.offsets)))
        return _Ranked(query, self.rows[near], self.distances[near], offsets)


def _ordering(
    queries: Words,
    words: Words,
    offsets: NDArray[np.int64],
    rows: NDArray[np.uint32],
    first: int,
) -> NDArray[np.uint64]:
    """A number for each row found that sorts by query, distance and row."""
    from bittern.kernels import hash_tables

    distances = np.empty(len(rows), np.uint64)
    hash_tables.measure_found(queries, words, offsets, rows, distances)
    query = np.repeat(np.arange(len(queries), dtype=np.uint64), np.diff(offsets))
    order = ((query << DISTANCE_BITS) | distances) << ROW_BITS
    return order | (rows.astype(np.uint64) + np.uint64(first))


def _ranked(order: NDArray[np.uint64], n_queries: int, allowed: Mask | None) -> _Ranked:
    """The hits that the numbers of :func:`_ordering` stand for, sorted, allowed rows only."""
    if allowed is not None:
        order = order[allowed[_low(order, ROW_BITS)]]
    order = np.sort(order)
    row = _low(order, ROW_BITS)
    order >>= ROW_BITS
    query = (order >> DISTANCE_BITS).astype(np.intp)
    distances = _low(order, DISTANCE_BITS).astype(np.int32)
    offsets = np.searchsorted(query, np.arange(n_queries + 1))
    return _Ranked(query, row, distances, offsets)


def _low(numbers: NDArray[np.uint64], n_bits: np.uint64) -> NDArray[np.int64]:
    return (numbers & np.uint64((1 << int(n_bits)) - 1)).astype(np.int64)
