"""FlatIndex: every query is compared with every code."""

from __future__ import annotations

from bittern.index.base import Index, Mask, Nearest, Within, Words
from bittern.index.scan import Scan, scan_for

__all__ = ["FlatIndex"]


class FlatIndex(Index):
    """The exhaustive search, in time linear in the number of codes and never more.

    One pass counts the nearest so far by distance: the distance at which k are held is a bound that
    falls as the scan goes on, and most codes are refused by one comparison with it.  What remains
    is put in order by counting.

    >>> import bittern as bt
    >>> index = FlatIndex(bt.Codes.from_bits([[0, 0], [1, 1], [0, 1]]), ids=[5, 6, 7])
    >>> index.within(bt.Codes.from_bits([[0, 0]]), radius=1).to_lists()
    [[(5, 0), (7, 1)]]
    """

    kind = "flat"

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
        """The layout of the codes as they are now."""
        if self._scan is None:
            self._scan = scan_for(self.n_bits)
        self._scan.update(self._rows.words, self.n_bits)
        return self._scan
