"""Scans for near items by AVX2: a tile of 128 items and three queries at a time.

``tiles[t, b, i]`` is octet b of item i of tile t.  As in ``kernels.vectors``, a byte shuffle looks
up the distances of one query's four bits from 32 items' four bits; sixteen look-ups are a 64-bit
distance.  Sums stop at 255, so they only tell which items *may* be near enough; these few are then
compared by their words.

Guaranteed by the caller: arrays are C-contiguous, the tables are those of :func:`tables_of`, and
``allowed`` is a mask over all rows or empty where all are allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bittern.kernels.bits import distance_between, lowest_bit
from bittern.kernels.emit import (
    BYTE,
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
from bittern.kernels.found import take
from bittern.kernels.vectors import NEAR, TILE, VECTORS

TOGETHER = 3  # queries: with their sums of four vectors, they fill the registers
NEARBY = 1 << 17  # bytes of tiles that stay in the cache while all queries pass
MOST_WORDS = 4  # of codes for which sums up to 255 tell enough


def tiles_of(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``(n_tiles, n_octets, TILE)``; the last tile is filled with zeros."""
    n, n_octets = octets.shape
    n_tiles = -(-n // TILE)
    tiles = np.zeros((n_tiles, n_octets, TILE), np.uint8)
    whole = n // TILE
    tiles[:whole] = octets[: whole * TILE].reshape(whole, TILE, n_octets).transpose(0, 2, 1)
    if whole < n_tiles:
        tiles[whole, :, : n - whole * TILE] = octets[whole * TILE :].T
    return tiles


def tables_of(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Look-ups ``(n_groups, n_octets, 2, TOGETHER, LANES)`` of queries, the last group filled."""
    n, n_octets = octets.shape
    padded = np.zeros((-(-n // TOGETHER) * TOGETHER, n_octets), np.uint8)
    padded[:n] = octets
    nibbles = np.stack([padded & 15, padded >> 4], axis=2)
    groups = NEAR[nibbles.reshape(-1, TOGETHER, n_octets, 2)]
    return np.ascontiguousarray(groups.transpose(0, 2, 3, 1, 4))


@njit(cache=True, nogil=True)
def find_nearest(queries, tables, words, tiles, allowed, k, found):
    """Offer all items of the tiles to ``found``."""
    sums = np.empty((TOGETHER, TILE), np.uint8)
    limits = np.zeros(TOGETHER, np.uint8)
    step = max(1, NEARBY // (tiles.shape[1] * TILE))
    for near in range(0, tiles.shape[0], step):
        far = min(tiles.shape[0], near + step)
        for group in range(tables.shape[0]):
            q = group * TOGETHER
            width = min(TOGETHER, queries.shape[0] - q)
            for j in range(width):
                limits[j] = min(max(found.bounds[q + j] - 1, 0), 255)
            for t in range(near, far):
                hit = find_below(tiles, t, tables, group, limits, sums)
                if hit:
                    start = t * TILE
                    for j in range(width):
                        if hit & (1 << j) and found.bounds[q + j] > 0:
                            _offer(queries, q + j, words, start, sums, j, limits, allowed, k, found)
                            limits[j] = min(max(found.bounds[q + j] - 1, 0), 255)


@njit(inline="always")
def _offer(queries, q, words, start, sums, j, limits, allowed, k, found):
    """Take those items of one tile that are near enough to query q, whose sums are row j."""
    for v in range(VECTORS):
        lanes = lanes_below(sums, j * VECTORS + v, limits[j])
        while lanes:
            row = start + v * LANES + np.int64(lowest_bit(np.uint64(lanes)))
            lanes &= lanes - np.uint32(1)
            if row < words.shape[0] and (allowed.shape[0] == 0 or allowed[row]):
                distance = distance_between(queries, q, words, row)
                if distance < found.bounds[q]:
                    take(found, q, row, distance, k)


@njit(cache=True, nogil=True)
def find_within(queries, tables, words, tiles, radius, allowed, places, rows, distances):
    """Count the items of each distance up to the radius, or put them in their places.

    Where ``rows`` is empty, ``places[q, d]`` is raised by the number of items at distance d from
    query q.  Else item by item goes to ``rows[places[q, d]]``, which is raised by one.
    """
    sums = np.empty((TOGETHER, TILE), np.uint8)
    limits = np.full(TOGETHER, min(radius, 255), np.uint8)
    step = max(1, NEARBY // (tiles.shape[1] * TILE))
    for near in range(0, tiles.shape[0], step):
        far = min(tiles.shape[0], near + step)
        for group in range(tables.shape[0]):
            q = group * TOGETHER
            for t in range(near, far):
                hit = find_below(tiles, t, tables, group, limits, sums)
                for j in range(min(TOGETHER, queries.shape[0] - q)):
                    if hit & (1 << j):
                        _place(
                            queries,
                            q + j,
                            words,
                            t * TILE,
                            sums,
                            j,
                            radius,
                            allowed,
                            places,
                            rows,
                            distances,
                        )


@njit(inline="always")
def _place(queries, q, words, start, sums, j, radius, allowed, places, rows, distances):
    """Count or place the items of one tile that are near enough to query q."""
    for v in range(VECTORS):
        lanes = lanes_below(sums, j * VECTORS + v, np.uint8(min(radius, 255)))
        while lanes:
            row = start + v * LANES + np.int64(lowest_bit(np.uint64(lanes)))
            lanes &= lanes - np.uint32(1)
            if row < words.shape[0] and (allowed.shape[0] == 0 or allowed[row]):
                distance = distance_between(queries, q, words, row)
                if distance <= radius:
                    place = places[q, distance]
                    if rows.shape[0] > 0:
                        rows[place], distances[place] = row, distance
                    places[q, distance] = place + 1


@intrinsic
def find_below(
    typing_context: Any, tiles: Any, t: Any, tables: Any, group: Any, limits: Any, sums: Any
) -> Any:
    """Fill ``sums`` with distances of tile t; bit j tells if one of query j is within its limit."""
    signature = types.int64(tiles, types.intp, tables, types.intp, limits, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        n_octets = builder.extract_value(array.shape, 1)
        tile, table, limit, out = data(context, builder, signature, arguments, (0, 2, 4, 5))
        tile = past(builder, tile, builder.mul(arguments[1], n_octets), TILE)
        table = past(builder, table, builder.mul(arguments[3], n_octets), 2 * TOGETHER * LANES)
        found = _distances(builder, tile, table, n_octets)
        hit = ir.Constant(LONG, 0)
        for j, vectors in enumerate(found):
            least = vectors[0]
            for v, vector in enumerate(vectors):
                store(builder, vector, at(builder, out, j * TILE + v * LANES))
                least = _least(builder, least, vector)
            most = spread(builder, load(builder, at(builder, limit, j), BYTE))
            lanes = _lanes(builder, least, most)
            some = builder.icmp_unsigned("!=", lanes, ir.Constant(WORD, 0))
            flag = builder.shl(builder.zext(some, LONG), ir.Constant(LONG, j))
            hit = builder.or_(hit, flag)
        return hit

    return signature, generate


@intrinsic
def lanes_below(typing_context: Any, sums: Any, v: Any, limit: Any) -> Any:
    """The set of lanes of vector v of all sums that hold at most the limit, as bits."""
    signature = types.uint32(sums, types.intp, types.uint8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (values,) = data(context, builder, signature, arguments, (0,))
        vector = load(builder, past(builder, values, arguments[1], LANES))
        return _lanes(builder, vector, spread(builder, arguments[2]))

    return signature, generate


def _distances(builder: Any, tile: Any, tables: Any, n_octets: Any) -> list[list[Any]]:
    """Sums ``[query][vector]`` over a loop of octets."""
    shuffle = function(builder, "llvm.x86.avx2.pshuf.b", VECTOR, [VECTOR, VECTOR])
    add = function(builder, f"llvm.uadd.sat.v{LANES}i8", VECTOR, [VECTOR, VECTOR])
    before = builder.block
    loop, after = builder.append_basic_block("octets"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    b = builder.phi(LONG)
    b.add_incoming(ir.Constant(LONG, 0), before)
    starts = [[builder.phi(VECTOR) for _ in range(VECTORS)] for _ in range(TOGETHER)]
    sums = [list(row) for row in starts]
    items = past(builder, tile, b, TILE)
    rows = past(builder, tables, b, 2 * TOGETHER * LANES)
    for half in range(2):
        table = [
            load(builder, at(builder, rows, (half * TOGETHER + j) * LANES)) for j in range(TOGETHER)
        ]
        for v in range(VECTORS):
            octets = load(builder, at(builder, items, v * LANES))
            octets = builder.lshr(octets, splat(4)) if half else builder.and_(octets, splat(15))
            for j in range(TOGETHER):
                sums[j][v] = builder.call(
                    add, [sums[j][v], builder.call(shuffle, [table[j], octets])]
                )
    following = builder.add(b, ir.Constant(LONG, 1))
    b.add_incoming(following, builder.block)
    for row, values in zip(starts, sums, strict=True):
        for phi, value in zip(row, values, strict=True):
            phi.add_incoming(splat(0), before)
            phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, n_octets), loop, after)
    builder.position_at_end(after)
    return sums


def _least(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


def _lanes(builder: Any, vector: Any, limit: Any) -> Any:
    """Bits of the lanes at most the limit."""
    return builder.bitcast(builder.icmp_unsigned("<=", vector, limit), WORD)
