"""MultiIndex: exact search in sub-linear time, by several tables of segments of the codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import check_count
from bittern.codes import Codes
from bittern.index.base import Index, Mask, Nearest, Within, Words
from bittern.index.scan import EVERYTHING, Part, Scan, join_blocks, query_blocks, scan_for
from bittern.index.segments import MOST_SEGMENTS, arrays_of, build, restored
from bittern.kernels import shells
from bittern.kernels.shells import Buckets
from bittern.parallel import run_blocks

__all__ = ["MultiIndex"]

FEWEST = 1 << 16  # codes; fewer are scanned in less time than tables take to give up
LACKING, REST = 1 << 12, 64  # codes, or one in so many, that may be in no table yet
SAMPLE = 24  # queries that tell whether the rest of many are for the scan
WORTH = 0.75  # of the scan's cost, above which tables are not trusted to be cheaper


class MultiIndex(Index):
    """Multi-index hashing: the k nearest, or all within a radius, without comparing everything.

    The bits are cut into segments, and each segment has a table from its keys to the codes that
    have them.  A code near the query agrees with it in at least one segment, or nearly does; so
    keys near the query's are looked up, farther and farther out, the cheapest first, until the
    nearest are certain.  Where that would cost more than comparing everything (far queries, evenly
    spread codes, large k), everything is compared.

    ``n_segments`` defaults to what suits the number of codes when the tables are built.  Codes
    added since are compared one by one until they are many.

    References: [Norouzi-Punjani-Fleet-2012]; a radius of its own for each segment is from
    [Qin-Wang-Xiao-Wang-Lin-Ishikawa-2018].

    >>> import numpy as np, bittern as bt
    >>> codes = bt.Codes.from_bits(np.random.default_rng(0).random((5000, 64)) < 0.5)
    >>> MultiIndex(codes).within(codes[7], radius=5).to_lists()
    [[(7, 0)]]
    """

    kind = "multi"

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
        if self._scan_is_best(k, allowed):
            return self._scanning().nearest(queries, k, allowed, n_threads)
        trial = self._trial(len(queries), k, allowed, n_threads)
        rows = np.empty((len(queries), k), np.int64)
        distances = np.empty((len(queries), k), np.int32)

        def work(block: slice) -> None:
            out = rows[block], distances[block], trial.is_done[block], trial.costs[block]
            shells.find_nearest(queries[block], *trial.given, k, trial.scan_cost, *out)

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
        if self._scan_is_best(1, allowed):
            return self._scanning().within(queries, radius, allowed, n_threads)
        trial = self._trial(len(queries), 0, allowed, n_threads)

        def work(block: slice) -> Part:
            sizes = np.zeros(block.stop - block.start, np.int64)
            out = sizes, trial.is_done[block], trial.costs[block]
            keys = shells.find_within(queries[block], *trial.given, radius, trial.scan_cost, *out)
            return sizes, keys & shells.ROW, (keys >> shells.ROW_BITS).astype(np.int32)

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
        self._buckets: Buckets | None = None

    def _settings(self) -> dict[str, Any]:
        return {"n_segments": self.n_segments}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if len(self) < FEWEST:
            return {}
        return arrays_of(self._tables(None, rest=0))

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if arrays:
            self._buckets = restored(arrays, self._rows.words, self.n_bits)

    def _scan_is_best(self, k: int, allowed: Mask | None) -> bool:
        """Whether there are too few codes, or too few of them asked for, to try anything else."""
        n_allowed = len(self) if allowed is None else int(np.count_nonzero(allowed))
        return n_allowed < max(FEWEST, 16 * k)

    def _trial(self, n_queries: int, k: int, allowed: Mask | None, n_threads: int | None) -> _Trial:
        buckets = self._tables(n_threads)
        mask = EVERYTHING if allowed is None else allowed
        given = self._rows.words, buckets.rows.shape[1], buckets, mask
        return _Trial(given, n_queries, self._scanning().cost(k))

    def _tables(self, n_threads: int | None, rest: int = REST) -> Buckets:
        """The tables, which lack at most a few codes, or none if ``rest`` is 0."""
        n = len(self._rows.words)
        n_built = 0 if self._buckets is None else self._buckets.rows.shape[1]
        lacking = max(LACKING, n_built // rest) if rest else 0
        if self._buckets is None or n - n_built > lacking:
            self._buckets = build(self._rows.words, self.n_bits, self.n_segments, n_threads)
        return self._buckets

    def _scanning(self) -> Scan:
        if self._scan is None:
            self._scan = scan_for(self.n_bits)
        self._scan.update(self._rows.words, self.n_bits)
        return self._scan


class _Trial:
    """Queries that are answered from the tables as long as that is worth it."""

    def __init__(self, given: tuple[Any, ...], n_queries: int, scan_cost: float) -> None:
        self.given = given  # words, rows in the tables, the tables, and which rows are allowed
        self.scan_cost = scan_cost
        self.is_done = np.zeros(n_queries, np.bool_)
        self.costs = np.zeros(n_queries)

    def parts(self) -> Iterator[slice]:
        """A few queries, and then the others, unless the first would have been cheaper to scan."""
        n = len(self.is_done)
        first = SAMPLE if n > 2 * SAMPLE else n
        yield slice(0, first)
        cost = self.costs[:first].mean() + (1 - self.is_done[:first].mean()) * self.scan_cost
        if first < n and cost < WORTH * self.scan_cost:
            yield slice(first, n)


def _merged(n_queries: int, answers: list[tuple[Any, Within]]) -> Within:
    """Answers of parts of the queries, each with an empty one for those it leaves to others."""
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
