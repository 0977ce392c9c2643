"""Scans of all rows of an index, by the fastest kernels for the processor and the code length."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bittern.index.base import Mask, Nearest, Within, Words
from bittern.index.flat_index import EVERYTHING, Part, join_blocks, query_blocks
from bittern.kernels import scan, scan_avx2
from bittern.kernels.count.portable import BLOCK
from bittern.kernels.multi_index import TAKE
from bittern.kernels.registers import TILE, has_avx2
from bittern.kernels.scan import NearestSoFar
from bittern.parallel import run_blocks


class Scan(ABC):
    """A copy of the rows in blocks, laid out for one kind of kernel."""

    unit: ClassVar[int]  # rows of a block
    cost_of_word: ClassVar[float]  # in the units of ``bittern.kernels.multi_index``

    def __init__(self) -> None:
        self._words: Words = np.empty((0, 0), np.uint64)
        self._blocks: NDArray[Any] = np.empty(0)

    def update(self, words: Words, n_bits: int) -> None:
        """Lay out the rows that were added since the last time."""
        first = len(self._words) // self.unit  # the last block may be part-filled
        if len(words) > len(self._words):
            new = self._laid_out(words[first * self.unit :], n_bits)
            if first + len(new) > len(self._blocks):
                size = max(first + len(new), 2 * first)
                blocks = np.empty((size, *new.shape[1:]), new.dtype)
                if first:
                    blocks[:first] = self._blocks[:first]
                self._blocks = blocks
            self._blocks[first : first + len(new)] = new
        self._words, self._n_bits = words, n_bits

    def cost(self, k: int) -> float:
        """Cost of finding the k nearest of one query, or those within a radius if k is 0.

        In the units of ``bittern.kernels.multi_index``.  Of rows in random order, the i-th is among
        the k nearest so far with probability k / i, so about ``k (1 + log(n / k))`` are taken.
        """
        once, n = self.cost_of_word * self._words.size, len(self._words)
        return 2 * once if k == 0 else once + TAKE * k * (1 + math.log(max(n / k, 1)))

    def nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        """Rows and distances of the k nearest allowed rows; at least k rows are allowed."""
        rows = np.empty((len(queries), k), np.int64)
        distances = np.empty((len(queries), k), np.int32)
        mask = EVERYTHING if allowed is None else allowed

        def work(block: slice) -> None:
            nearest = scan.nothing_yet(block.stop - block.start, k, self._n_bits, len(self._words))
            self._find_nearest(queries[block], mask, k, nearest)
            scan.put_in_order(nearest, k, rows[block], distances[block])

        run_blocks(work, query_blocks(slice(0, len(queries)), k, n_threads), n_threads)
        return rows, distances

    def within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        """Offsets, rows and distances of the allowed rows within the radius."""
        mask = EVERYTHING if allowed is None else allowed

        def work(block: slice) -> Part:
            """Count first, then write every row to its place."""
            places = np.zeros((block.stop - block.start, radius + 1), np.int64)
            rows, distances = np.empty(0, np.int64), np.empty(0, np.int32)
            self._find_within(queries[block], radius, mask, (places, rows, distances))
            sizes = places.sum(axis=1)
            if sizes.any():
                rows, distances = np.empty(sizes.sum(), np.int64), np.empty(sizes.sum(), np.int32)
                starts = (np.cumsum(places) - places.ravel()).reshape(places.shape)
                self._find_within(queries[block], radius, mask, (starts, rows, distances))
            return sizes, rows, distances

        blocks = query_blocks(slice(0, len(queries)), radius + 1, n_threads)
        return join_blocks(work, blocks, n_threads)

    @abstractmethod
    def _laid_out(self, words: Words, n_bits: int) -> NDArray[Any]:
        """Rows in blocks, the last of them padded."""

    @abstractmethod
    def _find_nearest(self, queries: Words, allowed: Mask, k: int, nearest: NearestSoFar) -> None:
        """Offer all rows to ``nearest``."""

    @abstractmethod
    def _find_within(self, queries: Words, radius: int, allowed: Mask, out: Part) -> None:
        """Count the rows by distance if ``rows`` is empty; otherwise write them to ``places``."""

    @property
    def _used(self) -> NDArray[Any]:
        return self._blocks[: -(-len(self._words) // self.unit)]


class Avx2Scan(Scan):
    """By look-ups in AVX2 registers, for codes of up to 256 bits."""

    unit = TILE
    cost_of_word = 0.25

    def _laid_out(self, words: Words, n_bits: int) -> NDArray[Any]:
        return scan_avx2.tiles_of(_packed(words, n_bits))

    def _find_nearest(self, queries: Words, allowed: Mask, k: int, nearest: NearestSoFar) -> None:
        lookups = scan_avx2.lookups_of(_packed(queries, self._n_bits))
        scan_avx2.find_nearest(queries, lookups, self._words, self._used, allowed, k, nearest)

    def _find_within(self, queries: Words, radius: int, allowed: Mask, out: Part) -> None:
        lookups = scan_avx2.lookups_of(_packed(queries, self._n_bits))
        scan_avx2.find_within(queries, lookups, self._words, self._used, radius, allowed, *out)


class PortableScan(Scan):
    """By counting the bits of words, for codes of any length."""

    unit = BLOCK
    cost_of_word = 0.7

    def _laid_out(self, words: Words, n_bits: int) -> NDArray[Any]:
        return scan.blocks_of(words)

    def _find_nearest(self, queries: Words, allowed: Mask, k: int, nearest: NearestSoFar) -> None:
        scan.find_nearest(queries, len(self._words), self._used, allowed, k, nearest)

    def _find_within(self, queries: Words, radius: int, allowed: Mask, out: Part) -> None:
        scan.find_within(queries, len(self._words), self._used, radius, allowed, *out)


def scan_for(n_bits: int) -> Scan:
    """An empty scan of the kind that is fastest for codes of this length."""
    is_short = n_bits <= 64 * scan_avx2.MOST_WORDS
    return Avx2Scan() if is_short and has_avx2() else PortableScan()


def _packed(words: Words, n_bits: int) -> NDArray[np.uint8]:
    """The bytes of the codes, bit j of a code in byte ``j // 8``."""
    return words.astype("<u8", copy=False).view(np.uint8)[:, : -(-n_bits // 8)]
