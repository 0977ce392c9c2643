"""Slots of the joint table: distances of several queries as one number, found with AVX2.

Two or three queries share one *joint table* of counts.  The distances of an item from all of them
make one 16-bit number, its *slot*, so that one increment counts the item for every query.  Sums
over the rows and columns of the table are the queries' histograms.

Of every query but the first, only half the distance is in the slot.  Flipping a bit of the item
changes every distance by one, so whether two queries' distances are both odd or both even does not
depend on the item: the lost bit follows from the first distance d.  Slots are laid out as::

    three queries of one word     ┌ 15…10 ┬ 9…5 ┬ 4…0 ┐
                                  │   d   │  e  │  f  │    e = half the second XOR d
                                  └───────┴─────┴─────┘    f = half the third + 16 d + MIDDLE
    two queries of 1 … 4 words    ┌ 14…7  ┬    6…0    ┐
                                  │   d   │     e     │    e = half the second + 16 d
                                  └───────┴───────────┘
    two queries, by relevance     bits 15 and 14 say to which of the two queries the item is
                                  relevant; codes have one word, so that d needs only seven bits

The XOR and the additions spread neighbouring distances over different sets of the cache.  Distances
of 64 (three queries), or of 255 and more (two), do not fit; the kernels detect them by the greatest
distance seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bittern.kernels.bits import declare
from bittern.kernels.registers import (
    BYTE,
    COUNTS,
    INT32,
    INT64,
    LANES,
    NIBBLE_DISTANCES,
    TILE,
    VECTORS,
    Sums,
    add_distances,
    at,
    broadcast,
    constant,
    load,
    loop,
    past,
    pointers,
    store,
    when,
)

NIBBLES = 16  # in a word
LAG = 2  # tiles between finding slots and counting them, so that counting never waits
STEPS = 2  # nibbles in one turn of the loop: with more, the compiler runs out of registers
MIDDLE = 8  # puts the commonest distances of 64-bit codes into the middle of a cache line
ONE = np.uint32(1)


def tiles_of(planes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """``(n_tiles, n_nibbles, TILE)``: nibble k of each item; the last tile is padded with zeros."""
    n_words, n = planes.shape
    tiles = np.empty((-(-n // TILE), n_words * NIBBLES, TILE), np.uint8)
    _fill_tiles(planes, np.zeros(TILE, np.uint64), tiles)
    return tiles


@njit(cache=True, nogil=True)
def _fill_tiles(planes, words, tiles):
    n = planes.shape[1]
    for t in range(tiles.shape[0]):
        first = t * TILE
        width = min(TILE, n - first)
        for row in range(tiles.shape[1]):
            w, shift = row // NIBBLES, np.uint64(row % NIBBLES * 4)
            if row % NIBBLES == 0:
                for i in range(width):
                    words[i] = planes[w, first + i]
                for i in range(width, words.shape[0]):
                    words[i] = 0
            out = tiles[t, row]
            for i in range(words.shape[0]):
                out[i] = np.uint8((words[i] >> shift) & np.uint64(15))


class Scratch(NamedTuple):
    """Working memory of the kernels for the queries that are counted together."""

    words: NDArray[np.uint64]  # (n_queries, n_words) the queries
    lookups: NDArray[np.uint8]  # (n_nibbles, n_queries, LANES) their look-up tables
    extent: NDArray[np.uint8]  # (n_queries, 2, LANES) least and greatest distance, by lane
    bounds: NDArray[np.int64]  # (n_queries, 2) the same over all lanes
    slots: NDArray[np.uint16]  # (LAG, TILE) of the latest tiles
    joint: NDArray[np.uint32]  # the joint table
    columns: NDArray[np.uint32]  # sums over rows of the joint table
    histograms: NDArray[np.uint32]  # (2, n_queries, n_distances) by relevance


def scratch_for(
    n_queries: int, n_words: int, n_distances: int, joint: tuple[int, int], columns: tuple[int, int]
) -> Scratch:
    """Empty working memory; ``joint`` and ``columns`` are shapes."""
    extent = np.zeros((n_queries, 2, LANES), np.uint8)
    extent[:, 0] = 255
    return Scratch(
        np.empty((n_queries, n_words), np.uint64),
        np.empty((n_words * NIBBLES, n_queries, LANES), np.uint8),
        extent,
        np.empty((n_queries, 2), np.int64),
        np.empty((LAG, TILE), np.uint16),
        np.zeros(joint, np.uint32),
        np.zeros(columns, np.uint32),
        np.empty((2, n_queries, n_distances), np.uint32),
    )


@njit(inline="always")
def load_queries(queries, q, scratch):
    """Take the queries from q on, and make their look-up tables; missing ones repeat the last."""
    words, lookups = scratch.words, scratch.lookups
    for j in range(words.shape[0]):
        for k in range(lookups.shape[0]):  # not a constant bound: unrolled loops compile slowly
            word = queries[min(q + j, queries.shape[0] - 1), k // NIBBLES]
            words[j, k // NIBBLES] = word
            nibble = (word >> np.uint64(k % NIBBLES * 4)) & np.uint64(15)
            for x in range(lookups.shape[2]):
                lookups[k, j, x] = NIBBLE_DISTANCES[nibble, x]
    clear(scratch.histograms.reshape(-1))


@njit(inline="always")
def take_extent(scratch):
    """Fill ``bounds`` from ``extent``, reset it, and return the greatest distance of any query."""
    extent, bounds = scratch.extent, scratch.bounds
    greatest = 0
    for j in range(bounds.shape[0]):
        low, high = 255, 0
        for i in range(extent.shape[2]):
            low = min(low, int(extent[j, 0, i]))
            high = max(high, int(extent[j, 1, i]))
            extent[j, 0, i], extent[j, 1, i] = 255, 0
        bounds[j, 0], bounds[j, 1] = low, high
        greatest = max(greatest, high)
    return greatest


@njit(inline="always")
def count_latest(scratch, first, last):
    """Count the slots of the latest tiles before ``last``, but none before ``first``."""
    slots, joint = scratch.slots, scratch.joint.reshape(-1)
    for t in range(max(first, last - LAG), last):
        for i in range(slots.shape[1]):
            joint[slots[t % LAG, i]] += ONE


@njit(inline="always")
def clear(flat):
    """Set all entries to zero."""
    for i in range(flat.shape[0]):
        flat[i] = 0


@intrinsic
def take_row(typing_context: Any, joint: Any, row: Any, columns: Any, target: Any) -> Any:
    """Add row ``row`` of 32 counts to row ``target`` of ``columns``, clear it, return its sum."""
    signature = types.uint32(joint, types.intp, columns, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, sums = pointers(context, builder, signature, arguments, (0, 2))
        source = past(builder, source, arguments[1], 4 * LANES)
        sums = past(builder, sums, arguments[3], 4 * LANES)
        value = load(builder, source, COUNTS)
        store(builder, builder.add(load(builder, sums, COUNTS), value), sums)
        store(builder, ir.Constant(COUNTS, [0] * LANES), source)
        add = declare(builder, f"llvm.vector.reduce.add.v{LANES}i32", INT32, [COUNTS])
        return builder.call(add, [value])

    return signature, generate


def _slot_finder(n_queries: int, count: bool, by_relevance: bool = False) -> Any:
    """An intrinsic that finds the slots of one tile, and may count those found before."""

    @intrinsic
    def find_slots(
        typing_context: Any,
        tiles: Any,
        t: Any,
        lookups: Any,
        extent: Any,
        slots: Any,
        relevant_to: Any,
        shift: Any,
        joint: Any,
    ) -> Any:
        signature = types.void(
            tiles, types.intp, lookups, extent, slots, relevant_to, types.uint8, joint
        )

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            tile, n_nibbles = _tile(context, builder, signature, arguments)
            tables, extents, out, relevance, counts = pointers(
                context, builder, signature, arguments, (2, 3, 4, 5, 7)
            )

            def increment(nibble: Any, v: int) -> None:
                """Count two of the slots that ``out`` still holds."""
                these = past(builder, out, nibble, 2 * TILE // NIBBLES)
                pair = builder.zext(load(builder, at(builder, these, 4 * v), INT32), INT64)
                low = builder.and_(pair, ir.Constant(INT64, 0xFFFF))
                for slot in (low, builder.lshr(pair, ir.Constant(INT64, 16))):
                    entry = past(builder, counts, slot, 4)
                    more = builder.add(load(builder, entry, INT32), ir.Constant(INT32, 1))
                    store(builder, more, entry)

            between = increment if count else None
            word = ir.Constant(INT64, NIBBLES)
            first_word, further = (ir.Constant(INT64, 0), word), (word, n_nibbles)
            zeros = [[constant(0)] * VECTORS for _ in range(n_queries)]
            sums = _sum_distances(builder, tile, tables, first_word, zeros, between)
            if n_queries == 2:  # (three queries have codes of one word)
                has_more = builder.icmp_signed("<", *further)
                of_word = sums
                sums = when(
                    builder,
                    has_more,
                    sums,
                    lambda: _sum_distances(builder, tile, tables, further, of_word),
                )
            _extend(builder, sums, extents)
            for v in range(VECTORS):
                distances = [of_query[v] for of_query in sums]
                slot = _slot_of_two if n_queries == 2 else _slot_of_three
                low, high = slot(builder, *distances)
                if by_relevance:
                    bits = load(builder, at(builder, relevance, v * LANES))
                    bits = builder.lshr(bits, broadcast(builder, arguments[6]))
                    high = builder.or_(high, builder.shl(bits, constant(6)))
                _store_slots(builder, low, high, at(builder, out, 2 * v * LANES))
            return context.get_dummy_value()

        return signature, generate

    return find_slots


# Each is called as f(tiles, t, lookups, extent, slots, relevant_to, shift, joint).
#
# ``slots`` receives the slots of the items of tile t.  ``extent[j]`` keeps the least and the
# greatest distance from query j, lane by lane.  The functions that also count first count, in
# ``joint``, the slots that ``slots`` still held: look-ups and increments use different parts of the
# processor, so they are interleaved and the increments cost almost nothing.
#
# By relevance, the two highest bits of a slot are the lowest of ``relevant_to[i] >> shift``.  The
# others do not read ``relevant_to`` and ``shift``.
find_slots_of_three = _slot_finder(3, count=False)
count_and_find_slots_of_three = _slot_finder(3, count=True)
find_slots_of_two = _slot_finder(2, count=False)
count_and_find_slots_of_two = _slot_finder(2, count=True)
find_slots_by_relevance = _slot_finder(2, count=False, by_relevance=True)
count_and_find_slots_by_relevance = _slot_finder(2, count=True, by_relevance=True)


def _slot_of_three(builder: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Low and high bytes of the slots, lane by lane, from the distances of three queries."""
    one, two, three, four, five = (constant(shift) for shift in (1, 2, 3, 4, 5))
    e = builder.and_(builder.xor(builder.lshr(b, one), a), constant(31))
    f = builder.add(builder.add(builder.lshr(c, one), builder.shl(a, four)), constant(MIDDLE))
    f = builder.and_(f, constant(31))
    high = builder.or_(builder.shl(a, two), builder.lshr(e, three))
    return builder.or_(builder.shl(e, five), f), high


