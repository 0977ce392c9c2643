"""MultiIndex: exact search in sub-linear time, by tables of several segments of the codes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.index.base import Index, Mask, Nearest, Within, Words
from bittern.index.flat_index import EVERYTHING, Part, join_blocks, query_blocks
from bittern.kernels import small
from bittern.kernels.segment_tables import SegmentTables
from bittern.parallel import run_blocks

if TYPE_CHECKING:  # loaded when needed: small work needs no kernels
    from bittern.index.scans import Scan
    from bittern.kernels.multi_index import Searched

FEWEST = 1 << 16  # codes; with fewer, a scan for the nearest is faster
FEWEST_WITHIN = 1 << 12  # the same for a radius
OVERHEAD = 10_000.0  # of calling the kernel of the tables, beyond that of a scan
QUERY = 2_500.0  # of answering a query within a radius by tables, whatever it finds
LACKING, REST = 1 << 12, 64  # codes, or one in REST, that may be missing from the tables
SAMPLE = 24  # queries that show whether to scan for the others
TRIAL = 0.04  # of the scan's cost for all queries, that may be spent on those
WORTH = 0.75  # of the scan's cost; above it, tables are not trusted to be cheaper
MOST_SEGMENTS, MOST_WIDTH = 16, 22
BUCKET_BITS = 4  # a bucket has about 2^4 codes: reading on is cheaper than looking up
SORTED_WORDS = 2  # codes up to this long are copied in the order of every segment
MOST_RADIUS, MOST_KEYS = 8, 1 << 17  # that are looked up in one segment
MOST_CODES = (1 << 32) - 1


class MultiIndex(Index):
    """Multi-index hashing: the k nearest, or all within a radius, without comparing everything.

    The bits are cut into segments, and each segment has a table from its keys to the codes that
    have them.  A code near the query agrees or nearly agrees with it in at least one segment.  So
    the search looks up keys at growing distances from the query's, the cheapest first, until the
    nearest are certain.  If that would cost more than comparing everything (far queries, evenly
    spread codes, large k), it compares everything.

    ``n_segments`` defaults to what suits the number of codes when the tables are built.  Codes
    added later are compared one by one; when there are many, the tables are rebuilt.

    References: [Norouzi-Punjani-Fleet-2012]; separate radii for the segments are from
    [Qin-Wang-Xiao-Wang-Lin-Ishikawa-2018].

    >>> import numpy as np, bittern as bt
    >>> codes = bt.Codes.from_bits(np.random.default_rng(0).random((5000, 64)) < 0.5)
    >>> MultiIndex(codes).within(codes[7], radius=5).to_lists()
    [[(7, 0)]]
    """

    kind = "multi"
    is_exact = True

    def __init__(
        self,
        codes: Codes | None = None,
        *,
        ids: ArrayLike | None = None,
        n_segments: int | None = None,
    ) -> None:
        if n_segments is not None:
            n_segments = check_count(n_segments, "MultiIndex: n_segments", most=MOST_SEGMENTS)
        self.n_segments = n_segments
        self._forget()
        super().__init__(codes, ids=ids)

    def _nearest(
        self, queries: Words, k: int, allowed: Mask | None, n_threads: int | None
    ) -> Nearest:
        if self._scan_is_best(len(queries), k, allowed):
            return self._scanning().nearest(queries, k, allowed, n_threads)
        from bittern.kernels import multi_index as kernels

        trial = self._trial(len(queries), k, allowed, n_threads)
        rows = np.empty((len(queries), k), np.int64)
        distances = np.empty((len(queries), k), np.int32)

        def work(block: slice) -> None:
            out = rows[block], distances[block], trial.is_done[block], trial.costs[block]
            kernels.find_nearest(queries[block], trial.searched, k, trial.scan_cost, *out)

        if len(queries) == 1:
            work(slice(0, 1))
        else:
            for part in trial.parts():
                run_blocks(work, query_blocks(part, k, n_threads), n_threads)
        if not trial.is_done.all():
            rest = ~trial.is_done
            rows[rest], distances[rest] = self._scanning().nearest(
                queries[rest], k, allowed, n_threads
            )
        return rows, distances

    def _within(
        self, queries: Words, radius: int, allowed: Mask | None, n_threads: int | None
    ) -> Within:
        if not self._tables_may_pay(len(queries), radius, allowed):
            return self._scanning().within(queries, radius, allowed, n_threads)
        from bittern.kernels import multi_index as kernels

        trial = self._trial(len(queries), 0, allowed, n_threads)

        def work(block: slice) -> Part:
            sizes = np.zeros(block.stop - block.start, np.int64)
            out = sizes, trial.is_done[block], trial.costs[block]
            keys = kernels.find_within(
                queries[block], trial.searched, radius, trial.scan_cost, *out
            )
            return sizes, keys & kernels.ROW, (keys >> kernels.ROW_BITS).astype(np.int32)

        if len(queries) == 1:
            _, found, apart = work(slice(0, 1))
            if trial.is_done[0]:
                return np.array((0, len(found))), found, apart
            return self._scanning().within(queries, radius, allowed, n_threads)
        answers: list[tuple[Any, Within]] = [
            (part, join_blocks(work, query_blocks(part, 1, n_threads), n_threads))
            for part in trial.parts()
        ]
        if not trial.is_done.all():
            rest = np.flatnonzero(~trial.is_done)
            scanned = self._scanning().within(queries[rest], radius, allowed, n_threads)
            answers.append((rest, scanned))
        return _merged(len(queries), answers)

    def _forget(self) -> None:
        self._scan: Scan | None = None
        self._tables: SegmentTables | None = None

    def _settings(self) -> dict[str, Any]:
        return {"n_segments": self.n_segments}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if len(self) < FEWEST:
            return {}
        return _arrays_of(self._up_to_date(None, rest=0))

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if arrays:
            self._tables = _restored(arrays, self._items.words, self.n_bits)

    def _scan_is_best(self, n_queries: int, k: int, allowed: Mask | None) -> bool:
        """Whether too few codes are allowed, or a scan too short, for the tables to pay off."""
        n_allowed = len(self) if allowed is None else int(np.count_nonzero(allowed))
        words = self._items.parts[0]
        if n_allowed < max(FEWEST, 16 * k) or small.is_scanned_sooner(n_queries, words):
            return True
        return n_queries * self._scan_to_ask().cost(words, k) < 5 * OVERHEAD

    def _tables_may_pay(self, n_queries: int, radius: int, allowed: Mask | None) -> bool:
        """Whether tables would find the codes within a radius sooner than a scan."""
        words = self._items.parts[0]
        cost_of_word = (self._scan or self._scan_to_ask()).cost_of_word
        if n_queries * cost_of_word * words.size < OVERHEAD:
            return False
        given = self.n_bits, len(words), self.n_segments
        if not _tables_pay(*given, radius, n_queries, cost_of_word):
            return False
        if allowed is not None and 2 * allowed.sum() < len(words):
            return False
        return not small.is_scanned_sooner(n_queries, words)

    def _trial(self, n_queries: int, k: int, allowed: Mask | None, n_threads: int | None) -> _Trial:
        from bittern.kernels.multi_index import Searched

        tables = self._up_to_date(n_threads)
        mask = EVERYTHING if allowed is None else allowed
        words, late = self._items.parts
        searched = Searched(words, late, tables.rows.shape[1], tables, mask)
        return _Trial(searched, n_queries, self._scan_to_ask().cost(words, k))

    def _up_to_date(self, n_threads: int | None, rest: int = REST) -> SegmentTables:
        """The tables, which lack at most a few codes, or none if ``rest`` is 0."""
        n = self._items.n_rows
        n_built = 0 if self._tables is None else self._tables.rows.shape[1]
        lacking = max(LACKING, n_built // rest) if rest else 0
        if self._tables is None or n - n_built > lacking:
            self._tables = build(self._items.words, self.n_bits, self.n_segments, n_threads)
        return self._tables

    def _scanning(self) -> Scan:
        """A scan of the codes as they are now."""
        scan = self._scan or self._scan_to_ask()
        scan.update(*self._items.parts, self.n_bits)
        return scan

    def _scan_to_ask(self) -> Scan:
        """A scan that knows what it costs, perhaps of fewer codes."""
        if self._scan is None:
            from bittern.index.scans import scan_for

            self._scan = scan_for(self.n_bits)
        return self._scan


class _Trial:
    """Queries that are answered from the tables as long as that is cheaper."""

    def __init__(self, searched: Searched, n_queries: int, scan_cost: float) -> None:
        self.searched = searched
        self.scan_cost = scan_cost
        self.is_done = np.zeros(n_queries, np.bool_)
        self.costs = np.zeros(n_queries)

    def parts(self) -> Iterator[slice]:
        """A few queries, then the others, unless a scan would have been cheaper for the first."""
        n = len(self.is_done)
        if n <= 2 * SAMPLE:
            yield slice(0, n)
            return
        first = SAMPLE
        yield slice(0, first)
        cost = self.costs[:first].mean() + (1 - self.is_done[:first].mean()) * self.scan_cost
        if cost < WORTH * self.scan_cost:
            yield slice(first, n)


def _merged(n_queries: int, answers: list[tuple[Any, Within]]) -> Within:
    """Answers of parts of the queries; a query has hits in at most one of them."""
    sizes = np.zeros(n_queries, np.int64)
    for part, (offsets, _, _) in answers:
        sizes[part] += np.diff(offsets)
    begins = np.concatenate([[0], np.cumsum(sizes)])
    rows, distances = np.empty(begins[-1], np.int64), np.empty(begins[-1], np.int32)
    for part, (offsets, some_rows, some_distances) in answers:
        shift = np.repeat(begins[:-1][part] - offsets[:-1], np.diff(offsets))
        places = np.arange(len(some_rows)) + shift
        rows[places], distances[places] = some_rows, some_distances
    return begins, rows, distances


def build(
    words: Words, n_bits: int, n_segments: int | None = None, n_threads: int | None = None
) -> SegmentTables:
    """The tables of all rows."""
    from bittern.kernels import multi_index as kernels

    n, n_words = words.shape
    if n > MOST_CODES:
        raise InputError(f"MultiIndex: holds at most {MOST_CODES} codes, got {n}; use FlatIndex.")
    lows, widths = _segments_for(n_bits, n, n_segments)
    bases = _bases(widths)
    offsets = np.zeros(bases[-1], np.uint32)
    rows = np.empty((len(lows), n), np.uint32)
    is_sorted = n_words <= SORTED_WORDS
    codes = np.empty((len(lows), n, n_words), np.uint64) if is_sorted else words[None]

    def work(j: int) -> None:
        kernels.fill_buckets(words, lows[j], widths[j], offsets[bases[j] : bases[j + 1]], rows[j])
        if is_sorted:
            kernels.copy_codes(words, rows[j], codes[j])

    run_blocks(work, range(len(lows)), n_threads)
    return SegmentTables(lows, widths, bases, offsets, rows, codes, *_masks(widths))


def _segments_for(
    n_bits: int, n: int, n_segments: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First bits and widths of segments for n codes.

    Keys of about ``log2(n) - BUCKET_BITS`` bits leave few codes in a bucket and few buckets empty.
    Segments need not cover all bits: codes that differ little differ little in some segment.
    """
    suited = min(max(math.log2(n) - BUCKET_BITS, 4.0), MOST_WIDTH)
    m = n_segments or min(max(round(n_bits / suited), 1), MOST_SEGMENTS)
    m = min(m, n_bits)
    edges = np.arange(m + 1) * n_bits // m
    most = MOST_WIDTH if m < MOST_SEGMENTS else max(round(suited), 1)
    return edges[:-1], np.minimum(np.diff(edges), most)


