"""Hamming distances of many items at once, by looking up four bits at a time.

A byte shuffle of AVX2 looks up 32 entries of a table of 16 in one instruction.  If the table holds
the distances of one query's four bits from every other four, the entries are the distances of 32
items in those bits, and sixteen look-ups with their sums are those of a 64-bit word.

Distances of two or three queries become one *place*, a 16-bit number, so that one increment counts
them together.  Of every query but the first, only half the distance is needed: whether two queries'
distances to an item are both odd or both even does not depend on the item.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bittern.kernels.emit import (
    BYTE,
    COUNTS,
    LANES,
    LONG,
    VECTOR,
    WORD,
    at,
    data,
    function,
    load,
    past,
    splat,
    spread,
    store,
)

VECTORS = 4  # vectors in a tile
TILE = LANES * VECTORS
NIBBLES = 16  # of four bits each, in a word
LAG = 2  # tiles between finding places and counting them, lest the counting wait
STEPS = 2  # nibbles in one turn of the loop: with more, the compiler runs out of registers
MIDDLE = 8  # puts the commonest distances of 64-bit codes into the middle of a line of the cache


#: ``NEAR[q, x]``: the distance of four bits q from four bits x; twice, for the two halves of a
#: vector look up separately.
NEAR = np.tile(
    np.bitwise_count(np.arange(16)[:, None] ^ np.arange(16)).astype(np.uint8), (1, LANES // 16)
)


def available() -> bool:
    """Whether the code that numba compiles here may use AVX2."""
    chosen = config.CPU_NAME is not None or config.CPU_FEATURES is not None
    if chosen or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    return bool(llvmlite.binding.get_host_cpu_features().get("avx2", False))


def tiles_of(planes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """``(n_tiles, n_nibbles, TILE)``: nibble k of each item; the last tile is filled with zeros."""
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
    """What the kernels write beside the counts."""

    tables: NDArray[np.uint8]  # (n_nibbles, n_queries, LANES) look-ups
    extent: NDArray[np.uint8]  # (n_queries, 2, LANES) least and greatest distances by lane
    bounds: NDArray[np.int64]  # (n_queries, 2) the same over all lanes
    joint: NDArray[np.uint16]  # (LAG, TILE) places of the last tiles
    table: NDArray[np.uint32]  # counts of places, in rows
    columns: NDArray[np.uint32]  # sums of such rows
    found: NDArray[np.uint32]  # (2, n_queries, n_distances) histograms by level
    words: NDArray[np.uint64]  # (n_queries, n_words) the queries at hand


def scratch_for(
    n_queries: int, n_words: int, n_distances: int, table: tuple[int, ...], columns: tuple[int, int]
) -> Scratch:
    """Empty scratch for queries that go together."""
    extent = np.zeros((n_queries, 2, LANES), np.uint8)
    extent[:, 0] = 255
    return Scratch(
        np.empty((n_words * NIBBLES, n_queries, LANES), np.uint8),
        extent,
        np.empty((n_queries, 2), np.int64),
        np.empty((LAG, TILE), np.uint16),
        np.zeros(table, np.uint32),
        np.zeros(columns, np.uint32),
        np.empty((2, n_queries, n_distances), np.uint32),
        np.empty((n_queries, n_words), np.uint64),
    )


@njit(inline="always")
def load_queries(queries, q, scratch):
    """Take as many queries as go together, from q on; the last again for those that lack."""
    words, tables = scratch.words, scratch.tables
    for j in range(words.shape[0]):
        for k in range(tables.shape[0]):  # (not by constants: loops unrolled compile slowly)
            word = queries[min(q + j, queries.shape[0] - 1), k // NIBBLES]
            words[j, k // NIBBLES] = word
            nibble = (word >> np.uint64(k % NIBBLES * 4)) & np.uint64(15)
            for x in range(tables.shape[2]):
                tables[k, j, x] = NEAR[nibble, x]
    clear(scratch.found.reshape(-1))


@njit(inline="always")
def take_extent(scratch):
    """Fill ``bounds`` from ``extent``, which begins anew; give the greatest distance of all."""
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
def clear(flat):
    """Set all entries to zero."""
    for i in range(flat.shape[0]):
        flat[i] = 0


@intrinsic
def take_row(typing_context: Any, table: Any, row: Any, columns: Any, target: Any) -> Any:
    """Add row ``row`` of 32 counts to row ``target`` of ``columns``, empty it, and give its sum."""
    signature = types.uint32(table, types.intp, columns, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, sums = data(context, builder, signature, arguments, (0, 2))
        source = past(builder, source, arguments[1], 4 * LANES)
        sums = past(builder, sums, arguments[3], 4 * LANES)
        value = load(builder, source, COUNTS)
        store(builder, builder.add(load(builder, sums, COUNTS), value), sums)
        store(builder, ir.Constant(COUNTS, [0] * LANES), source)
        add = function(builder, f"llvm.vector.reduce.add.v{LANES}i32", WORD, [COUNTS])
        return builder.call(add, [value])

    return signature, generate


def _places(n_queries: int, count: bool, grouped: bool = False) -> Any:
    """An intrinsic that finds the places of one tile, and may count those found before."""

    @intrinsic
    def places(
        typing_context: Any,
        tiles: Any,
        t: Any,
        tables: Any,
        extent: Any,
        joint: Any,
        kinds: Any,
        shift: Any,
        table: Any,
    ) -> Any:
        signature = types.void(tiles, types.intp, tables, extent, joint, kinds, types.uint8, table)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            tile, n_nibbles = _tile(context, builder, signature, arguments)
            lookup, extents, out, kind, counts = data(
                context, builder, signature, arguments, (2, 3, 4, 5, 7)
            )

            def increment(nibble: Any, v: int) -> None:
                """Count two of the places that ``out`` still holds."""
                these = past(builder, out, nibble, 2 * TILE // NIBBLES)
                pair = builder.zext(load(builder, at(builder, these, 4 * v), WORD), LONG)
                low = builder.and_(pair, ir.Constant(LONG, 0xFFFF))
                for place in (low, builder.lshr(pair, ir.Constant(LONG, 16))):
                    entry = past(builder, counts, place, 4)
                    more = builder.add(load(builder, entry, WORD), ir.Constant(WORD, 1))
                    store(builder, more, entry)

            between = increment if count else None
            zeros = [[splat(0)] * VECTORS for _ in range(n_queries)]
            word = ir.Constant(LONG, NIBBLES)
            sums = _lookups(builder, tile, lookup, (ir.Constant(LONG, 0), word), zeros, between)
            if n_queries == 2:
                sums = _further_lookups(builder, tile, lookup, (word, n_nibbles), sums)
            _extend(builder, sums, extents)
            for v in range(VECTORS):
                distances = [sums[j][v] for j in range(n_queries)]
                low, high = (_place_of_two if n_queries == 2 else _place_of_three)(
                    builder, *distances
                )
                if grouped:
                    kinds = load(builder, at(builder, kind, v * LANES))
                    kinds = builder.lshr(kinds, spread(builder, arguments[6]))
                    high = builder.or_(high, builder.shl(kinds, splat(6)))
                for half in range(2):
                    pairs = [x for i in range(16) for x in (16 * half + i, LANES + 16 * half + i)]
                    whole = builder.shuffle_vector(low, high, ir.Constant(COUNTS, pairs))
                    store(builder, whole, at(builder, out, (2 * v + half) * LANES))
            return context.get_dummy_value()

        return signature, generate

    return places


# Each is called as f(tiles, t, tables, extent, joint, kinds, shift, table).
#
# ``joint`` receives the places of the items of tile t.  ``extent[j]`` keeps the least and the
# greatest distance from query j, lane by lane.  Where it counts, the places that ``joint`` held are
# counted in ``table`` meanwhile: look-ups and increments use different parts of the processor.
#
# Three queries of one word: bits 10–15 are the first distance d, 5–9 half the second XOR d, 0–4
# half the third + 16 d + MIDDLE; right unless a distance is 64.  Two queries of one to four words:
# bits 7–14 are the first distance d, 0–6 half the second + 16 d; right unless a distance is 255 or
# more.  (What is added makes neighbouring distances fall into different sets of the cache.)
#
# If grouped, codes have one word, and bits 14 and 15 are the kind of the item: the low bits of
# ``kinds[i] >> shift``.  Else ``kinds`` and ``shift`` are not read.
place_three = _places(3, count=False)
count_and_place_three = _places(3, count=True)
place_two = _places(2, count=False)
count_and_place_two = _places(2, count=True)
place_two_of_kinds = _places(2, count=False, grouped=True)
count_and_place_two_of_kinds = _places(2, count=True, grouped=True)


def _place_of_three(builder: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Low and high bytes."""
    one, two, three, four, five = (splat(shift) for shift in (1, 2, 3, 4, 5))
    second = builder.and_(builder.xor(builder.lshr(b, one), a), splat(31))
    third = builder.add(builder.add(builder.lshr(c, one), builder.shl(a, four)), splat(MIDDLE))
    third = builder.and_(third, splat(31))
    high = builder.or_(builder.shl(a, two), builder.lshr(second, three))
    return builder.or_(builder.shl(second, five), third), high


