"""Small work without compiled code: what some kernels compute, by NumPy alone.

A process needs 0.8 s of processor time to load Numba and the kernels that an evaluation calls, and
several seconds to compile them if it is the first on this machine.  NumPy is twenty times slower
per pair of codes, but it is there at once.  So the first work of a process is done here, until it
adds up to a budget; from then on the kernels do everything.  Results are the same to the last bit,
because counts are whole numbers, and the other sums have the same terms in the same order.

The callers guarantee what they guarantee to the kernels.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUDGET = 0.3  # seconds of NumPy's time; loading the kernels takes longer
FIRST_BUDGET = 1.0  # the same if no kernel was compiled yet
WORD = 4e-9  # seconds to compare a word of a query with a word of an item, and to count the result
TIE = 1e-7  # seconds for a tie
MOST_ITEMS = 1 << 20  # of a database: bounds the memory to 30 MB
BLOCK = 1 << 20  # bytes of distances at a time

Words = NDArray[np.uint64]  # (n_codes, n_words)
Integers = NDArray[np.int64]

_left: float | None = None  # None before the first work


def use_kernels() -> None:
    """Do even small work by kernels from now on."""
    global _left
    _left = -math.inf


def is_compiled() -> bool:
    """Whether kernels were compiled on this machine, as far as the usual places show."""
    here = Path(__file__).parent
    given = os.environ.get("NUMBA_CACHE_DIR")
    found = Path(given).glob(f"{here.name}_*/*.nbi") if given else here.glob("__pycache__/*.nbi")
    return any(found)


def is_small(seconds: float) -> bool:
    """Whether work that NumPy does in so many seconds is within the budget of this process.

    The time is then spent.  After the first work that is not small, the kernels are loaded, and
    nothing is small any more.
    """
    global _left
    if _left is None:
        _left = BUDGET if is_compiled() else FIRST_BUDGET
    _left -= seconds
    if _left < 0:
        use_kernels()
    return _left >= 0


def is_small_scan(queries: Words, database: Words) -> bool:
    """Whether comparing all queries with the whole database is small work."""
    n_items, n_words = database.shape
    return n_items <= MOST_ITEMS and is_small(len(queries) * n_items * n_words * WORD)


def scan_blocks(n_queries: int, n_items: int) -> list[slice]:
    """Slices of queries whose distances fit in the nearest cache."""
    step = max(1, BLOCK // (8 * max(n_items, 1)))
    return [slice(start, min(n_queries, start + step)) for start in range(0, n_queries, step)]


def distances(queries: Words, database: Words) -> NDArray[np.uint16]:
    """Hamming distances ``(n_queries, n_items)``."""
    out = np.bitwise_count(queries[:, :1] ^ database[:, 0]).astype(np.uint16)
    for w in range(1, queries.shape[1]):
        out += np.bitwise_count(queries[:, w, None] ^ database[:, w])
    return out


def count_levels(
    queries: Words, database: Words, levels: NDArray[Any], excluded: Integers, counts: Any
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d with level v, without ``excluded[q]``.

    ``levels[q, i]`` is the level of item i; ``excluded[q]`` is -1 if all items count.
    """
    n_distances = counts.shape[2]
    cells = levels * n_distances
    cells += distances(queries, database)
    for row, own, out in zip(cells, excluded, counts, strict=True):
        found = np.bincount(row, minlength=out.size)
        if own >= 0:
            found[row[own]] -= 1
        out += found.reshape(out.shape).astype(out.dtype)


def shared_tags(query_masks: Words, planes: Words, graded: bool) -> NDArray[np.uint16]:
    """What :func:`bittern.kernels.count.portable.shared_tags` fills in."""
    shared = np.zeros((len(query_masks), planes.shape[1]), np.uint16)
    for own, plane in zip(query_masks.T, planes, strict=True):
        shared += np.bitwise_count(own[:, None] & plane)
    return shared if graded else np.minimum(shared, 1)


