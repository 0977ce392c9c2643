"""Near-duplicates over shards: every two shards are compared, and what is near becomes groups."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_choice, check_count
from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.index.near_codes import LINKS, Link, NearCodes
from bittern.index.pairs import DistinctCodes, Found, Rows, join
from bittern.parallel import available_threads
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner

Words = NDArray[np.uint64]
Task = tuple[Shard, Shard, int, int | None]


def duplicates(
    shards: str | os.PathLike[str] | Shards,
    radius: int,
    *,
    link: Link = "complete",
    executor: Executor | None = None,
) -> list[Rows]:
    """Ids of each group of near codes, of two items or more, in order of the first item.

    They are exactly the groups of :func:`bittern.index.groups_within` for the codes in one piece,
    with the ids of the shards, or else positions in the whole database.  Each task compares two
    shards, or one with itself; only codes that have a near one come together.
    """
    found = near_groups(shards, radius, link=link, executor=executor)
    return [group.ids for group in found]


@dataclass(frozen=True, slots=True, eq=False)
class NearGroup:
    """Ids of a group of near codes, ascending, and how far each code is from that of the first."""

    ids: Rows
    distances: NDArray[np.int64]


def near_groups(
    shards: str | os.PathLike[str] | Shards,
    radius: int,
    *,
    link: Link = "complete",
    executor: Executor | None = None,
) -> list[NearGroup]:
    """The groups of :func:`duplicates`, with distances."""
    opened, run = Shards.open(shards), Runner(executor)
    if "codes" not in opened.parts or opened.n_bits is None:
        raise InputError(f"{opened.folder}: its shards have no codes to compare.")
    radius = min(check_count(radius, "scale.duplicates: radius", least=0), opened.n_bits)
    check_choice(link, "scale.duplicates: link", LINKS)
    tasks, work = {}, {}
    for a, b in combinations_with_replacement(opened, 2):
        name = a.name if a is b else f"{a.name} and {b.name}"
        tasks[name] = a, b, radius, run.n_threads
        work[name] = a.n * (a.n - 1) // 2 if a is b else a.n * b.n
    found = [near for _, near in run(_compare, tasks, "compare", work)]
    rows, near, codes = _together(found, opened.n_bits, radius)
    return [
        NearGroup(_ids(opened, rows[group]), _distances_from_first(codes.words[group]))
        for group in near.groups(codes, link)
    ]


@dataclass(frozen=True, slots=True)
class _Near:
    """Items with a near one, by position in the whole database, and the pairs of their codes."""

    rows: Rows
    words: Words  # of each row
    pairs: Found  # the first rows of two codes, and their distance


def _compare(task: Task) -> _Near:
    """What is near in two shards, or in one, where this runs."""
    a, b, radius, n_threads = task
    try:
        new = DistinctCodes.of(b.codes.words, b.start)
        old = new if a == b else DistinctCodes.of(a.codes.words, a.start)
    except BitternError as error:
        raise type(error)(f"shard {a.name} or {b.name}: {error}") from None
    threads, n_bits = available_threads(n_threads), b.codes.n_bits
    if a == b:
        joined = join(new.words[:0], new.words, radius, n_bits, threads, is_among=True)
        pairs = _all(joined)
        is_near = new.sizes > 1
        is_near[pairs[:, :2]] = True
        rows, words = _members(new, is_near)
        return _Near(rows, words, _by_first_row(pairs, new.rows[new.starts[:-1]]))
    pairs = _all(join(old.words, new.words, radius, n_bits, threads))
    is_near = np.zeros(len(old) + len(new), np.bool_)
    is_near[pairs[:, :2]] = True
    parts = [_members(old, is_near[: len(old)]), _members(new, is_near[len(old) :])]
    rows, words = (np.concatenate(part) for part in zip(*parts, strict=True))
    firsts = np.concatenate([one.rows[one.starts[:-1]] for one in (old, new)])
    return _Near(rows, words, _by_first_row(pairs, firsts))


def _all(joined: Iterable[Found]) -> Found:
    """All pairs of a join in one array."""
    return np.concatenate([np.empty((0, 3), np.int64), *(part.copy() for part in joined)])


def _members(codes: DistinctCodes, is_near: NDArray[np.bool_]) -> tuple[Rows, Words]:
    """The rows of some codes, and the code of each."""
    chosen = np.repeat(is_near, codes.sizes)
    return codes.rows[chosen], np.repeat(codes.words[is_near], codes.sizes[is_near], axis=0)


def _by_first_row(pairs: Found, firsts: Rows) -> Found:
    """Pairs of codes as pairs of the first rows that have them."""
    named = pairs.copy()
    named[:, :2] = firsts[pairs[:, :2]]
    return named


def _together(found: list[_Near], n_bits: int, radius: int) -> tuple[Rows, NearCodes, Codes]:
    """Rows that have a near one, ascending; their codes and the pairs of these; and by row."""
    rows, places = np.unique(np.concatenate([near.rows for near in found]), return_index=True)
    words = np.concatenate([near.words for near in found])[places]
    distinct = DistinctCodes.of(words)
    numbers = distinct.numbers()
    pairs = np.concatenate([near.pairs for near in found])
    pairs[:, :2] = np.sort(numbers[np.searchsorted(rows, pairs[:, :2])], axis=1)
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)  # a code may be in many shards
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], pairs[:, 2]))]
    return rows, NearCodes(distinct.words, n_bits, radius, pairs), Codes(words, n_bits)


def _ids(shards: Shards, rows: Rows) -> Rows:
    """The ids of rows, ascending."""
    starts = np.array([shard.start for shard in shards])
    owners = np.searchsorted(starts, rows, side="right") - 1
    parts = [
        shards.shards[owner].ids[rows[owners == owner] - starts[owner]]
        for owner in np.unique(owners).tolist()
    ]
    return np.concatenate(parts).astype(np.int64)


def _distances_from_first(words: Words) -> NDArray[np.int64]:
    return np.bitwise_count(words ^ words[0]).sum(axis=1, dtype=np.int64)
