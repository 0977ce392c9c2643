"""All pairs of codes within a radius: exact, and far cheaper than comparing everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count, check_type
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.index.join_keys import JoinKeys, Words, choose_keys
from bittern.kernels import small
from bittern.parallel import available_threads, run_blocks
from bittern.progress import Bar

ROOM = 1 << 16  # pairs that are given at once, at least
MOST_CODES = (1 << 32) - 1
MOST_BUCKET_BITS = 24
PARTS = 4  # of the work for each thread, if everything is compared

Rows = NDArray[np.int64]
Found = NDArray[np.int64]  # (n, 3): first row, second row, distance


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of rows and their distances: ``first[i]`` and ``second[i]`` are ``distances[i]`` apart.

    >>> import bittern as bt
    >>> codes = bt.Codes.from_bits([[0, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
    >>> bt.index.pairs_within(codes, radius=1).to_list()
    [(0, 2, 1), (0, 3, 0), (2, 3, 1)]
    """

    first: Rows
    second: Rows
    distances: NDArray[np.int32]

    def __post_init__(self) -> None:
        if not self.first.shape == self.second.shape == self.distances.shape == (len(self),):
            raise InputError("Pairs: first, second and distances must be flat and of one length.")

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, chosen: Any) -> Pairs:
        """Some of the pairs, by a slice, a mask or positions."""
        return Pairs(self.first[chosen], self.second[chosen], self.distances[chosen])

    def to_list(self) -> list[tuple[int, int, int]]:
        """The pairs as tuples of first row, second row and distance."""
        columns = (self.first.tolist(), self.second.tolist(), self.distances.tolist())
        return list(zip(*columns, strict=True))

    @classmethod
    def concatenate(cls, parts: Iterable[Pairs]) -> Pairs:
        """All pairs of several parts, in order of first and second row."""
        listed = [cls._of(np.empty((0, 3), np.int64)), *parts]
        first = np.concatenate([part.first for part in listed])
        second = np.concatenate([part.second for part in listed])
        distances = np.concatenate([part.distances for part in listed])
        order = np.lexsort((second, first))
        return cls(first[order], second[order], distances[order])

    @classmethod
    def _of(cls, found: Found) -> Pairs:
        return cls(found[:, 0].copy(), found[:, 1].copy(), found[:, 2].astype(np.int32))

    def __repr__(self) -> str:
        return f"<{len(self):,} pair{'' if len(self) == 1 else 's'}>"


def pairs_within(
    codes: Codes,
    radius: int,
    *,
    against: Codes | None = None,
    since: int = 0,
    n_threads: int | None = None,
) -> Pairs:
    """All pairs of codes at most ``radius`` apart, each once, in order of first and second row.

    With ``against``, pairs of a code (first) and one of the others (second).  With ``since``, only
    the codes from that row on are compared, with each other and with the ones before: what is new
    after codes were added.  :func:`iter_pairs` gives the same pairs in parts, in bounded memory.
    """
    options: dict[str, Any] = {"against": against, "since": since, "n_threads": n_threads}
    return Pairs.concatenate(iter_pairs(codes, radius, **options))


def iter_pairs(
    codes: Codes,
    radius: int,
    *,
    against: Codes | None = None,
    since: int = 0,
    n_threads: int | None = None,
) -> Iterator[Pairs]:
    """The pairs of :func:`pairs_within` in parts, in no particular order.

    Memory is bounded by the codes and a few copies of them for each thread.
    """
    check_type(codes, Codes, "pairs: codes")
    radius = min(check_count(radius, "pairs: radius", least=0), codes.n_bits)
    since = check_count(since, "pairs: since", least=0, most=len(codes))
    n_threads = available_threads(n_threads)
    if against is not None:
        check_type(against, Codes, "pairs: against")
        if since or against.n_bits != codes.n_bits:
            raise InputError(
                "pairs: codes and against must have one length, without since, got "
                f"{codes.n_bits} and {against.n_bits} bits, since={since}."
            )
        old, new = DistinctCodes.of(codes.words), DistinctCodes.of(against.words)
        return _expanded(old, new, join(old.words, new.words, radius, codes.n_bits, n_threads))
    old, new = DistinctCodes.of(codes.words[:since]), DistinctCodes.of(codes.words[since:], since)
    joined = join(old.words, new.words, radius, codes.n_bits, n_threads, is_among=True)
    return _expanded(old, new, joined, is_among=True)


