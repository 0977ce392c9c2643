"""Small work without compiled code: what some kernels compute, by NumPy alone.

A process needs 0.8 s of processor time to load Numba and the kernels that an evaluation calls.  If
it is the first on this machine, it also compiles them, in 4 s for an evaluation, 2 s for a scan and
10 s for the search in tables of segments.  NumPy is ten times slower per pair of codes, but it is
there at once.  So the first work of a process is done here, until it adds up to a budget, which is
larger as long as the kernel was never compiled; from then on the kernels do everything.  Results
are the same to the last bit, because counts are whole numbers, and the other sums have the same
terms in the same order.

The callers guarantee what they guarantee to the kernels.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUDGET = 0.3  # seconds of NumPy's time; loading the kernels takes longer
FIRST_BUDGET = 2.0  # the same for work of kernels that were not compiled yet
WORD = (
    2.5e-9  # seconds to compare a word of a query with a word of an item, and to count the result
)
QUERY = 2e-5  # seconds for the calls of a query
TIE = 1e-7  # seconds for a tie
COMPILING = 5.0  # seconds of scans; compiling the search in tables of segments takes longer
SCANNED_WORD = 4e-10  # seconds to compare two words in a compiled scan
MOST_ITEMS = 1 << 20  # of a database: bounds the memory to 30 MB
MOST_WORDS = 512  # of a code: distances fit in 16 bits
CHUNK = 1 << 15  # items at a time, whose differences stay in the cache
SAMPLED = 16  # one item in so many gives a first bound on the nearest

# Names of the kernels whose work is done here, as Numba begins the names of their files.
COUNTING, TIES, SCANS = "count/*.*count_*", "ties.*", "scan*.find_*"
SEGMENTS, JOINS = "multi_index.find_*", "join.join_*"

Words = NDArray[np.uint64]  # (n_codes, n_words)
Integers = NDArray[np.int64]
Distances = NDArray[np.uint8] | NDArray[np.uint16]  # (n_items,)

_spent = 0.0  # seconds of NumPy's time in this process
_scanned = 0.0  # seconds of scans in this process that tables of segments would have saved


def use_kernels() -> None:
    """Do even small work by kernels from now on, and compile those that are best for it."""
    global _spent, _scanned
    _spent = _scanned = math.inf


def spare_kernels() -> None:
    """Do small work by NumPy, however much of it, until :func:`use_kernels` is called."""
    global _spent
    _spent = -math.inf


@cache
def is_compiled(kernels: str) -> bool:
    """Whether kernels of that name were compiled on this machine, as far as Numba's places show."""
    package, _, name = kernels.rpartition("/")
    folder = Path(__file__).parent / package
    given = os.environ.get("NUMBA_CACHE_DIR")
    if not given and os.access(folder, os.W_OK):
        found = folder.glob(f"__pycache__/{name}-*.nbi")
    else:
        place = Path(given) if given else _user_cache()
        found = place.glob(f"{folder.name}_*/{name}-*.nbi")
    return any(True for _ in found)


def is_small(seconds: float, kernels: str) -> bool:
    """Whether work that NumPy does in so many seconds is within the budget of this process.

    The time is then spent.  After the first work that is not small, the kernels are loaded, and
    nothing is small any more except the work of kernels that were never compiled.
    """
    global _spent
    if _spent >= FIRST_BUDGET:
        return False
    budget = BUDGET if is_compiled(kernels) else FIRST_BUDGET
    is_within = _spent + seconds < budget
    _spent = _spent + seconds if is_within else max(_spent, budget)
    return is_within


def is_small_scan(queries: Words, database: Words, kernels: str) -> bool:
    """Whether comparing all queries with the whole database is small work."""
    n_items, n_words = database.shape
    seconds = len(queries) * (n_items * n_words * WORD + QUERY)
    return n_items <= MOST_ITEMS and n_words <= MOST_WORDS and is_small(seconds, kernels)


def is_scanned_sooner(n_queries: int, database: Words) -> bool:
    """Whether a compiled scan answers before the search in tables of segments is compiled.

    The scans of a process add up: beyond COMPILING seconds, waiting for the compiler pays off.
    """
    global _scanned
    if _scanned >= COMPILING or is_compiled(SEGMENTS):
        return False
    _scanned += n_queries * database.size * SCANNED_WORD
    return _scanned < COMPILING