def _slot_of_two(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Low and high bytes of the slots, lane by lane, from the distances of two queries."""
    one, four, seven = (constant(shift) for shift in (1, 4, 7))
    e = builder.and_(builder.add(builder.lshr(b, one), builder.shl(a, four)), constant(127))
    return builder.or_(builder.shl(a, seven), e), builder.lshr(a, one)


def _store_slots(builder: Any, low: Any, high: Any, pointer: Any) -> None:
    """Write 32 slots of 16 bits: low and high bytes interleaved, 16 items per register."""
    for half in range(2):
        pairs = [x for i in range(16) for x in (16 * half + i, LANES + 16 * half + i)]
        whole = builder.shuffle_vector(low, high, ir.Constant(COUNTS, pairs))
        store(builder, whole, at(builder, pointer, half * LANES))


def _sum_distances(
    builder: Any,
    tile: Any,
    lookups: Any,
    nibbles: tuple[Any, Any],
    sums: Sums,
    between: Callable[[Any, int], None] | None = None,
) -> Sums:
    """Add the distances in a range of nibbles, not empty, to the sums.

    ``between(nibble, v)`` emits other work that the processor can do at the same time.
    """

    def body(k: Any, now: Sums) -> None:
        for step in range(STEPS):
            nibble = builder.add(k, ir.Constant(INT64, step))
            row = past(builder, lookups, nibble, len(sums) * LANES)
            items = past(builder, tile, nibble, TILE)
            tables = [load(builder, at(builder, row, j * LANES)) for j in range(len(sums))]
            for v in range(VECTORS):
                add_distances(builder, now, v, tables, load(builder, at(builder, items, v * LANES)))
                if between is not None:
                    between(nibble, v)

    return loop(builder, nibbles, STEPS, sums, body)


def _extend(builder: Any, sums: Sums, extents: Any) -> None:
    """Keep the least and the greatest distance of each lane."""
    for j, row in enumerate(sums):
        for side, sign in enumerate("<>"):
            pointer = at(builder, extents, (2 * j + side) * LANES)
            value = load(builder, pointer)
            for new in row:
                value = builder.select(builder.icmp_unsigned(sign, new, value), new, value)
            store(builder, value, pointer)


def _tile(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Any, Any]:
    """Pointer to tile ``t`` of ``tiles``, the first two arguments, and the number of nibbles."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    n_nibbles = builder.extract_value(array.shape, 1)
    size = builder.mul(n_nibbles, ir.Constant(INT64, TILE))
    start = builder.bitcast(array.data, BYTE.as_pointer())
    return builder.gep(start, [builder.mul(arguments[1], size)]), n_nibbles
