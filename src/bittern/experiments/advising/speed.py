"""How fast codes are searched, on the machine at hand."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from bittern.codes import Codes
from bittern.index import FlatIndex, MultiIndex
from bittern.index.base import Index

__all__ = ["CANDIDATES", "ITEMS", "Speed", "search_milliseconds", "search_speed"]

ITEMS = 1_000_000  # codes that are searched
CANDIDATES = 100  # nearest that are looked for
QUERIES, REPEATS = 20, 3
FEWEST = 4096  # codes; fewer are always scanned


@dataclass(frozen=True, slots=True)
class Speed:
    """Milliseconds a query, of one thread, over the codes at hand: comparing all, and by tables."""

    n_items: int
    flat: float
    multi: float


def search_milliseconds(queries: Codes, items: Codes) -> float:
    """Milliseconds a query that comparing it with a million codes takes one thread.

    The million is the codes at hand again and again, each bit of them turned with probability 1/16:
    a scan that has found enough equals of a query has less to do, and copies would all be equals.
    """
    return _milliseconds(FlatIndex(_many(items)), queries)


def search_speed(queries: Codes, items: Codes) -> Speed | None:
    """Both kinds of exact index over the codes at hand, or None where they are too few to tell.

    Not over repeated codes: how soon tables find the nearest depends on how near they are.
    """
    if len(items) < FEWEST:
        return None
    flat, multi = (_milliseconds(kind(items), queries) for kind in (FlatIndex, MultiIndex))
    return Speed(len(items), flat, multi)


def _many(codes: Codes) -> Codes:
    """So many codes that are like the given ones."""
    rng = np.random.default_rng(0)
    words = np.resize(codes.words, (ITEMS, codes.words.shape[1]))
    turned = np.full(words.shape, ~np.uint64(0))
    for _ in range(4):
        turned &= rng.integers(0, 1 << 64, words.shape, np.uint64)
    used = codes.n_bits % 64
    if used:  # padding stays zero
        turned[:, -1] &= np.uint64((1 << used) - 1)
    return Codes(words ^ turned, codes.n_bits)


def _milliseconds(index: Index, queries: Codes) -> float:
    """The median of a few times, after one that compiles and lays out."""
    some = queries[:QUERIES]
    index.search(some, CANDIDATES, n_threads=1)
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        index.search(some, CANDIDATES, n_threads=1)
        times.append(perf_counter() - start)
    return 1000 * float(np.median(times)) / len(some)
