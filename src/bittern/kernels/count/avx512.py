"""Counting kernel for codes of one word, on processors that count the bits of a whole register.

Three queries share a *joint table*, as :mod:`bittern.kernels.count.slots` explains, but distances
need no look-ups, and the words are read as they are.  A register holds eight words, so the
distances of 32 items are four registers with one distance in each word; they are packed into one
register with 32 distances of 16 bits::

    items i, i + 8, i + 16, i + 24     a register of distances each, by 0, 16, 32 and 48 bits
    slots of 32 items                  their sum: which item is where does not matter

    slot  ┌ 15…10 ┬ 9…5 ┬ 4…0 ┐        d = distance of the first query
          │   d   │  e  │  f  │        e = half of the second's XOR d
          └───────┴─────┴─────┘        f = half of the third's

Counters have 16 bits, so that the 32 counters of one d and e are one line of the cache and those in
use fit into the nearest one.  Before one of them could pass 65,535, the table is summed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bittern.kernels.bits import declare, popcount
from bittern.kernels.count.portable import move_range, scan_one
from bittern.kernels.registers import INT32, INT64, at, broadcast, load, loop, past, pointers, store

WORDS = 8  # of a register
TOGETHER = 4  # registers whose distances are packed into one
BLOCK = WORDS * TOGETHER  # items
LAG = 4  # blocks between finding slots and counting them, so that counting never waits
ROWS, HALVES = 64, 32  # of the joint table: distances of the first query, halves of the others'
MOST = (1 << 16) - 1  # that a counter holds
LEAST_ROOM = 1 << 12  # items; with less room the table is summed
INT16 = ir.IntType(16)
REGISTER = ir.VectorType(INT64, WORDS)
DISTANCES = ir.VectorType(INT16, BLOCK)
SUMS = ir.VectorType(INT32, HALVES)
ONE = np.uint16(1)


class Scratch(NamedTuple):
    """Working memory for three queries that are counted together."""

    words: NDArray[np.uint64]  # (3,) the queries
    extent: NDArray[np.uint16]  # (3, 2, BLOCK) least and greatest distance, by lane
    bounds: NDArray[np.int64]  # (3, 2) the same over all lanes
    slots: NDArray[np.uint16]  # (LAG * BLOCK,) of the latest blocks
    joint: NDArray[np.uint16]  # (ROWS * HALVES * HALVES,)
    halves: NDArray[np.uint32]  # (2, HALVES, HALVES) for e and f, over d, by the parity of d
    thirds: NDArray[np.uint32]  # (2, HALVES) for f, over d and e, by the parity of d
    histograms: NDArray[np.uint32]  # (3, ROWS)
    added: NDArray[np.uint32]  # (3, 2, ROWS) by relevance
    fits: NDArray[np.bool_]  # (1,) False if an item was 64 bits away: then the counts are wrong


def count_ranges(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    starts: NDArray[Any],
    stops: NDArray[Any],
    counts: NDArray[np.uint32],
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    scratch = Scratch(
        np.empty(3, np.uint64),
        np.empty((3, 2, BLOCK), np.uint16),
        np.empty((3, 2), np.int64),
        np.empty(LAG * BLOCK, np.uint16),
        np.zeros(ROWS * HALVES * HALVES, np.uint16),
        np.zeros((2, HALVES, HALVES), np.uint32),
        np.zeros((2, HALVES), np.uint32),
        np.zeros((3, ROWS), np.uint32),
        np.zeros((3, 2, ROWS), np.uint32),
        np.empty(1, np.bool_),
    )
    scratch.extent[:, 0], scratch.extent[:, 1] = MOST, 0
    _count_ranges(queries, planes[0], starts, stops, scratch, counts)


@njit(cache=True, nogil=True)
def _count_ranges(queries, database, starts, stops, scratch, counts):
    """Count what is in no range of three queries, then each of their ranges.

    Ranges that overlap without being equal are counted as outside, and their items moved one by
    one.  Queries with an item at a distance of 64, which has no slot, are counted one by one.
    """
    n, n_queries, added = database.shape[0], queries.shape[0], scratch.added
    ranges = np.empty((3, 2), np.int64)
    for q in range(0, n_queries, 3):
        width = min(3, n_queries - q)
        for j in range(3):
            scratch.words[j] = queries[min(q + j, n_queries - 1), 0]
        n_ranges = _distinct_ranges(starts[q : q + width], stops[q : q + width], ranges)
        are_apart = _are_apart(ranges, n_ranges)
        first, room = 0, MOST
        added[:] = 0
        scratch.fits[0] = True
        for r in range(n_ranges if are_apart else 0):
            room = _count_items(database, first, ranges[r, 0], room, scratch)
            first = ranges[r, 1]
        _count_items(database, first, n, room, scratch)
        _sum_joint(scratch)
        _take_histograms(scratch, -1, -1, starts[q : q + width], stops[q : q + width])
        for r in range(n_ranges if are_apart else 0):
            _count_items(database, ranges[r, 0], ranges[r, 1], MOST, scratch)
            _sum_joint(scratch)
            _take_histograms(
                scratch, ranges[r, 0], ranges[r, 1], starts[q : q + width], stops[q : q + width]
            )
        for j in range(width):
            here = counts[q + j]
            if scratch.fits[0]:
                for level in range(2):
                    for d in range(min(ROWS, here.shape[1])):
                        here[level, d] += added[j, level, d]
            else:
                scan_one(queries[q + j, 0], database, here[0])
            if not (scratch.fits[0] and are_apart):
                move_range(queries[q + j, 0], database[starts[q + j] : stops[q + j]], here)


@njit(inline="always")
def _distinct_ranges(starts, stops, ranges):
    """Fill ``ranges`` with the different ranges that are not empty, ascending; return how many."""
    n = 0
    for j in range(starts.shape[0]):
        start, stop = starts[j], stops[j]
        is_new = stop > start
        for r in range(n):
            is_new &= ranges[r, 0] != start or ranges[r, 1] != stop
        if is_new:
            r = n
            while r > 0 and ranges[r - 1, 0] > start:
                ranges[r, 0], ranges[r, 1] = ranges[r - 1, 0], ranges[r - 1, 1]
                r -= 1
            ranges[r, 0], ranges[r, 1] = start, stop
            n += 1
    return n


@njit(inline="always")
def _are_apart(ranges, n_ranges):
    """Whether no two ranges overlap; they ascend."""
    are_apart = True
    for r in range(1, n_ranges):
        are_apart &= ranges[r, 0] >= ranges[r - 1, 1]
    return are_apart


@njit(cache=True, nogil=True)
def _count_items(database, first, last, room, scratch):
    """Count items ``first … last - 1``; return how many more surely fit into the counters.

    ``room`` is that number before.
    """
    slots, joint = scratch.slots, scratch.joint
    while first < last:
        if room < LEAST_ROOM:
            room = MOST - _greatest(joint)
        if room < LEAST_ROOM:
            _sum_joint(scratch)
            room = MOST
        n = min(last - first, room)
        n_blocks = n // BLOCK
        if n_blocks > 0:
            slots[:] = 0
            joint[0] -= np.uint16(slots.shape[0])  # because these are counted first
            _count_blocks(
                database, first, n_blocks * BLOCK, scratch.words, scratch.extent, slots, joint
            )
            for i in range(slots.shape[0]):
                joint[slots[i]] += ONE
        _count_rest(database, first + n_blocks * BLOCK, first + n, scratch)
        first += n
        room -= n
    return room


@njit(inline="always")
def _greatest(joint):
    """The greatest counter."""
    greatest = np.uint16(0)
    for i in range(joint.shape[0]):
        greatest = max(greatest, joint[i])
    return int(greatest)


@njit(inline="always")
def _count_rest(database, first, last, scratch):
    """Count items that fill no block, one by one."""
    words, extent = scratch.words, scratch.extent
    for i in range(first, last):
        d, e, f = (
            popcount(words[0] ^ database[i]),
            popcount(words[1] ^ database[i]),
            popcount(words[2] ^ database[i]),
        )
        for j, distance in enumerate((d, e, f)):
            extent[j, 0, 0] = min(extent[j, 0, 0], distance)
            extent[j, 1, 0] = max(extent[j, 1, 0], distance)
        if max(d, max(e, f)) < np.uint64(ROWS):
            half = (e >> np.uint64(1)) ^ (d & np.uint64(31))
            slot = (d << np.uint64(10)) | (half << np.uint64(5)) | (f >> np.uint64(1))
            scratch.joint[slot] += ONE


@njit(cache=True, nogil=True)
def _sum_joint(scratch):
    """Add the joint table to the histogram of each query, and clear it."""
    joint, halves, thirds, words = scratch.joint, scratch.halves, scratch.thirds, scratch.words
    bounds, histograms = scratch.bounds, scratch.histograms
    if _take_extent(scratch) >= ROWS:
        joint[:] = 0
        scratch.fits[0] = False
        return
    second = popcount(words[0] ^ words[1]) & np.uint64(1)
    third = popcount(words[0] ^ words[2]) & np.uint64(1)
    low, high = bounds[1, 0] >> 1, bounds[1, 1] >> 1
    for d in range(bounds[0, 0], bounds[0, 1] + 1):
        histograms[0, d] += _take_rows(joint, d, low, high + 1, halves[d & 1], thirds[d & 1])
    for parity in range(2):
        odd = np.uint64(parity)
        for e in range(low, high + 1):
            total = np.uint32(0)
            for f in range(HALVES):
                total += halves[parity, e, f]
                halves[parity, e, f] = 0
            histograms[1, np.uint64(2 * e) + (odd ^ second)] += total
        for f in range(HALVES):
            histograms[2, np.uint64(2 * f) + (odd ^ third)] += thirds[parity, f]
            thirds[parity, f] = 0


@njit(inline="always")
def _take_extent(scratch):
    """Fill ``bounds`` from ``extent``, reset it, and return the greatest distance of any query."""
    extent, bounds = scratch.extent, scratch.bounds
    greatest = 0
    for j in range(bounds.shape[0]):
        low, high = MOST, 0
        for i in range(extent.shape[2]):
            low = min(low, int(extent[j, 0, i]))
            high = max(high, int(extent[j, 1, i]))
            extent[j, 0, i], extent[j, 1, i] = MOST, 0
        bounds[j, 0], bounds[j, 1] = low, high
        greatest = max(greatest, high)
    return greatest


@njit(inline="always")
def _take_histograms(scratch, start, stop, starts, stops):
    """Add the histograms to level 1 of the queries with this range, to level 0 of the others."""
    for j in range(starts.shape[0]):
        level = 1 if starts[j] == start and stops[j] == stop else 0
        for d in range(ROWS):
            scratch.added[j, level, d] += scratch.histograms[j, d]
    scratch.histograms[:] = 0


@intrinsic
def _count_blocks(
    typing_context: Any,
    database: Any,
    first: Any,
    n: Any,
    words: Any,
    extent: Any,
    slots: Any,
    joint: Any,
) -> Any:
    """Find the slots of n items, whole blocks, and count those that ``slots`` still holds.

    ``slots`` keeps those of the last blocks.  Finding and counting use different parts of the
    processor, so they are interleaved.
    """
    signature = types.void(database, types.intp, types.intp, words, extent, slots, joint)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        items, queries, extents, out, counters = pointers(
            context, builder, signature, arguments, (0, 3, 4, 5, 6)
        )
        items = past(builder, items, arguments[1], 8)
        three = [
            broadcast(builder, load(builder, at(builder, queries, 8 * j), INT64), REGISTER)
            for j in range(3)
        ]
        places = [at(builder, extents, 2 * BLOCK * i) for i in range(6)]
        extremes = [load(builder, place, DISTANCES) for place in places]

        def body(i: Any, now: list[list[Any]]) -> None:
            lag = builder.and_(i, ir.Constant(INT64, BLOCK * LAG - 1))
            these = past(builder, out, lag, 2)
            _increment(builder, these, counters)
            here = past(builder, items, i, 8)
            registers = [
                load(builder, at(builder, here, 8 * WORDS * k), REGISTER) for k in range(TOGETHER)
            ]
            distances = [_packed_distances(builder, registers, query) for query in three]
            for j, value in enumerate(distances):
                for side, sign in enumerate("<>"):
                    old = now[0][2 * j + side]
                    is_new = builder.icmp_unsigned(sign, value, old)
                    now[0][2 * j + side] = builder.select(is_new, value, old)
            store(builder, _slots_of(builder, *distances), these)

        (latest,) = loop(builder, (ir.Constant(INT64, 0), arguments[2]), BLOCK, [extremes], body)
        for place, value in zip(places, latest, strict=True):
            store(builder, value, place)
        return context.get_dummy_value()

    return signature, generate


def _increment(builder: Any, slots: Any, counters: Any) -> None:
    """Count a block of slots."""
    mask = ir.Constant(INT64, MOST)
    for k in range(BLOCK // 4):
        four = load(builder, at(builder, slots, 8 * k), INT64)
        for part in range(4):
            slot = builder.lshr(four, ir.Constant(INT64, 16 * part)) if part else four
            entry = past(builder, counters, builder.and_(slot, mask) if part < 3 else slot, 2)
            more = builder.add(load(builder, entry, INT16), ir.Constant(INT16, 1))
            store(builder, more, entry)


def _packed_distances(builder: Any, registers: list[Any], query: Any) -> Any:
    """Distances of a block of items from a query, of 16 bits each."""
    count = declare(builder, f"llvm.ctpop.v{WORDS}i64", REGISTER, [REGISTER])
    packed = None
    for k, items in enumerate(registers):
        distance = builder.call(count, [builder.xor(items, query)])
        if packed is None:
            packed = distance
        else:
            shift = ir.Constant(REGISTER, [16 * k] * WORDS)
            packed = builder.or_(packed, builder.shl(distance, shift))
    return builder.bitcast(packed, DISTANCES)


def _slots_of(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """The slots of a block of items, from their distances of three queries."""
    one, four, five, ten, middle = (
        ir.Constant(DISTANCES, [value] * BLOCK) for value in (1, 4, 5, 10, 31 << 5)
    )
    e = builder.and_(builder.xor(builder.shl(b, four), builder.shl(a, five)), middle)
    return builder.or_(builder.or_(builder.shl(a, ten), e), builder.lshr(c, one))


@intrinsic
def _take_rows(
    typing_context: Any, joint: Any, d: Any, low: Any, stop: Any, halves: Any, thirds: Any
) -> Any:
    """Add the rows ``low … stop - 1`` of d to ``halves`` and to ``thirds``; return their sum.

    The rows are cleared.
    """
    signature = types.uint32(joint, types.intp, types.intp, types.intp, halves, thirds)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, half, third = pointers(context, builder, signature, arguments, (0, 4, 5))
        table = past(builder, table, arguments[1], 2 * HALVES * HALVES)
        turned = builder.and_(arguments[1], ir.Constant(INT64, HALVES - 1))

        def body(e: Any, now: list[list[Any]]) -> None:
            row = past(builder, table, builder.xor(e, turned), 2 * HALVES)
            value = builder.zext(load(builder, row, DISTANCES), SUMS)
            store(builder, ir.Constant(DISTANCES, [0] * BLOCK), row)
            add_to(past(builder, half, e, 4 * HALVES), value)
            now[0][0] = builder.add(now[0][0], value)

        def add_to(place: Any, value: Any) -> None:
            store(builder, builder.add(load(builder, place, SUMS), value), place)

        nothing = ir.Constant(SUMS, [0] * HALVES)
        ((total,),) = loop(builder, (arguments[2], arguments[3]), 1, [[nothing]], body)
        add_to(third, total)
        add_up = declare(builder, f"llvm.vector.reduce.add.v{HALVES}i32", INT32, [SUMS])
        return builder.call(add_up, [total])

    return signature, generate
