"""FlatIndex: every query is compared with every code, by the fastest kernel for the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bittern.index.base import Index, Mask, Nearest, Within, Words
from bittern.parallel import available_threads, run_blocks

if TYPE_CHECKING:
    from bittern.index.scans import Scan

QUERIES = 48  # that scan the database together
ENTRIES = 1 << 22  # at most, in the lists of a block of queries
EVERYTHING: Mask = np.empty(0, np.bool_)  # the mask that allows all rows
# Sizes, rows, distances.
Part = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


class FlatIndex(Index):
    """Exhaustive search, in time linear in the number of codes.

    One pass counts the nearest so far by distance.  The distance at which k are held is a bound
    that falls during the scan, and one comparison with it rejects most codes.  The rest are sorted
    by counting.

    >>> import bittern as bt
    >>> index = FlatIndex(bt.Codes.from_bits([[0, 0], [1, 1], [0, 1]]), ids=[5, 6, 7])
    >>> index.within(bt.Codes.from_bits([[0, 0]]), radius=1).to_lists()
    [[(5, 0), (7, 1)]]
    """

    kind = "flat"
    is_exact = True

    _scan: Scan | None = None

    def _nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        return self._scanning().nearest(queries, k, allowed, n_threads)

    def _within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        return self._scanning().within(queries, radius, allowed, n_threads)

    def _forget(self) -> None:
        self._scan = None

    def _scanning(self) -> Scan:
        """A scan of the codes as they are now."""
        if self._scan is None:
            from bittern.index.scans import scan_for

            self._scan = scan_for(self.n_bits)
        self._scan.update(*self._items.parts, self.n_bits)
        return self._scan


def query_blocks(queries: slice, entries: int, n_threads: int | None) -> list[slice]:
    """Blocks of queries, each query with a list of ``entries``; at least one block per thread."""
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