def _place_of_two(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Low and high bytes."""
    one, four, seven = (splat(shift) for shift in (1, 4, 7))
    second = builder.and_(builder.add(builder.lshr(b, one), builder.shl(a, four)), splat(127))
    return builder.or_(builder.shl(a, seven), second), builder.lshr(a, one)


def _lookups(
    builder: Any,
    tile: Any,
    tables: Any,
    nibbles: tuple[Any, Any],
    sums: list[list[Any]],
    between: Callable[[Any, int], None] | None = None,
) -> list[list[Any]]:
    """Add to sums ``[query][vector]`` what the tables hold for a range of nibbles, not empty.

    Sums stop at 255.  ``between(nibble, vector)`` emits other work, for the two to overlap.
    """
    n_queries = len(sums)
    shuffle = function(builder, "llvm.x86.avx2.pshuf.b", VECTOR, [VECTOR, VECTOR])
    add = function(builder, f"llvm.uadd.sat.v{LANES}i8", VECTOR, [VECTOR, VECTOR])
    before = builder.block
    loop, after = builder.append_basic_block("nibbles"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(LONG)
    k.add_incoming(nibbles[0], before)
    starts = [[builder.phi(VECTOR) for _ in row] for row in sums]
    for row, values in zip(starts, sums, strict=True):
        for phi, value in zip(row, values, strict=True):
            phi.add_incoming(value, before)
    sums = [list(row) for row in starts]
    for step in range(STEPS):
        nibble = builder.add(k, ir.Constant(LONG, step))
        row = past(builder, tables, nibble, n_queries * LANES)
        items = past(builder, tile, nibble, TILE)
        table = [load(builder, at(builder, row, j * LANES)) for j in range(n_queries)]
        for v in range(VECTORS):
            bits = load(builder, at(builder, items, v * LANES))
            for j in range(n_queries):
                found = builder.call(shuffle, [table[j], bits])
                sums[j][v] = builder.call(add, [sums[j][v], found])
            if between is not None:
                between(nibble, v)
    following = builder.add(k, ir.Constant(LONG, STEPS))
    k.add_incoming(following, builder.block)
    for row, values in zip(starts, sums, strict=True):
        for phi, value in zip(row, values, strict=True):
            phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, nibbles[1]), loop, after)
    builder.position_at_end(after)
    return sums


def _further_lookups(
    builder: Any, tile: Any, tables: Any, nibbles: tuple[Any, Any], sums: list[list[Any]]
) -> list[list[Any]]:
    """The same for a range that may be empty."""
    before = builder.block
    more, after = builder.append_basic_block("more"), builder.append_basic_block("all")
    builder.cbranch(builder.icmp_signed("<", *nibbles), more, after)
    builder.position_at_end(more)
    found = _lookups(builder, tile, tables, nibbles, sums)
    last = builder.block
    builder.branch(after)
    builder.position_at_end(after)
    joined = [[builder.phi(VECTOR) for _ in row] for row in sums]
    for j, row in enumerate(joined):
        for v, phi in enumerate(row):
            phi.add_incoming(sums[j][v], before)
            phi.add_incoming(found[j][v], last)
    return joined


def _extend(builder: Any, sums: list[list[Any]], extents: Any) -> None:
    """Keep the least and the greatest of each lane."""
    for j, row in enumerate(sums):
        for side, sign in enumerate("<>"):
            place = at(builder, extents, (2 * j + side) * LANES)
            value = load(builder, place)
            for new in row:
                value = builder.select(builder.icmp_unsigned(sign, new, value), new, value)
            store(builder, value, place)


def _tile(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Any, Any]:
    """Pointer to tile ``t`` of ``tiles``, the first two arguments, and the number of nibbles."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    n_nibbles = builder.extract_value(array.shape, 1)
    size = builder.mul(n_nibbles, ir.Constant(LONG, TILE))
    start = builder.bitcast(array.data, BYTE.as_pointer())
    return builder.gep(start, [builder.mul(arguments[1], size)]), n_nibbles