@lru_cache(maxsize=256)
def _tables_pay(
    n_bits: int,
    n: int,
    n_segments: int | None,
    radius: int,
    n_queries: int,
    cost_of_word: float,
) -> bool:
    """Whether n evenly spread codes within a radius are found sooner by tables than by a scan.

    If there are enough queries to try a few first at little cost, twice that time is good enough.
    """
    scan = cost_of_word * n * -(-n_bits // 64)
    if n < FEWEST_WITHIN:
        return False
    by_tables = _cost_within(n_bits, n, n_segments, radius)
    if n_queries * by_tables + OVERHEAD < n_queries * scan:
        return True
    trial = SAMPLE * by_tables + OVERHEAD
    return by_tables < 2 * scan and trial < TRIAL * n_queries * scan


def _cost_within(n_bits: int, n: int, n_segments: int | None, radius: int) -> float:
    """Cost of finding all of n evenly spread codes within a radius by tables.

    In the units of ``bittern.kernels.multi_index``: ``radius + 1`` shells are looked up, those of
    one key in every segment first.
    """
    from bittern.kernels import multi_index as kernels

    widths = _segments_for(n_bits, n, n_segments)[1]
    each = kernels.CANDIDATE if n_bits <= 64 else kernels.LONG_CANDIDATE
    each = each if n_bits <= 64 * SORTED_WORDS else kernels.FAR_CANDIDATE
    costs = [
        math.comb(int(width), r) * (kernels.LOOKUP + each * n / 2.0**width)
        for r in range(radius // len(widths) + 1)
        for width in widths
    ]
    return QUERY + sum(sorted(costs)[: radius + 1])


def _arrays_of(tables: SegmentTables) -> dict[str, NDArray[Any]]:
    """The arrays of the tables that are saved; the others follow from these."""
    names = ["lows", "widths", "offsets", "rows"]
    is_sorted = len(tables.codes) == len(tables.rows)
    return {name: getattr(tables, name) for name in [*names, *(["codes"] if is_sorted else [])]}


def _restored(arrays: dict[str, NDArray[Any]], words: Words, n_bits: int) -> SegmentTables:
    """The tables from the arrays of :func:`_arrays_of`; a ValueError if they do not fit."""
    lows, widths, offsets, rows = (arrays[name] for name in ("lows", "widths", "offsets", "rows"))
    kinds = lows.dtype == widths.dtype == np.int64 and offsets.dtype == rows.dtype == np.uint32
    if not kinds or lows.ndim != 1 or not 0 < len(lows) == len(widths) <= MOST_SEGMENTS:
        raise ValueError("its segments have the wrong type or number")
    if (lows < 0).any() or (widths < 1).any() or (widths > MOST_WIDTH).any():
        raise ValueError("its segments are out of bounds")
    if (lows > n_bits - widths).any() or rows.shape != (len(lows), len(words)):
        raise ValueError("its tables are not those of its codes")
    bases, n = _bases(widths), len(words)
    if offsets.shape != (bases[-1],):
        raise ValueError("its tables are not those of its segments")
    for first, last in pairwise(bases):
        part = offsets[first:last]
        if part[0] != 0 or part[-1] != n or (part[1:] < part[:-1]).any():
            raise ValueError("its tables do not ascend")
    if rows.max(initial=0) >= n:
        raise ValueError("its tables name rows that do not exist")
    codes = arrays.get("codes", words[None])
    if codes.dtype != np.uint64 or codes.shape not in (
        (1, *words.shape),
        (len(lows), *words.shape),
    ):
        raise ValueError("its tables do not hold its codes")
    return SegmentTables(lows, widths, bases, offsets, rows, codes, *_masks(widths))


def _bases(widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the offsets of each segment begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum((1 << widths) + 1)])


def _masks(widths: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Masks of all widths in turn; and for each segment, where those of each distance begin."""
    kinds = np.unique(widths)
    masks = [_masks_by_size(int(width)) for width in kinds]
    firsts = np.concatenate([[0], np.cumsum([len(values) for values, _ in masks])])
    n_shells = max(len(starts) for _, starts in masks)
    shells = np.empty((len(widths), n_shells), np.int64)
    for j, width in enumerate(widths):
        kind = int(np.searchsorted(kinds, width))
        starts = masks[kind][1]
        shells[j, : len(starts)] = firsts[kind] + starts
        shells[j, len(starts) :] = firsts[kind] + starts[-1]
    return np.concatenate([values for values, _ in masks]), shells


@lru_cache(maxsize=8)
def _masks_by_size(width: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Numbers of ``width`` bits, fewest set bits first, and where each number of bits begins."""
    sizes = np.array([math.comb(width, r) for r in range(min(width, MOST_RADIUS) + 1)])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    starts = starts[: np.searchsorted(starts, MOST_KEYS, side="right")]
    values = np.arange(1 << width, dtype=np.uint32)
    order = np.argsort(np.bitwise_count(values), kind="stable")
    return values[order[: starts[-1]]], starts