def sum_precisions(total: Integers, relevant: Integers, cutoffs: Integers) -> NDArray[np.float64]:
    """What :func:`bittern.kernels.ties.sum_precisions` fills in."""
    before, found = (np.cumsum(side, axis=1) - side for side in (total, relevant))
    hit = np.nonzero((relevant > 0) & (before < cutoffs[:, None]))
    n, r, b = total[hit], relevant[hit], before[hit]
    ranks = np.minimum(n, cutoffs[hit[0]] - b)
    h = _harmonic_differences(b, b + ranks)
    slope = np.where(n > 1, (r - 1) / np.maximum(n - 1, 1), 0.0)
    terms = r / n * ((found[hit] + 1) * h + slope * (ranks - (b + 1) * h))
    return np.bincount(hit[0], terms, minlength=len(total)).astype(np.float64)


def count_found(total: Integers, relevant: Integers, cutoffs: Integers) -> NDArray[np.float64]:
    """What :func:`bittern.kernels.ties.count_found` fills in."""
    after = np.cumsum(total, axis=1)
    whole = after <= cutoffs[:, None]
    found = (relevant * whole).sum(axis=1).astype(np.float64)
    before = after - total
    query, cut = np.nonzero(~whole & (before < cutoffs[:, None]))  # at most one for each query
    share = (cutoffs[query] - before[query, cut]) / total[query, cut]
    found[query] += relevant[query, cut] * share
    return found


def find_nearest(
    queries: Words, database: Words, allowed: NDArray[np.bool_] | None, k: int
) -> tuple[Integers, NDArray[np.int32]]:
    """Rows and distances ``(n_queries, k)`` of the k nearest, by distance, then row."""
    rows = np.empty((len(queries), k), np.int64)
    found = np.empty((len(queries), k), np.int32)
    for some in scan_blocks(len(queries), len(database)):
        for q, row in enumerate(distances(queries[some], database), start=some.start):
            sizes = np.bincount(row if allowed is None else row[allowed])
            bound = np.searchsorted(np.cumsum(sizes), k)
            rows[q], found[q] = (side[:k] for side in _up_to(row, int(bound), allowed))
    return rows, found


def find_within(
    queries: Words, database: Words, allowed: NDArray[np.bool_] | None, radius: int
) -> tuple[Integers, Integers, NDArray[np.int32]]:
    """Offsets, rows and distances of the items within the radius, by distance, then row."""
    near = [
        _up_to(row, radius, allowed)
        for some in scan_blocks(len(queries), len(database))
        for row in distances(queries[some], database)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows, _ in near])]).astype(np.int64)
    rows, found = (np.concatenate(side) for side in zip(*near, strict=True))
    return offsets, rows, found


def _up_to(
    row: NDArray[np.uint16], bound: int, allowed: NDArray[np.bool_] | None
) -> tuple[Integers, NDArray[np.int32]]:
    """Positions and distances of the items at most ``bound`` away, nearest first."""
    near = np.flatnonzero(row <= bound if allowed is None else (row <= bound) & allowed)
    near = near[np.argsort(row[near], kind="stable")]
    return near.astype(np.int64), row[near].astype(np.int32)


def _harmonic_differences(low: Integers, high: Integers) -> NDArray[np.float64]:
    """What :func:`bittern.kernels.ties.harmonic_difference` returns, for many at once."""
    total = np.zeros(len(low))
    is_long = high - low > 16
    end = np.where(is_long, 16, high)
    for step in range(1, 17):
        t = low + step
        total += np.where(t <= end, 1.0 / t, 0.0)
    start, stop = np.maximum(low[is_long], 16), high[is_long]
    a, b = start + 0.5, stop + 0.5
    logs = np.array([math.log1p(x) for x in ((stop - start) / a).tolist()])
    total[is_long] = total[is_long] + logs + _correction(b) - _correction(a)
    return total


def _correction(x: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    s = 1.0 / (x * x)
    return s * (1 / 24 - s * (7 / 960 - s * (31 / 8064 - s * (127 / 30720))))
