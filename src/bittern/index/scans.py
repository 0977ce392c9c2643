"""Scans of all rows of an index, by the fastest kernels for the processor and the code length."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.index.base import Mask, Nearest, Within, Words
from bittern.index.flat_index import EVERYTHING, Part, join_blocks, query_blocks
from bittern.kernels import scan, scan_avx2
from bittern.kernels.multi_index import TAKE
from bittern.kernels.registers import counts_bits_of_registers, has_avx2
from bittern.kernels.scan import BLOCK
from bittern.parallel import run_blocks

SPARE = 64  # one in so many rows may be in no block, where all blocks would have to be copied


class Scan(ABC):
    """The rows in blocks, laid out for one kind of kernel; rows in no block are compared singly."""

    cost_of_word: float  # in the units of ``bittern.kernels.multi_index``

    def __init__(self) -> None:
        self._words: Words = np.empty((0, 0), np.uint64)
        self._late: Words = self._words
        self._room: NDArray[Any] = np.empty(0)
        self._blocks: NDArray[Any] = self._room

    def update(self, words: Words, late: Words, n_bits: int) -> None:
        """Lay out the rows that were added since the last time.

        ``late`` are the rows after ``words``, which are compared singly.
        """
        if len(words) != len(self._words):
            self._lay_out_new(words, n_bits)
        self._words, self._late = words, late

    def cost(self, words: Words, k: int) -> float:
        """Cost of finding the k nearest of one query, or those within a radius if k is 0.

        In the units of ``bittern.kernels.multi_index``.  Of rows in random order, the i-th is among
        the k nearest so far with probability k / i, so about ``k (1 + log(n / k))`` are taken.
        """
        n, once = len(words), self.cost_of_word * words.size
        return once if k == 0 else once + TAKE * k * (1 + math.log(max(n / k, 1)))

    def nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        """Rows and distances of the k nearest allowed rows; at least k rows are allowed."""
        rows = np.empty((len(queries), k), np.int64)
        distances = np.empty((len(queries), k), np.int32)
        mask = EVERYTHING if allowed is None else allowed

        def work(block: slice) -> None:
            self._find_nearest(queries[block], mask, k, rows[block], distances[block])

        if len(queries) == 1:
            self._find_nearest(queries, mask, k, rows, distances)
        else:
            run_blocks(work, query_blocks(slice(0, len(queries)), k, n_threads), n_threads)
        return rows, distances

    def within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        """Offsets, rows and distances of the allowed rows within the radius."""
        mask = EVERYTHING if allowed is None else allowed
        if len(queries) == 1:
            return self._find_within(queries, mask, radius)

        def work(block: slice) -> Part:
            offsets, rows, distances = self._find_within(queries[block], mask, radius)
            return np.diff(offsets), rows, distances

        blocks = query_blocks(slice(0, len(queries)), radius + 1, n_threads)
        return join_blocks(work, blocks, n_threads)

    def _lay_out_new(self, words: Words, n_bits: int) -> None:
        """Lay out the whole blocks of new rows, unless few new ones would move all others."""
        first, n_blocks = len(self._blocks), len(words) // BLOCK
        if len(self._room) < n_blocks <= first + first // SPARE:
            return
        new = self._laid_out(words[first * BLOCK :], n_bits)
        if first == 0:
            self._room = new
        else:
            if n_blocks > len(self._room):
                self._room = np.empty((max(n_blocks, 2 * first), *new.shape[1:]), new.dtype)
                self._room[:first] = self._blocks
            self._room[first:n_blocks] = new
        self._blocks = self._room[:n_blocks]

    @abstractmethod
    def _laid_out(self, words: Words, n_bits: int) -> NDArray[Any]:
        """Rows in whole blocks."""

    @abstractmethod
    def _find_nearest(
        self, queries: Words, allowed: Mask, k: int, rows: NDArray[Any], distances: NDArray[Any]
    ) -> None:
        """Fill rows and distances."""

    @abstractmethod
    def _find_within(self, queries: Words, allowed: Mask, radius: int) -> Within:
        """Offsets, rows and distances."""


class PortableScan(Scan):
    """By counting the bits of words, for codes of any length; fast where registers can do it."""

    def __init__(self) -> None:
        super().__init__()
        self.cost_of_word = 0.18 if counts_bits_of_registers() else 0.7

    def _lay_out_new(self, words: Words, n_bits: int) -> None:
        if words.shape[1] == 1:
            self._blocks = scan.blocks_of(words)  # which copies nothing
        else:
            super()._lay_out_new(words, n_bits)

    def _laid_out(self, words: Words, n_bits: int) -> NDArray[Any]:
        return scan.blocks_of(words)

    def _find_nearest(
        self, queries: Words, allowed: Mask, k: int, rows: NDArray[Any], distances: NDArray[Any]
    ) -> None:
        searched = self._words, self._late, self._blocks, allowed
        scan.find_nearest(queries, *searched, k, rows, distances)

    def _find_within(self, queries: Words, allowed: Mask, radius: int) -> Within:
        searched = self._words, self._late, self._blocks, allowed
        return scan.find_within(queries, *searched, radius)


class Avx2Scan(Scan):
    """By look-ups in AVX2 registers, for several queries with codes of up to 256 bits."""

    cost_of_word = 0.25

    def _laid_out(self, words: Words, n_bits: int) -> NDArray[Any]:
        packed = words.astype("<u8", copy=False).view(np.uint8)
        return scan_avx2.tiles_of(packed[:, : -(-n_bits // 8)])

    def _find_nearest(
        self, queries: Words, allowed: Mask, k: int, rows: NDArray[Any], distances: NDArray[Any]
    ) -> None:
        searched = self._words, self._late, self._blocks, allowed
        scan_avx2.find_nearest(queries, *searched, k, rows, distances)

    def _find_within(self, queries: Words, allowed: Mask, radius: int) -> Within:
        searched = self._words, self._late, self._blocks, allowed
        return scan_avx2.find_within(queries, *searched, radius)


def scan_for(n_bits: int) -> Scan:
    """An empty scan of the kind that is fastest for the processor and codes of this length."""
    is_short = n_bits <= 64 * scan_avx2.MOST_WORDS
    look_up = is_short and has_avx2() and not counts_bits_of_registers()
    return Avx2Scan() if look_up else PortableScan()