@dataclass(frozen=True, slots=True, eq=False)
class DistinctCodes:
    """Different codes in ascending order, and the rows that have each: many may have the same."""

    words: Words  # (n, n_words)
    rows: Rows  # of code 0, of code 1, …; ascending for each
    starts: Rows  # (n + 1,) where the rows of each code begin

    @classmethod
    def of(cls, words: Words, first_row: int = 0) -> DistinctCodes:
        """The codes of some rows, the first of which is ``first_row``."""
        order = np.argsort(words[:, 0], kind="stable") if words.shape[1] == 1 else None
        if order is None:
            order = np.lexsort(words.T[::-1])
        in_order = words[order]
        is_new = np.ones(len(words), np.bool_)
        is_new[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
        starts = np.append(np.flatnonzero(is_new), len(words))
        return cls(np.ascontiguousarray(in_order[is_new]), order + first_row, starts)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def sizes(self) -> Rows:
        """Number of rows that have each code."""
        return np.diff(self.starts)

    def numbers(self) -> Rows:
        """The number of each row's code, by row; for rows from 0."""
        found = np.empty(len(self.rows), np.int64)
        found[self.rows] = np.repeat(np.arange(len(self)), self.sizes)
        return found


def _expanded(
    old: DistinctCodes, new: DistinctCodes, joined: Iterable[Found], *, is_among: bool = False
) -> Iterator[Pairs]:
    """Pairs of rows from pairs of different codes; and rows of the same code, if ``is_among``."""
    rows = np.concatenate([old.rows, new.rows])
    starts = np.concatenate([old.starts[:-1], len(old.rows) + new.starts])
    sizes = np.diff(starts)
    if is_among:
        for code in np.flatnonzero(new.sizes > 1):
            same = new.rows[new.starts[code] : new.starts[code + 1]]
            for i in range(1, len(same)):
                yield Pairs(same[:i], np.repeat(same[i], i), np.zeros(i, np.int32))
    for found in joined:
        a, b = found[:, 0], found[:, 1]
        n_pairs = sizes[a] * sizes[b]
        for part in _parts(n_pairs):
            n = n_pairs[part]
            place = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
            of_b = np.repeat(sizes[b[part]], n)
            first = rows[np.repeat(starts[a[part]], n) + place // of_b]
            second = rows[np.repeat(starts[b[part]], n) + place % of_b]
            distances = np.repeat(found[part, 2], n).astype(np.int32)
            if is_among:
                first, second = np.minimum(first, second), np.maximum(first, second)
            yield Pairs(first, second, distances)


def _parts(sizes: Rows) -> Iterator[slice]:
    """Slices whose sizes add up to about ``ROOM``."""
    edges = np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum(), 16 * ROOM), side="right")
    edges = np.unique(np.append(edges, len(sizes)))
    start = 0
    for stop in edges.tolist():
        if stop > start:
            yield slice(start, stop)
            start = stop


def join(
    old: Words,
    new: Words,
    radius: int,
    n_bits: int,
    n_threads: int,
    *,
    is_among: bool = False,
) -> Iterator[Found]:
    """Pairs of an old code and a new one, or of two new ones if ``is_among``, as they are found.

    The new codes are numbered after the old ones.
    """
    words, since = np.concatenate([old, new]), len(old)
    if len(words) > MOST_CODES:
        raise InputError(f"pairs: at most {MOST_CODES} different codes, got {len(words)}.")
    if len(new) == 0 or len(words) < 2 or (since == 0 and not is_among):
        return
    if small.is_small_scan(new, words, small.JOINS):
        yield from _join_by_numpy(words, radius, since, is_among)
        return
    keys = choose_keys(words, n_bits, radius, since, is_among)
    joined = _Joined(words, keys, radius, since, is_among)
    yield from _in_turn(joined, joined.parts(n_threads), n_threads)


