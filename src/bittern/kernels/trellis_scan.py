"""The nearest trellis codes of many queries: rough distances by whole numbers, then exact ones.

A level is rounded to a byte, and so is the weight of a component in a query.  Their products are
summed by the instruction that multiplies 64 bytes and adds them up in 16 lanes, one lane for each
of 16 queries::

    item      its components 4 g … 4 g + 3, as four bytes, in every lane
    weights   of the same components in queries 0 | 1 | … | 15
    sums      += the four products of each lane, for all g

How far a rounded product can be from the exact one is known for each query.  So an item is looked
at again only if its exact distance may be among the k least, and the search stays exact.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bittern.kernels.bits import declare, lowest_bit
from bittern.kernels.registers import (
    BYTE,
    INT32,
    INT64,
    at,
    broadcast,
    has_avx2,
    load,
    loop,
    past,
    pointers,
    processor_has,
    store,
)
from bittern.kernels.trellis import STATES
from bittern.kernels.trellis_scores import (
    LENGTH,
    ROUNDING,
    SCALE,
    Asked,
    Held,
    Reading,
    distance_of,
    insert,
)

LANES = 16  # queries
GROUP = 4  # components, one byte each, in a lane
ROWS = 8  # items whose sums are in registers at the same time
TILE = 64  # items decoded at a time
MIDDLE, MOST = 128, 127  # the byte of level 0, and how far others are from it
TOGETHER = {1: 4, 2: 3, 3: 2, 4: 2}  # components that one look-up decodes, by their bits

WORD = 8  # bytes
END, SHIFT, MASK, TABLE, COMPONENT = (np.uint64(i) for i in range(5))  # of a look-up
BYTE_MASK = np.uint32(255)
SUMS = ir.VectorType(INT32, LANES)
FLOATS = ir.VectorType(ir.FloatType(), LANES)
BYTES = ir.VectorType(BYTE, LANES * GROUP)


def multiplies_bytes() -> bool:
    """Whether this processor multiplies and adds bytes in registers of 64."""
    return has_avx2() and processor_has("avx512vnni")


class Rounded(NamedTuple):
    """Queries in whole numbers, 16 in a block; the lanes after the last query are empty.

    The distance of query q and item i is at least ``base[q] + to_centres[q, centre of i] + least *
    squared length of i + scale of i * (steps[q] * s - slack[q])``, where s is the sum of the
    products of their bytes.
    """

    weights: NDArray[np.int8]  # (n_blocks, n_groups * 16 * 4)
    steps: NDArray[np.float32]  # (n_blocks, 16)
    slack: NDArray[np.float32]  # (n_blocks, 16)
    base: NDArray[np.float32]  # (n_blocks, 16)
    to_centres: NDArray[np.float32]  # (n_blocks, g, 16)
    least: np.float32


def rounded(asked: Asked, n_bits: NDArray[np.int64], levels: NDArray[np.float32]) -> Rounded:
    """Round the weights of queries to bytes."""
    of_lengths, of_products = asked.by.astype(np.float64)
    least = of_lengths - ROUNDING
    exact = of_products * asked.weights[:, ::-1] * _level_steps(levels)[n_bits]
    step = np.maximum(np.abs(exact).max(axis=1, initial=0.0), np.finfo(np.float32).tiny) / MOST
    whole = np.rint(exact / step[:, None])
    lost = np.abs(exact - whole * step[:, None]) * MOST + np.abs(exact) / 2
    slack = MIDDLE * step * whole.sum(axis=1) + lost.sum(axis=1)
    n, k = exact.shape
    weights = np.zeros((-(-n // LANES) * LANES, -(-k // GROUP) * GROUP), np.int8)
    weights[:n, :k] = whole
    blocks = weights.reshape(-1, LANES, weights.shape[1] // GROUP, GROUP).swapaxes(1, 2)
    return Rounded(
        np.ascontiguousarray(blocks).reshape(len(blocks), -1),
        _in_lanes(step),
        _in_lanes(slack),
        _in_lanes(least * asked.lengths),
        np.ascontiguousarray(_in_lanes(of_products * asked.to_centres).swapaxes(1, 2)),
        np.float32(least),
    )


def _in_lanes(rows: NDArray[Any]) -> NDArray[np.float32]:
    out = np.zeros((-(-len(rows) // LANES) * LANES, *rows.shape[1:]), np.float32)
    out[: len(rows)] = rows
    return out.reshape(-1, LANES, *rows.shape[1:])


def _level_steps(levels: NDArray[np.float32]) -> NDArray[np.float64]:
    """What one step of a level's byte is worth, for each number of bits."""
    return np.abs(levels).max(axis=1).astype(np.float64) / MOST