def distance_rows(queries: Words, database: Words) -> Iterator[Distances]:
    """Hamming distances of each query in turn to all items, in the same array every time."""
    planes = np.ascontiguousarray(database.T)
    n_words, n_items = planes.shape
    row: Any = np.empty(n_items, np.uint8 if 64 * n_words < 256 else np.uint16)
    differing = np.empty(min(n_items, CHUNK), np.uint64)
    for query in queries:
        for start in range(0, n_items, CHUNK):
            part = row[start : start + CHUNK]
            bits = differing[: len(part)]
            np.bitwise_xor(query[0], planes[0, start : start + CHUNK], out=bits)
            np.bitwise_count(bits, out=part)
            for w in range(1, n_words):
                np.bitwise_xor(query[w], planes[w, start : start + CHUNK], out=bits)
                part += np.bitwise_count(bits)
        yield row


def count_levels(row: Distances, items: Integers, levels: NDArray[Any], counts: Any) -> None:
    """Fill ``counts[v, d]`` with the items at distance d with level v.

    ``levels[i]`` is the level of ``items[i]``; all others have level 0.
    """
    n_distances = counts.shape[1]
    cells = np.bincount(levels * n_distances + row[items], minlength=counts.size)
    counts[1:] = cells.reshape(counts.shape)[1:]
    counts[0] = np.bincount(row, minlength=n_distances) - counts[1:].sum(axis=0)


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
    for q, row in enumerate(_allowed_rows(queries, database, allowed)):
        some = row[::SAMPLED] if k <= len(row) // SAMPLED else row
        bound = np.searchsorted(np.cumsum(np.bincount(some)), k)  # k items are at most so far
        rows[q], found[q] = (side[:k] for side in _up_to(row, int(bound)))
    return rows, found


def find_within(
    queries: Words, database: Words, allowed: NDArray[np.bool_] | None, radius: int
) -> tuple[Integers, Integers, NDArray[np.int32]]:
    """Offsets, rows and distances of the items within the radius, by distance, then row."""
    near = [_up_to(row, radius) for row in _allowed_rows(queries, database, allowed)]
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows, _ in near])]).astype(np.int64)
    rows, found = (np.concatenate(side) for side in zip(*near, strict=True))
    return offsets, rows, found


def _allowed_rows(
    queries: Words, database: Words, allowed: NDArray[np.bool_] | None
) -> Iterator[Distances]:
    """Rows of distances, with a distance that no code has for the items that are not allowed."""
    others = np.empty(0, np.intp) if allowed is None else np.flatnonzero(~allowed)
    for row in distance_rows(queries, database):
        row[others] = np.iinfo(row.dtype).max
        yield row


def _up_to(row: Distances, bound: int) -> tuple[Integers, NDArray[np.int32]]:
    """Positions and distances of the items at most ``bound`` away, nearest first."""
    near = np.flatnonzero(row <= bound)
    near = near[np.argsort(row[near], kind="stable")]
    return near.astype(np.int64), row[near].astype(np.int32)


def _harmonic_differences(low: Integers, high: Integers) -> NDArray[np.float64]:
    """What :func:`bittern.kernels.ties.harmonic_difference` returns, for many at once."""
    total = np.zeros(len(low))
    is_long = high - low > 16
    some = np.flatnonzero(~is_long | (low < 16))  # that have terms to add one by one
    first, end, terms = low[some], np.where(is_long, 16, high)[some], np.zeros(len(some))
    for step in range(1, 17):
        t = first + step
        terms += np.where(t <= end, 1.0 / t, 0.0)
    total[some] = terms
    start, stop = np.maximum(low[is_long], 16), high[is_long]
    a, b = start + 0.5, stop + 0.5
    logs = np.array([math.log1p(x) for x in ((stop - start) / a).tolist()])
    total[is_long] = total[is_long] + logs + _correction(b) - _correction(a)
    return total


def _correction(x: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    s = 1.0 / (x * x)
    return s * (1 / 24 - s * (7 / 960 - s * (31 / 8064 - s * (127 / 30720))))


def _user_cache() -> Path:
    """Where Numba keeps compiled code if it cannot write beside the package."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~")).expanduser() / "numba" / "Cache"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/numba").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "numba"
