"""Scans for near items with AVX2: a tile of 128 items and three queries at a time.

``tiles[t, b, i]`` is byte b of item i of tile t, two nibbles to look up as
:mod:`bittern.kernels.registers` explains.  Sums stop at 255, so they only show which items *may* be
near enough; for these few, the exact distance is computed::

    three queries × 128 items ──→ sums ──→ is any within its limit? ── no ──→ next tile
                                                   │ yes, rarely
                                                   ↓
                                  those lanes: exact distance, allowed?, take

The caller guarantees: arrays are C-contiguous, the look-up tables come from :func:`lookups_of`, and
``allowed`` is a mask over all rows, or empty if all rows are allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bittern.kernels.bits import distance_between, lowest_bit
from bittern.kernels.registers import (
    BYTE,
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
)
from bittern.kernels.scan import take

TOGETHER = 3  # queries: their sums take four registers each, which fills the registers
NEARBY = 1 << 17  # bytes of tiles at a time, which stay in the cache while all queries pass
MOST_WORDS = 4  # with longer codes, too many sums would stop at 255


def tiles_of(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``(n_tiles, n_bytes, TILE)``; the last tile is padded with zeros."""
    n, n_bytes = packed.shape
    n_tiles = -(-n // TILE)
    tiles = np.zeros((n_tiles, n_bytes, TILE), np.uint8)
    whole = n // TILE
    tiles[:whole] = packed[: whole * TILE].reshape(whole, TILE, n_bytes).transpose(0, 2, 1)
    if whole < n_tiles:
        tiles[whole, :, : n - whole * TILE] = packed[whole * TILE :].T
    return tiles


def lookups_of(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Look-up tables ``(n_groups, n_bytes, 2, TOGETHER, LANES)``; the last group is padded."""
    n, n_bytes = packed.shape
    padded = np.zeros((-(-n // TOGETHER) * TOGETHER, n_bytes), np.uint8)
    padded[:n] = packed
    nibbles = np.stack([padded & 15, padded >> 4], axis=2)
    groups = NIBBLE_DISTANCES[nibbles.reshape(-1, TOGETHER, n_bytes, 2)]
    return np.ascontiguousarray(groups.transpose(0, 2, 3, 1, 4))


@njit(cache=True, nogil=True)
def find_nearest(queries, lookups, words, tiles, allowed, k, nearest):
    """Offer all items of the tiles to ``nearest``."""
    sums = np.empty((TOGETHER, TILE), np.uint8)
    limits = np.zeros(TOGETHER, np.uint8)
    step = max(1, NEARBY // (tiles.shape[1] * TILE))
    for near in range(0, tiles.shape[0], step):
        far = min(tiles.shape[0], near + step)
        for group in range(lookups.shape[0]):
            q = group * TOGETHER
            width = min(TOGETHER, queries.shape[0] - q)
            for j in range(width):
                limits[j] = min(max(nearest.bounds[q + j] - 1, 0), 255)
            for t in range(near, far):
                hit = _sum_tile(tiles, t, lookups, group, limits, sums)
                if hit:
                    start = t * TILE
                    for j in range(width):
                        if hit & (1 << j) and nearest.bounds[q + j] > 0:
                            _offer(
                                queries,
                                q + j,
                                words,
                                start,
                                sums[j],
                                limits[j],
                                allowed,
                                k,
                                nearest,
                            )
                            limits[j] = min(max(nearest.bounds[q + j] - 1, 0), 255)


@njit(inline="always")
def _offer(queries, q, words, start, sums, limit, allowed, k, nearest):
    """Take the items of one tile that are near enough to query q."""
    for v in range(VECTORS):
        lanes = _lanes_within(sums, v, limit)
        while lanes:
            row = start + v * LANES + np.int64(lowest_bit(np.uint64(lanes)))
            lanes &= lanes - np.uint32(1)  # clears the lowest bit
            if row < words.shape[0] and (allowed.shape[0] == 0 or allowed[row]):
                distance = distance_between(queries, q, words, row)
                if distance < nearest.bounds[q]:
                    take(nearest, q, row, distance, k)


@njit(cache=True, nogil=True)
def find_within(queries, lookups, words, tiles, radius, allowed, places, rows, distances):
    """Count the items at each distance up to the radius, or write them to their places.

    If ``rows`` is empty, ``places[q, d]`` grows by the number of items at distance d from query q.
    Otherwise each item is written to ``rows[places[q, d]]``, and ``places[q, d]`` grows by one.
    """
    sums = np.empty((TOGETHER, TILE), np.uint8)
    limits = np.full(TOGETHER, min(radius, 255), np.uint8)
    out = places, rows, distances
    step = max(1, NEARBY // (tiles.shape[1] * TILE))
    for near in range(0, tiles.shape[0], step):
        far = min(tiles.shape[0], near + step)
        for group in range(lookups.shape[0]):
            q = group * TOGETHER
            for t in range(near, far):
                hit = _sum_tile(tiles, t, lookups, group, limits, sums)
                for j in range(min(TOGETHER, queries.shape[0] - q)):
                    if hit & (1 << j):
                        _place(queries, q + j, words, t * TILE, sums[j], radius, allowed, out)


@njit(inline="always")
def _place(queries, q, words, start, sums, radius, allowed, out):
    """Count or write the items of one tile that are near enough to query q."""
    places, rows, distances = out
    for v in range(VECTORS):
        lanes = _lanes_within(sums, v, np.uint8(min(radius, 255)))
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
def _sum_tile(
    typing_context: Any, tiles: Any, t: Any, lookups: Any, group: Any, limits: Any, sums: Any
) -> Any:
    """Fill ``sums`` with distances of tile t; bit j is set if query j has one within its limit."""
    signature = types.int64(tiles, types.intp, lookups, types.intp, limits, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        n_bytes = builder.extract_value(array.shape, 1)
        tile, tables, limit, out = pointers(context, builder, signature, arguments, (0, 2, 4, 5))
        tile = past(builder, tile, builder.mul(arguments[1], n_bytes), TILE)
        tables = past(builder, tables, builder.mul(arguments[3], n_bytes), 2 * TOGETHER * LANES)
        hit = ir.Constant(INT64, 0)
        for j, vectors in enumerate(_distances(builder, tile, tables, n_bytes)):
            least = vectors[0]
            for v, vector in enumerate(vectors):
                store(builder, vector, at(builder, out, j * TILE + v * LANES))
                least = builder.select(builder.icmp_unsigned("<", least, vector), least, vector)
            most = broadcast(builder, load(builder, at(builder, limit, j), BYTE))
            lanes = _lanes(builder, least, most)
            some = builder.icmp_unsigned("!=", lanes, ir.Constant(INT32, 0))
            flag = builder.shl(builder.zext(some, INT64), ir.Constant(INT64, j))
            hit = builder.or_(hit, flag)
        return hit

    return signature, generate


@intrinsic
def _lanes_within(typing_context: Any, sums: Any, v: Any, limit: Any) -> Any:
    """The lanes of register v of the sums that hold at most the limit, as bits of a number."""
    signature = types.uint32(sums, types.intp, types.uint8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (values,) = pointers(context, builder, signature, arguments, (0,))
        vector = load(builder, past(builder, values, arguments[1], LANES))
        return _lanes(builder, vector, broadcast(builder, arguments[2]))

    return signature, generate


def _distances(builder: Any, tile: Any, lookups: Any, n_bytes: Any) -> Sums:
    """Sums over a loop of bytes: their low nibbles are looked up, then their high ones."""

    def body(b: Any, sums: Sums) -> None:
        items = past(builder, tile, b, TILE)
        rows = past(builder, lookups, b, 2 * TOGETHER * LANES)
        for half in range(2):
            places = (at(builder, rows, (half * TOGETHER + j) * LANES) for j in range(TOGETHER))
            tables = [load(builder, place) for place in places]
            for v in range(VECTORS):
                packed = load(builder, at(builder, items, v * LANES))
                low, high = builder.and_(packed, constant(15)), builder.lshr(packed, constant(4))
                add_distances(builder, sums, v, tables, high if half else low)

    zeros = [[constant(0)] * VECTORS for _ in range(TOGETHER)]
    return loop(builder, (ir.Constant(INT64, 0), n_bytes), 1, zeros, body)


def _lanes(builder: Any, vector: Any, limit: Any) -> Any:
    """Bits of the lanes that hold at most the limit."""
    return builder.bitcast(builder.icmp_unsigned("<=", vector, limit), INT32)
