"""Scans for near items with AVX2: a tile of 128 items and three queries at a time.

``tiles[t, b, i]`` is byte b of item i of tile t, two nibbles to look up as
:mod:`bittern.kernels.registers` explains.  Sums stop at 255, so they only show which items *may* be
near enough; for these few, the exact distance is computed::

    three queries × 128 items ──→ sums ──→ is any within its limit? ── no ──→ next tile
                                                   │ yes, rarely
                                                   ↓
                                  those rows: exact distance, allowed?, take

Arguments are those of :mod:`bittern.kernels.scan`, with tiles instead of blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

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
from bittern.kernels.scan import (
    NEARBY,
    collect_near,
    none_yet,
    nothing_yet,
    offer_near,
    offer_rest,
    put_in_order,
    sorted_with_rest,
    with_room,
)

TOGETHER = 3  # queries: their sums take four registers each, which fills the registers
MOST_WORDS = 4  # with longer codes, too many sums would stop at 255


def tiles_of(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``(n_tiles, n_bytes, TILE)``: the whole tiles."""
    n_tiles, n_bytes = len(packed) // TILE, packed.shape[1]
    whole = packed[: n_tiles * TILE].reshape(n_tiles, TILE, n_bytes)
    return np.ascontiguousarray(whole.transpose(0, 2, 1))


@njit(cache=True, nogil=True)
def find_nearest(queries, words, late, tiles, allowed, k, rows, distances):
    """Fill ``rows[q]`` and ``distances[q]`` with the k nearest, by distance, then row."""
    nearest = nothing_yet(queries, k, words.shape[0] + late.shape[0])
    lookups = _lookups_of(queries, tiles.shape[1])
    sums = np.empty((TOGETHER, TILE), np.uint8)
    limits = np.zeros(TOGETHER, np.uint8)
    step = max(1, NEARBY // (tiles.shape[1] * TILE))
    for first in range(0, tiles.shape[0], step):
        last = min(tiles.shape[0], first + step)
        for group in range(lookups.shape[0]):
            q = group * TOGETHER
            width = min(TOGETHER, queries.shape[0] - q)
            for j in range(width):
                limits[j] = _limit(nearest.bounds[q + j] - 1)
            for t in range(first, last):
                hit = _sum_tile(tiles, t, lookups, group, limits, sums)
                for j in range(width if hit else 0):
                    if hit & (1 << j) and nearest.bounds[q + j] > 0:
                        for half in range(2):
                            near = _rows_within(sums[j], half, limits[j])
                            row = t * TILE + half * (TILE // 2)
                            offer_near(queries, q + j, words, row, near, allowed, k, nearest)
                        limits[j] = _limit(nearest.bounds[q + j] - 1)
    offer_rest(queries, words, late, tiles.shape[0] * TILE, allowed, k, nearest)
    put_in_order(nearest, k, rows, distances)


@njit(cache=True, nogil=True)
def find_within(queries, words, late, tiles, allowed, radius):
    """Offsets, rows and distances of the items within the radius, query by query."""
    found, n = none_yet(queries, radius), 0
    lookups = _lookups_of(queries, tiles.shape[1])
    sums = np.empty((TOGETHER, TILE), np.uint8)
    limits = np.full(TOGETHER, _limit(radius), np.uint8)
    step = max(1, NEARBY // (tiles.shape[1] * TILE))
    for first in range(0, tiles.shape[0], step):
        last = min(tiles.shape[0], first + step)
        for group in range(lookups.shape[0]):
            q = group * TOGETHER
            width = min(TOGETHER, queries.shape[0] - q)
            for t in range(first, last):
                hit = _sum_tile(tiles, t, lookups, group, limits, sums)
                for j in range(width if hit else 0):
                    if hit & (1 << j):
                        found = with_room(found, n, TILE)
                        for half in range(2):
                            near = _rows_within(sums[j], half, limits[j])
                            row = t * TILE + half * (TILE // 2)
                            n = collect_near(queries, q + j, words, row, near, allowed, found, n)
    return sorted_with_rest(queries, words, late, tiles.shape[0] * TILE, allowed, found, n)


@njit(cache=True, nogil=True)
def _lookups_of(queries, n_bytes):
    """Look-up tables ``(n_groups, n_bytes, 2, TOGETHER, LANES)``; the last group is padded."""
    n_groups = -(-queries.shape[0] // TOGETHER)
    lookups = np.zeros((n_groups, n_bytes, 2, TOGETHER, LANES), np.uint8)
    for q in range(queries.shape[0]):
        for nibble in range(2 * n_bytes):
            value = (queries[q, nibble // 16] >> np.uint64(nibble % 16 * 4)) & np.uint64(15)
            table = lookups[q // TOGETHER, nibble // 2, nibble % 2, q % TOGETHER]
            for x in range(table.shape[0]):
                table[x] = NIBBLE_DISTANCES[value, x]
    return lookups


@njit(inline="always")
def _limit(distance):
    """The largest sum that may stand for a distance: sums stop at 255."""
    return min(max(distance, 0), 255)


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
def _rows_within(typing_context: Any, sums: Any, half: Any, limit: Any) -> Any:
    """The rows of one half of a tile whose sums are at most the limit, as bits."""
    signature = types.uint64(sums, types.intp, types.uint8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (values,) = pointers(context, builder, signature, arguments, (0,))
        values = past(builder, values, arguments[1], TILE // 2)
        most = broadcast(builder, arguments[2])
        low, high = (
            builder.zext(
                _lanes(builder, load(builder, at(builder, values, v * LANES)), most), INT64
            )
            for v in range(2)
        )
        return builder.or_(low, builder.shl(high, ir.Constant(INT64, LANES)))

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