def _join_by_numpy(words: Words, radius: int, since: int, is_among: bool) -> Iterator[Found]:
    """Compare everything without compiled code."""
    for row, distances in enumerate(small.distance_rows(words[since:], words), since):
        first = np.flatnonzero(distances[: row if is_among else since] <= radius)
        yield np.stack([first, np.full_like(first, row), distances[first]], axis=1, dtype=np.int64)


class _Task:
    """The codes of one key, or a part of them, which are compared step by step."""

    def __init__(self, joined: _Joined, key: int, first: int, last: int) -> None:
        self._key, self._joined, self._last = key, joined, last
        self._cursor = np.array([0, first], np.int64)
        self._buckets: tuple[Any, ...] | None = None
        self.found = np.empty((0, 3), np.int64)

    def step(self) -> None:
        """Fill ``found`` with the next pairs."""
        from bittern.kernels import join as kernels

        joined = self._joined
        if self._buckets is None:
            self._buckets = joined.buckets(self._key)
            n = max(ROOM, kernels.largest_bucket(self._buckets[2]))
            self._room = np.empty((n, 3), np.int64)
        n_found = kernels.join_buckets(
            *self._buckets,
            joined.keys.masks,
            self._key,
            joined.radius,
            joined.since,
            joined.is_among,
            self._cursor,
            self._last,
            self._room,
        )
        self.found = self._room[:n_found]

    @property
    def is_done(self) -> bool:
        """Whether all pairs were found."""
        assert self._buckets is not None
        return bool(self._cursor[0] >= len(self._buckets[2]) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """What all tasks share."""

    words: Words
    keys: JoinKeys
    radius: int
    since: int
    is_among: bool

    def buckets(self, key: int) -> tuple[Any, ...]:
        """Codes, rows and offsets of the buckets of one key."""
        from bittern.kernels.join import fill_buckets

        n, width = len(self.words), 0
        if self.keys.n_bits == 0:
            offsets = np.array([0, n], np.uint32)
            return self.words, np.arange(n, dtype=np.uint32), offsets
        width = min(self.keys.n_bits, max(n.bit_length(), 1), MOST_BUCKET_BITS)
        offsets = np.empty((1 << width) + 1, np.uint32)
        rows, codes = np.empty(n, np.uint32), np.empty_like(self.words)
        fill_buckets(self.words, self.keys.masks[key], width, offsets, rows, codes)
        return codes, rows, offsets

    def parts(self, n_threads: int) -> list[tuple[int, int, int]]:
        """A key, a first and a last row for each task.

        A task has all codes of one key; if everything is compared, tasks have about the same work.
        """
        n, since = len(self.words), self.since
        if self.keys.n_bits:
            return [(key, 0, n) for key in range(len(self.keys.masks))]
        shares = np.linspace(0, 1, PARTS * n_threads + 1)
        if self.is_among:  # row j is compared with j others
            edges = np.sqrt(since**2 + shares * (n**2 - since**2))
        else:
            edges = since + shares * (n - since)
        places = np.unique(np.rint(edges).astype(np.int64)).tolist()
        return [(0, *part) for part in pairwise(places)]


def _in_turn(joined: _Joined, parts: list[tuple[int, int, int]], n_threads: int) -> Iterator[Found]:
    """The pairs of all parts; as many tasks as threads exist at a time, each with its buckets."""
    waiting, active, total = parts[::-1], list[_Task](), len(parts)
    with Bar("comparing") as bar:
        while waiting or active:
            while waiting and len(active) < n_threads:
                active.append(_Task(joined, *waiting.pop()))
            run_blocks(_Task.step, active, n_threads)
            for task in active:
                if len(task.found):
                    yield task.found
            active = [task for task in active if not task.is_done]
            bar(total - len(waiting) - len(active), total)
