"""The exhaustive search: every query against every row, by the fastest kernel there is here."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bittern.index.base import Mask, Nearest, Within, Words
from bittern.kernels import runs, tiles, vectors
from bittern.kernels.found import Found, nothing_found, put_in_order
from bittern.kernels.long import RUN
from bittern.kernels.shells import TAKE
from bittern.parallel import available_threads, run_blocks

__all__ = ["EVERYTHING", "Part", "Scan", "join_blocks", "query_blocks", "scan_for"]

QUERIES = 48  # that go over the database together
ENTRIES = 1 << 22  # of the lists of a block of queries, at most
EVERYTHING: Mask = np.empty(0, np.bool_)  # the mask of those who allow all
Part = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]  # sizes, rows, distances


class Scan(ABC):
    """A second layout of the rows, in blocks, for kernels of one kind."""

    unit: ClassVar[int]  # rows of a block
    cost_of_word: ClassVar[float]  # in the units of ``bittern.kernels.shells``

    def __init__(self) -> None:
        self._words: Words = np.empty((0, 0), np.uint64)
        self._blocks: NDArray[Any] = np.empty(0)

    def update(self, words: Words, n_bits: int) -> None:
        """Lay out the rows that have come since the last time."""
        first = len(self._words) // self.unit  # the last block may be part-filled
        if len(words) > len(self._words):
            new = self._laid(words[first * self.unit :], n_bits)
            if first + len(new) > len(self._blocks):
                size = max(first + len(new), 2 * first)
                blocks = np.empty((size, *new.shape[1:]), new.dtype)
                if first:
                    blocks[:first] = self._blocks[:first]
                self._blocks = blocks
            self._blocks[first : first + len(new)] = new
        self._words, self._n_bits = words, n_bits

    def cost(self, k: int) -> float:
        """What the k nearest of one query cost, or those in a radius if k is 0.

        In the units of ``bittern.kernels.shells``.  Of rows in any order, the i-th is among the k
        nearest so far with probability k / i: some ``k (1 + log(n / k))`` are taken on the way.
        """
        once, n = self.cost_of_word * self._words.size, len(self._words)
        return 2 * once if k == 0 else once + TAKE * k * (1 + math.log(max(n / k, 1)))

    def nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        """Rows and distances of the k nearest allowed rows, of which there are as many."""
        rows = np.empty((len(queries), k), np.int64)
        distances = np.empty((len(queries), k), np.int32)
        mask = EVERYTHING if allowed is None else allowed

        def work(block: slice) -> None:
            found = nothing_found(block.stop - block.start, k, self._n_bits, len(self._words))
            self._find_nearest(queries[block], mask, k, found)
            put_in_order(found, k, rows[block], distances[block])

        run_blocks(work, query_blocks(slice(0, len(queries)), k, n_threads), n_threads)
        return rows, distances

    def within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        """Offsets, rows and distances of the allowed rows within the radius."""
        mask = EVERYTHING if allowed is None else allowed

        def work(block: slice) -> Part:
            """Count first, then put everything in its place."""
            places = np.zeros((block.stop - block.start, radius + 1), np.int64)
            rows, distances = np.empty(0, np.int64), np.empty(0, np.int32)
            self._find_within(queries[block], radius, mask, places, rows, distances)
            sizes = places.sum(axis=1)
            if sizes.any():
                rows, distances = np.empty(sizes.sum(), np.int64), np.empty(sizes.sum(), np.int32)
                starts = (np.cumsum(places) - places.ravel()).reshape(places.shape)
                self._find_within(queries[block], radius, mask, starts, rows, distances)
            return sizes, rows, distances

        blocks = query_blocks(slice(0, len(queries)), radius + 1, n_threads)
        return join_blocks(work, blocks, n_threads)

    @abstractmethod
    def _laid(self, words: Words, n_bits: int) -> NDArray[Any]:
        """Rows as blocks, the last of them filled up."""

    @abstractmethod
    def _find_nearest(self, queries: Words, allowed: Mask, k: int, found: Found) -> None:
        """Offer all rows to ``found``."""

    @abstractmethod
    def _find_within(
        self,
        queries: Words,
        radius: int,
        allowed: Mask,
        places: NDArray[np.int64],
        rows: NDArray[np.int64],
        distances: NDArray[np.int32],
    ) -> None:
        """Count the rows by distance if ``rows`` is empty, else put them where ``places`` says."""

    @property
    def _used(self) -> NDArray[Any]:
        return self._blocks[: -(-len(self._words) // self.unit)]


class TileScan(Scan):
    """By look-ups in AVX2 registers, for codes of up to 256 bits."""

    unit = vectors.TILE
    cost_of_word = 0.25

    def _laid(self, words: Words, n_bits: int) -> NDArray[Any]:
        return tiles.tiles_of(_octets(words, n_bits))

    def _find_nearest(self, queries: Words, allowed: Mask, k: int, found: Found) -> None:
        tables = tiles.tables_of(_octets(queries, self._n_bits))
        tiles.find_nearest(queries, tables, self._words, self._used, allowed, k, found)

    def _find_within(
        self,
        queries: Words,
        radius: int,
        allowed: Mask,
        places: NDArray[np.int64],
        rows: NDArray[np.int64],
        distances: NDArray[np.int32],
    ) -> None:
        tables = tiles.tables_of(_octets(queries, self._n_bits))
        tiles.find_within(
            queries, tables, self._words, self._used, radius, allowed, places, rows, distances
        )


class RunScan(Scan):
    """By counting the bits of words, for codes of any length."""

    unit = RUN
    cost_of_word = 0.7

    def _laid(self, words: Words, n_bits: int) -> NDArray[Any]:
        return runs.runs_of(words)

    def _find_nearest(self, queries: Words, allowed: Mask, k: int, found: Found) -> None:
        runs.find_nearest(queries, len(self._words), self._used, allowed, k, found)

    def _find_within(
        self,
        queries: Words,
        radius: int,
        allowed: Mask,
        places: NDArray[np.int64],
        rows: NDArray[np.int64],
        distances: NDArray[np.int32],
    ) -> None:
        n = len(self._words)
        runs.find_within(queries, n, self._used, radius, allowed, places, rows, distances)


def scan_for(n_bits: int) -> Scan:
    """An empty scan of the kind that is fastest for codes of this length."""
    is_short = n_bits <= 64 * tiles.MOST_WORDS
    return TileScan() if is_short and vectors.available() else RunScan()


def query_blocks(queries: slice, entries: int, n_threads: int | None) -> list[slice]:
    """Blocks of queries that each keep lists of so many entries; no thread goes without."""
    start, stop = queries.start, queries.stop
    share = -(-(stop - start) // available_threads(n_threads))
    size = max(1, min(QUERIES, share, ENTRIES // entries))
    return [slice(q, min(stop, q + size)) for q in range(start, stop, size)]


def join_blocks(
    work: Callable[[slice], Part], blocks: list[slice], n_threads: int | None
) -> Within:
    """Offsets, rows and distances of all blocks in turn."""
    parts: dict[int, Part] = {}

    def keep(block: slice) -> None:
        parts[block.start] = work(block)

    run_blocks(keep, blocks, n_threads)
    sizes, rows, distances = zip(*(parts[block.start] for block in blocks), strict=True)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return offsets, np.concatenate(rows), np.concatenate(distances)


def _octets(words: Words, n_bits: int) -> NDArray[np.uint8]:
    return words.astype("<u8", copy=False).view(np.uint8)[:, : -(-n_bits // 8)]