class Lookups(NamedTuple):
    """How the bytes of all components are read off a code, several components at a time.

    A look-up takes the bits of the code before byte END without the last SHIFT, those that MASK
    lets through; that many entries after TABLE are the bytes of the components from COMPONENT on.
    """

    places: NDArray[np.uint64]  # (n, 5)
    bytes: NDArray[np.uint32]


def lookups_of(n_bits: NDArray[np.int64], levels: NDArray[np.float32]) -> Lookups:
    """The look-ups of components with these bits."""
    tables, starts = _joint_levels(levels.tobytes(), len(levels))
    ends, found = np.cumsum(n_bits), []
    first = 0
    while first < len(n_bits):
        b, last = int(n_bits[first]), first + 1
        while last < len(n_bits) and n_bits[last] == b and last - first < TOGETHER.get(b, 1):
            last += 1
        place = int(ends[last - 1])
        end = -(-place // 8)
        mask = (STATES << (b * (last - first - 1))) - 1
        found.append((end, 8 * end - place, mask, starts[b, last - first], first))
        first = last
    return Lookups(np.array(found, np.uint64).reshape(-1, 5), tables)


@cache
def _joint_levels(levels: bytes, n: int) -> tuple[NDArray[np.uint32], dict[tuple[int, int], int]]:
    """For each number of bits and of components: their bytes, the first one being the lowest."""
    every = np.frombuffer(levels, np.float32).reshape(n, STATES)
    steps = _level_steps(every)
    tables, starts, size = [], {}, 0
    for b in range(1, n):
        of_states = (np.rint(every[b] / steps[b]) + MIDDLE).astype(np.uint32)
        for together in range(1, TOGETHER.get(b, 1) + 1):
            window = np.arange(STATES << (b * (together - 1)))
            table = np.zeros(len(window), np.uint32)
            for j in range(together):
                states = (window >> (b * (together - 1 - j))) & (STATES - 1)
                table |= of_states[states] << np.uint32(8 * j)
            starts[b, together] = size
            tables.append(table)
            size += len(table)
    return np.concatenate(tables), starts


@numba.njit(cache=True, nogil=True)
def nearest_of_many(
    asked: Asked,
    whole: Rounded,
    held: Held,
    first: int,
    last: int,
    allowed: NDArray[np.bool_],
    reading: Reading,
    lookups: Lookups,
    nearest: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Fill ``nearest`` and ``rows``, ``(q, k)``, as ``nearest_rows`` does for one query."""
    codes, numbers = held
    n_blocks, n_groups = len(whole.weights), whole.weights.shape[1] // (LANES * GROUP)
    limits = np.full((n_blocks, LANES), -np.inf, np.float32)
    limits.reshape(-1)[: len(nearest)] = nearest[:, -1]
    values = np.empty((TILE, (n_groups + 1) * GROUP), np.uint8)
    padded = np.zeros(WORD + codes.shape[1], np.uint8)
    sums = np.empty((ROWS, LANES), np.int32)
    skip = int(asked.to_centres.shape[1] > 1)
    for start in range(first, last, TILE):
        n = min(TILE, last - start)
        _decode(codes[start : start + n, skip:], lookups, padded, values)
        for block in range(n_blocks):
            for top in range(0, n, ROWS):
                add_up_products(values, top, whole.weights[block], n_groups, sums)
                for i in range(min(ROWS, n - top)):
                    row = start + top + i
                    centre = whole.to_centres[block, codes[row, 0] if skip else 0]
                    near = lanes_below(
                        sums[i],
                        whole.steps[block],
                        whole.slack[block],
                        numbers[row, SCALE],
                        centre,
                        whole.base[block],
                        whole.least * numbers[row, LENGTH],
                        limits[block],
                    )
                    if near and (len(allowed) == 0 or allowed[row]):
                        _look_again(near, block, row, asked, held, reading, limits, nearest, rows)


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _look_again(
    near: np.uint64,
    block: int,
    row: int,
    asked: Asked,
    held: Held,
    reading: Reading,
    limits: NDArray[np.float32],
    nearest: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None:
    """Insert a row into the nearest of some lanes, the bits of ``near``, by its exact distances."""
    while near:
        lane = lowest_bit(near)
        near = near & (near - np.uint64(1))
        q = block * LANES + np.int64(lane)
        exact = distance_of(asked, q, held, row, reading)
        insert(exact, row, nearest[q], rows[q])
        limits[block, lane] = nearest[q, -1]


@numba.njit(cache=True, nogil=True)
def _decode(
    codes: NDArray[np.uint8],
    lookups: Lookups,
    padded: NDArray[np.uint8],
    values: NDArray[np.uint8],
) -> None:
    """The bytes of the components of each code; ``padded`` begins with a word of zeros."""
    places, table = lookups
    for i in range(len(codes)):
        for byte in range(codes.shape[1]):
            padded[WORD + byte] = codes[i, byte]
        for number in range(len(places)):
            n = np.uint64(number)
            end, to = places[n, END], places[n, COMPONENT]
            word = np.uint64(0)
            for byte in range(WORD):  # of known length: one load
                word |= np.uint64(padded[end + np.uint64(byte)]) << np.uint64(56 - 8 * byte)
            found = table[places[n, TABLE] + ((word >> places[n, SHIFT]) & places[n, MASK])]
            for j in range(GROUP):  # those beyond the look-up's own are written again by the next
                values[np.uint64(i), to + np.uint64(j)] = (found >> np.uint32(8 * j)) & BYTE_MASK


@intrinsic
def add_up_products(
    typing_context: Any, values: Any, row: Any, weights: Any, n_groups: Any, sums: Any
) -> Any:
    """Fill ``sums``, ``(8, 16)``: products of eight rows of bytes with a block of queries."""
    signature = types.void(values, types.int64, weights, types.int64, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, by, to = pointers(context, builder, signature, arguments, (0, 2, 4))
        shape = context.make_array(signature.args[0])(context, builder, arguments[0]).shape
        width = builder.extract_value(shape, 1)
        multiply = declare(builder, "llvm.x86.avx512.vpdpbusd.512", SUMS, [SUMS, BYTES, BYTES])
        numbers = [builder.add(arguments[1], ir.Constant(INT64, i)) for i in range(ROWS)]
        own = [builder.gep(source, [builder.mul(width, number)]) for number in numbers]

        def body(g: Any, now: Any) -> None:
            of_queries = load(builder, past(builder, by, g, LANES * GROUP), BYTES)
            for i in range(ROWS):
                four = load(builder, past(builder, own[i], g, GROUP), INT32)
                everywhere = builder.bitcast(broadcast(builder, four, SUMS), BYTES)
                now[0][i] = builder.call(multiply, [now[0][i], everywhere, of_queries])

        nothing = ir.Constant(SUMS, [0] * LANES)
        found = loop(builder, (ir.Constant(INT64, 0), arguments[3]), 1, [[nothing] * ROWS], body)
        for i in range(ROWS):
            store(builder, found[0][i], at(builder, to, i * LANES * 4))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def lanes_below(
    typing_context: Any,
    sums: Any,
    steps: Any,
    slack: Any,
    scale: Any,
    centre: Any,
    base: Any,
    more: Any,
    limits: Any,
) -> Any:
    """The lanes where ``base + more + centre + scale * (steps * sums - slack)`` is below a limit.

    Lane l is bit l of the number.
    """
    number = types.float32
    signature = types.uint64(sums, steps, slack, number, centre, base, number, limits)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = pointers(context, builder, signature, arguments, (0, 1, 2, 4, 5, 7))
        whole, *others = (
            load(builder, place, kind)
            for place, kind in zip(places, (SUMS, *[FLOATS] * 5), strict=True)
        )
        by, less, to_centre, of_query, limit = others
        fused = {"flags": ("contract",)}
        product = builder.fmul(builder.sitofp(whole, FLOATS), by, **fused)
        product = builder.fsub(product, less, **fused)
        product = builder.fmul(product, broadcast(builder, arguments[3], FLOATS), **fused)
        rough = builder.fadd(builder.fadd(product, to_centre, **fused), of_query)
        rough = builder.fadd(rough, broadcast(builder, arguments[6], FLOATS))
        below = builder.fcmp_ordered("<", rough, limit)
        return builder.zext(builder.bitcast(below, ir.IntType(LANES)), INT64)

    return signature, generate
