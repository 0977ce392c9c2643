"""Scans for near items, and the records of what they found so far.

The rows that are searched come in two arrays: ``words``, and ``late`` for rows that were added
since.  ``blocks[b, w, i]`` is word w of row i of block b, for the whole blocks of ``words``.  The
least distance of a block is found in vector registers::

    a query × 128 rows ──→ least distance ──→ within the bound? ── no ──→ next block
                                                    │ yes, rarely
                                                    ↓
                                    the near rows of it: allowed?, take

Rows of ``words`` that are in no block are copied to one, filled up with zeros.  Those of ``late``
are compared one by one.

The caller guarantees: arrays are C-contiguous, k is at least 1 and at most the number of allowed
rows, and ``allowed`` is a mask over all rows, or empty if all rows are allowed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bittern.kernels.bits import declare, distance_between, distance_to_row, lowest_bit
from bittern.kernels.registers import BYTE, INT64, Sums, at, broadcast, load, loop, past, pointers

BLOCK = 128  # rows whose distances are held in registers
HALF = BLOCK // 2  # as many as a word has bits
NEARBY = 1 << 17  # bytes of blocks at a time, which stay in the cache while all queries pass
WORDS = 8  # words in a register of 512 bits; LLVM divides it where registers are shorter
REGISTER = ir.VectorType(INT64, WORDS)
ROOM = 256  # entries of a list at first
ONE = np.uint64(1)


class NearestSoFar(NamedTuple):
    """The k nearest so far of several queries, during a scan in row order.

    An item is wanted if it is nearer than ``bounds[q]``: k items at most that far are known, and
    later ones at exactly that distance come after them.  The bound shrinks as items are taken, and
    soon one comparison rejects nearly all items.  There are few distances, so ``counts[q, d]``, the
    items taken at distance d, is enough to move the bound and to sort by counting.
    """

    bounds: NDArray[np.int64]  # (n_queries,)
    nearer: NDArray[np.int64]  # (n_queries,) items taken that are nearer than the bound
    sizes: NDArray[np.int64]  # (n_queries,) entries of the two lists below
    counts: NDArray[np.int64]  # (n_queries, n_distances)
    rows: NDArray[np.int64]  # (n_queries, room)
    distances: NDArray[np.int32]  # (n_queries, room)


class WithinSoFar(NamedTuple):
    """The items within a radius so far of several queries, during a scan in row order.

    ``cells[i]`` is ``q * n_distances + d`` of entry i, for query q and distance d.  Entries are
    sorted at the end, by counting.
    """

    counts: NDArray[np.int64]  # (n_queries, n_distances)
    cells: NDArray[np.int32]  # (room,)
    rows: NDArray[np.int64]  # (room,)


def blocks_of(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """``(n_blocks, n_words, BLOCK)``: the whole blocks; not a copy if a code has one word."""
    n_blocks, n_words = len(words) // BLOCK, words.shape[1]
    whole = words[: n_blocks * BLOCK].reshape(n_blocks, BLOCK, n_words)
    return np.ascontiguousarray(whole.transpose(0, 2, 1)).reshape(n_blocks, n_words, BLOCK)


@njit(cache=True, nogil=True)
def find_nearest(queries, words, late, blocks, allowed, k, rows, distances):
    """Fill ``rows[q]`` and ``distances[q]`` with the k nearest, by distance, then row."""
    nearest = nothing_yet(queries, k, words.shape[0] + late.shape[0])
    step = max(1, NEARBY // (8 * blocks.shape[1] * BLOCK))
    for first in range(0, blocks.shape[0], step):
        for q in range(queries.shape[0]):
            for b in range(first, min(blocks.shape[0], first + step)):
                if _least_distance(queries, q, blocks, b) < nearest.bounds[q]:
                    for half in range(2):
                        near = _rows_within(queries, q, blocks, b, half, nearest.bounds[q] - 1)
                        row = b * BLOCK + half * HALF
                        offer_near(queries, q, words, row, near, allowed, k, nearest)
    first = blocks.shape[0] * BLOCK
    rest = _rest_of(words, first)
    for q in range(queries.shape[0]):
        for i in range(2 * rest.shape[0]):
            row = first + i * HALF
            near = _rows_within(queries, q, rest, i // 2, i % 2, nearest.bounds[q] - 1)
            near = _lowest_bits(near, words.shape[0] - row)
            offer_near(queries, q, words, row, near, allowed, k, nearest)
    offer_rest(queries, words, late, words.shape[0], allowed, k, nearest)
    put_in_order(nearest, k, rows, distances)


@njit(cache=True, nogil=True)
def find_within(queries, words, late, blocks, allowed, radius):
    """Offsets, rows and distances of the items within the radius, query by query."""
    found, n = none_yet(queries, radius), 0
    step = max(1, NEARBY // (8 * blocks.shape[1] * BLOCK))
    for first in range(0, blocks.shape[0], step):
        for q in range(queries.shape[0]):
            for b in range(first, min(blocks.shape[0], first + step)):
                if _least_distance(queries, q, blocks, b) <= radius:
                    found = with_room(found, n, BLOCK)
                    for half in range(2):
                        near = _rows_within(queries, q, blocks, b, half, radius)
                        row = b * BLOCK + half * HALF
                        n = collect_near(queries, q, words, row, near, allowed, found, n)
    first = blocks.shape[0] * BLOCK
    rest = _rest_of(words, first)
    for q in range(queries.shape[0]):
        for i in range(2 * rest.shape[0]):
            row = first + i * HALF
            near = _rows_within(queries, q, rest, i // 2, i % 2, radius)
            near = _lowest_bits(near, words.shape[0] - row)
            if near:
                found = with_room(found, n, HALF)
                n = collect_near(queries, q, words, row, near, allowed, found, n)
    return sorted_with_rest(queries, words, late, words.shape[0], allowed, found, n)


@njit(cache=True, nogil=True)
def _rest_of(words, first):
    """The rows from ``first`` on in blocks; the last one is filled up with zeros."""
    n, n_words = words.shape[0] - first, words.shape[1]
    blocks = np.zeros((-(-n // BLOCK), n_words, BLOCK), np.uint64)
    for i in range(n):
        for w in range(n_words):
            blocks[i // BLOCK, w, i % BLOCK] = words[first + i, w]
    return blocks


@njit(inline="always")
def _lowest_bits(bits, n):
    """The lowest n of 64 bits; those beyond are cleared."""
    if n >= HALF:
        return bits
    return bits & ((ONE << np.uint64(n)) - ONE) if n > 0 else ONE - ONE


@njit(cache=True, nogil=True)
def nothing_yet(queries, k, n):
    """The record at the start of a search for the k nearest of n rows."""
    n_queries, n_distances, room = queries.shape[0], 64 * queries.shape[1] + 1, min(2 * k + 64, n)
    return NearestSoFar(
        np.full(n_queries, n_distances),
        np.zeros(n_queries, np.int64),
        np.zeros(n_queries, np.int64),
        np.zeros((n_queries, n_distances), np.int64),
        np.empty((n_queries, room), np.int64),
        np.empty((n_queries, room), np.int32),
    )


@njit(cache=True, nogil=True)
def none_yet(queries, radius):
    """The record at the start of a search within a radius."""
    counts = np.zeros((queries.shape[0], radius + 1), np.int64)
    return WithinSoFar(counts, np.empty(ROOM, np.int32), np.empty(ROOM, np.int64))


@njit(inline="always")
def offer_near(queries, q, words, first, near, allowed, k, nearest):
    """Offer row ``first + i`` for every bit i of ``near``."""
    while near:
        row = first + np.int64(lowest_bit(near))
        near &= near - ONE  # clears the lowest bit
        distance = distance_between(queries, q, words, row)
        if distance < nearest.bounds[q] and (allowed.shape[0] == 0 or allowed[row]):
            take(nearest, q, row, distance, k)


@njit(cache=True, nogil=True)
def offer_rest(queries, words, late, first, allowed, k, nearest):
    """Take the near ones of the rows that are in no block, which are those from ``first`` on."""
    for q in range(queries.shape[0]):
        for row in range(first, words.shape[0] + late.shape[0]):
            distance = distance_to_row(queries, q, words, late, row)
            if distance < nearest.bounds[q] and (allowed.shape[0] == 0 or allowed[row]):
                take(nearest, q, row, distance, k)


@njit(inline="always")
def take(nearest, q, row, distance, k):
    """Take an item that is nearer than the bound; its row comes after all rows taken so far."""
    if nearest.sizes[q] == nearest.rows.shape[1]:
        trim(nearest, q, k)
    size = nearest.sizes[q]
    nearest.rows[q, size], nearest.distances[q, size] = row, distance
    nearest.sizes[q] = size + 1
    nearest.counts[q, distance] += 1
    nearer, bound = nearest.nearer[q] + 1, nearest.bounds[q]
    while nearer >= k:
        bound -= 1
        nearer -= nearest.counts[q, bound]
    nearest.nearer[q], nearest.bounds[q] = nearer, bound


@njit(cache=True, nogil=True)
def trim(nearest, q, k):
    """Drop the items beyond the bound, and of those at the bound keep the first, up to k in all."""
    rows, distances, bound = nearest.rows[q], nearest.distances[q], nearest.bounds[q]
    spare, kept = k - nearest.nearer[q], 0
    for i in range(nearest.sizes[q]):
        if distances[i] < bound or (distances[i] == bound and spare > 0):
            spare -= distances[i] == bound
            rows[kept], distances[kept] = rows[i], distances[i]
            kept += 1
    nearest.sizes[q] = kept


@njit(cache=True, nogil=True)
def put_in_order(nearest, k, rows, distances):
    """Fill ``rows[q]`` and ``distances[q]`` with the k nearest, by distance, then row."""
    for q in range(rows.shape[0]):
        trim(nearest, q, k)
        counts = nearest.counts[q]
        counts[:] = 0
        for i in range(nearest.sizes[q]):
            counts[nearest.distances[q, i]] += 1
        place = 0
        for d in range(counts.shape[0]):
            counts[d], place = place, place + counts[d]
        for i in range(nearest.sizes[q]):
            d = nearest.distances[q, i]
            rows[q, counts[d]], distances[q, counts[d]] = nearest.rows[q, i], d
            counts[d] += 1


@njit(cache=True, nogil=True)
def with_room(found, n, more):
    """The record with room for more entries after the first n; lists at least double."""
    if n + more <= found.rows.shape[0]:
        return found
    size = max(n + more, 2 * found.rows.shape[0])
    cells, rows = np.empty(size, np.int32), np.empty(size, np.int64)
    for i in range(n):
        cells[i], rows[i] = found.cells[i], found.rows[i]
    return WithinSoFar(found.counts, cells, rows)


@njit(inline="always")
def collect_near(queries, q, words, first, near, allowed, found, n):
    """Append row ``first + i`` for every bit i of ``near``; return the number of entries."""
    while near:
        row = first + np.int64(lowest_bit(near))
        near &= near - ONE
        if allowed.shape[0] == 0 or allowed[row]:
            n = _append(found, n, q, row, distance_between(queries, q, words, row))
    return n


@njit(cache=True, nogil=True)
def sorted_with_rest(queries, words, late, first, allowed, found, n):
    """Collect from the rows from ``first`` on, and sort all entries by query and distance."""
    n_rows, n_distances = words.shape[0] + late.shape[0], found.counts.shape[1]
    for q in range(queries.shape[0]):
        found = with_room(found, n, n_rows - first)
        for row in range(first, n_rows):
            distance = distance_to_row(queries, q, words, late, row)
            if distance < n_distances and (allowed.shape[0] == 0 or allowed[row]):
                n = _append(found, n, q, row, distance)
    return _sorted(found, n)


@njit(cache=True, nogil=True)
def _sorted(found, n):
    """Offsets, rows and distances of the entries, by query, distance and row."""
    places, n_distances, place = found.counts, found.counts.shape[1], 0
    offsets = np.zeros(places.shape[0] + 1, np.int64)
    for q in range(places.shape[0]):
        for d in range(n_distances):
            places[q, d], place = place, place + places[q, d]
        offsets[q + 1] = place
    rows, distances = np.empty(n, np.int64), np.empty(n, np.int32)
    for i in range(n):
        q, d = found.cells[i] // n_distances, found.cells[i] % n_distances
        place = places[q, d]
        rows[place], distances[place] = found.rows[i], d
        places[q, d] = place + 1
    return offsets, rows, distances


@njit(inline="always")
def _append(found, n, q, row, distance):
    """Append an item if it is within the radius; return the number of entries."""
    n_distances = found.counts.shape[1]
    if distance < n_distances:
        found.counts[q, distance] += 1
        found.cells[n], found.rows[n] = q * n_distances + distance, row
        n += 1
    return n


@intrinsic
def _least_distance(typing_context: Any, queries: Any, q: Any, blocks: Any, b: Any) -> Any:
    """The least distance of the rows of block b from query q."""
    signature = types.int64(queries, types.intp, blocks, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        least = _distances(context, builder, signature, arguments, BLOCK)
        while len(least) > 1:
            pairs = zip(least[::2], least[1::2], strict=True)
            least = [builder.select(builder.icmp_unsigned("<", x, y), x, y) for x, y in pairs]
        smallest = declare(builder, f"llvm.vector.reduce.umin.v{WORDS}i64", INT64, [REGISTER])
        return builder.call(smallest, least)

    return signature, generate


@intrinsic
def _rows_within(
    typing_context: Any, queries: Any, q: Any, blocks: Any, b: Any, half: Any, limit: Any
) -> Any:
    """The rows of one half of block b that are at most ``limit`` from query q, as bits."""
    signature = types.uint64(queries, types.intp, blocks, types.intp, types.intp, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        most = broadcast(builder, arguments[5], REGISTER)
        rows = ir.Constant(INT64, 0)
        distances = _distances(context, builder, signature, arguments, BLOCK // 2)
        for v, distance in enumerate(distances):
            near = builder.bitcast(builder.icmp_signed("<=", distance, most), BYTE)
            bits = builder.shl(builder.zext(near, INT64), ir.Constant(INT64, WORDS * v))
            rows = builder.or_(rows, bits)
        return rows

    return signature, generate


def _distances(context: Any, builder: Any, signature: Any, arguments: Any, n_rows: int) -> Any:
    """Distances of the rows of a block, or of the half that the fifth argument says.

    The first arguments are queries, the number of one, blocks, and the number of one.
    """
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    n_words = builder.extract_value(array.shape, 1)
    query, block = pointers(context, builder, signature, arguments, (0, 2))
    query = past(builder, query, builder.mul(arguments[1], n_words), 8)
    block = past(builder, block, builder.mul(arguments[3], n_words), 8 * BLOCK)
    if n_rows < BLOCK:
        block = past(builder, block, arguments[4], 8 * n_rows)
    popcount = declare(builder, f"llvm.ctpop.v{WORDS}i64", REGISTER, [REGISTER])

    def body(w: Any, sums: Sums) -> None:
        word = broadcast(builder, load(builder, past(builder, query, w, 8), INT64), REGISTER)
        rows = past(builder, block, w, 8 * BLOCK)
        for v in range(n_rows // WORDS):
            items = load(builder, at(builder, rows, 8 * WORDS * v), REGISTER)
            apart = builder.call(popcount, [builder.xor(items, word)])
            sums[0][v] = builder.add(sums[0][v], apart)

    zeros = [[ir.Constant(REGISTER, [0] * WORDS)] * (n_rows // WORDS)]
    (distances,) = loop(builder, (ir.Constant(INT64, 0), n_words), 1, zeros, body)
    return distances
