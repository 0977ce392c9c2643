"""Multi-index hashing: codes in buckets by each of several segments of their bits.

An item at distance at most ``sum(r_j + 1) - 1`` differs from the query by at most ``r_j`` bits in
segment j for at least one j: else it would differ by ``r_j + 1`` or more in each.  So looking up,
in every segment, the keys within ``r_j`` of the query's finds all items that near.  A *shell* is
the keys of one segment at one distance; each shell that is looked up makes the distance up to which
all items are known grow by one, whichever segment it is in: the cheapest is next.

An item is met again in other segments.  It is taken only where it is met first, which its own bits
tell: none of the other segments has it within the radius looked up so far.

Guaranteed by the caller: arrays are those of ``bittern.index.multi``, rows fit 32 bits, and
``allowed`` is a mask over all rows or empty where all are allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.bits import distance_between, popcount, prefetch

# Costs, in nanoseconds of the machine they were measured on; only their ratios matter.
LOOKUP = 28.0  # a key whose bucket is found and begun
CANDIDATE = 2.1  # a code beside the one before
LONG_CANDIDATE = 7.0  # the same of several words
FAR_CANDIDATE = 21.0  # a code at any place
TAKE = 60.0  # one that is among the nearest so far
TRIAL = 1 / 16  # of the scan's cost, spent before it is told whether the whole is worth it
LINE, LINES = 8, 12  # words in a line of the cache, and lines of one bucket asked for
AHEAD = 8  # keys and buckets that are asked for before they are needed
MOST_WITHIN = 1 << 16  # items of one query; a scan finds more
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
ROW_BITS = np.int64(32)  # of a key (distance, row) by which found items are put in order
ROW = np.int64((1 << 32) - 1)
EVERY_KEY = np.iinfo(np.int64).max
SIZE, HELD, BOUND, LIMIT, TAKEN = range(5)  # of ``state``, see _take


class Buckets(NamedTuple):
    """The items of each segment in the order of their keys."""

    lows: NDArray[np.int64]  # (m,) first bit of each segment
    widths: NDArray[np.int64]  # (m,) its bits, at most 32
    bases: NDArray[np.int64]  # (m,) where its part of ``offsets`` begins
    offsets: NDArray[np.uint32]  # of key x of segment j: offsets[bases[j] + x] and the next
    rows: NDArray[np.uint32]  # (m, n)
    codes: NDArray[np.uint64]  # (m, n, n_words) codes of ``rows``, or (1, n, n_words) by row
    masks: NDArray[np.uint32]  # differences of keys, by their number of bits
    shells: NDArray[np.int64]  # (m, n_shells + 1) parts of ``masks`` by segment and distance


@njit(cache=True, nogil=True)
def fill(words, low, width, offsets, rows):
    """Put all rows into the buckets of one segment, in order of key, then row."""
    n = words.shape[0]
    for i in range(n):
        offsets[segment_of(words, i, low, width) + 1] += 1
    for x in range(1, offsets.shape[0]):
        offsets[x] += offsets[x - 1]
    places = offsets[:-1].copy()
    for i in range(n):
        key = segment_of(words, i, low, width)
        rows[places[key]] = i
        places[key] += 1


@njit(cache=True, nogil=True)
def lay_codes(words, rows, codes):
    """Fill ``codes[i]`` with the words of ``rows[i]``."""
    for i in range(rows.shape[0]):
        for w in range(words.shape[1]):
            codes[i, w] = words[rows[i], w]


@njit(inline="always")
def segment_of(words, i, low, width):
    """Bits ``low … low + width - 1`` of code i, as a number."""
    w, shift = low // 64, np.uint64(low % 64)
    value = words[i, w] >> shift
    if low % 64 + width > 64:
        value |= words[i, w + 1] << (np.uint64(64) - shift)
    return np.int64(value & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@njit(cache=True, nogil=True)
def find_nearest(
    queries, words, n_built, buckets, allowed, k, scan_cost, rows, distances, is_done, costs
):
    """Fill the k nearest of each query, and ``is_done``, False where a scan is cheaper.

    Rows from ``n_built`` on are in no bucket and are all looked at.  ``costs`` is filled with what
    each query has cost, done or not.
    """
    keys, state = np.empty(4 * k + 256, np.int64), np.empty(5, np.int64)
    counts = np.empty(64 * words.shape[1] + 1, np.int64)
    scratch = _scratch(buckets)
    for q in range(queries.shape[0]):
        _begin(counts, state, counts.shape[0] - 1)
        _look_at_rest(queries, q, words, n_built, allowed, k, keys, counts, state)
        is_done[q], costs[q] = _probe(
            queries, q, buckets, allowed, k, scan_cost, keys, counts, state, scratch
        )
        if is_done[q]:
            _put_in_order(keys, state)
            for i in range(k):
                distances[q, i], rows[q, i] = keys[i] >> ROW_BITS, keys[i] & ROW


@njit(cache=True, nogil=True)
def find_within(
    queries, words, n_built, buckets, allowed, radius, scan_cost, sizes, is_done, costs
):
    """All items within the radius of each query in turn, as keys (distance, row), in order.

    Fills their number a query, ``is_done``, False where a scan is cheaper, and ``costs``.
    """
    keys, state, k = np.empty(MOST_WITHIN, np.int64), np.empty(5, np.int64), np.int64(0)
    counts = np.empty(64 * words.shape[1] + 1, np.int64)
    scratch = _scratch(buckets)
    found, n_found = np.empty(1024, np.int64), 0
    for q in range(queries.shape[0]):
        _begin(counts, state, radius)
        _look_at_rest(queries, q, words, n_built, allowed, k, keys, counts, state)
        is_done[q], costs[q] = _probe(
            queries, q, buckets, allowed, k, scan_cost, keys, counts, state, scratch
        )
        if is_done[q]:
            sizes[q] = _put_in_order(keys, state)
            found = _appended(found, n_found, keys, sizes[q])
            n_found += sizes[q]
    return found[:n_found]


@njit(cache=True, nogil=True)
def _appended(found, n_found, keys, size):
    """The list with so many more keys, in a larger array if it must be."""
    if n_found + size > found.shape[0]:
        larger = np.empty(2 * (n_found + size), np.int64)
        for i in range(n_found):
            larger[i] = found[i]
        found = larger
    for i in range(size):
        found[n_found + i] = keys[i]
    return found


@njit(cache=True, nogil=True)
def _scratch(buckets):
    """Per segment: radius looked up, key of the query, cost of the next shell; and room for one."""
    m, most = buckets.lows.shape[0], 0
    for j in range(m):
        for r in range(buckets.shells.shape[1] - 1):
            most = max(most, buckets.shells[j, r + 1] - buckets.shells[j, r])
    return (
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.float64),
        np.empty((2, m), np.float64),
        np.empty((2, most), np.int64),
        _spans(buckets.lows, buckets.widths),
    )


@njit(cache=True, nogil=True)
def _spans(lows, widths):
    """The bits of each segment in a word; of use where there is only one word."""
    spans = np.zeros(lows.shape[0], np.uint64)
    for j in range(lows.shape[0]):
        for bit in range(lows[j], lows[j] + widths[j]):
            spans[j] |= ONE << np.uint64(bit % 64)
    return spans


@njit(cache=True, nogil=True)
def _begin(counts, state, bound):
    counts[:] = 0
    state[:] = 0
    state[BOUND], state[LIMIT] = bound, EVERY_KEY


@njit(cache=True, nogil=True)
def _look_at_rest(queries, q, words, n_built, allowed, k, keys, counts, state):
    """Take near items that are in no bucket."""
    for row in range(n_built, words.shape[0]):
        distance = distance_between(queries, q, words, row)
        if distance <= state[BOUND] and (allowed.shape[0] == 0 or allowed[row]):
            _take(keys, counts, state, k, distance, row)


@njit(cache=True, nogil=True)
def _probe(queries, q, buckets, allowed, k, scan_cost, keys, counts, state, scratch):
    """Look up shells until all that is asked for is known, or False; and what that has cost."""
    radii, query_keys, costs, trial, ranges, _ = scratch
    each = _cost_of_candidate(queries, buckets)
    for j in range(radii.shape[0]):
        radii[j], costs[j] = -1, LOOKUP
        query_keys[j] = segment_of(queries, q, buckets.lows[j], buckets.widths[j])
    known, spent = -1, 0.0
    while (k > 0 and state[HELD] < k) or state[BOUND] > known:
        j = _cheapest(costs)
        if spent + costs[j] > scan_cost or state[SIZE] > keys.shape[0]:
            return False, spent
        if spent > TRIAL * scan_cost and (k == 0 or state[HELD] >= k):
            for i in range(costs.shape[0]):
                trial[0, i], trial[1, i] = costs[i], radii[i]
            if spent + _cost_of_rest(trial, buckets.widths, state[BOUND] - known) > scan_cost:
                return False, spent
        n_keys = buckets.shells[j, radii[j] + 2] - buckets.shells[j, radii[j] + 1]
        n_ranges, n_items = _find_buckets(buckets, j, radii[j] + 1, query_keys[j], ranges)
        spent += LOOKUP * n_keys + each * n_items
        if spent > scan_cost:
            return False, spent
        before = state[TAKEN]
        _look_through(queries, q, buckets, j, scratch, n_ranges, allowed, k, keys, counts, state)
        spent += TAKE * (state[TAKEN] - before)
        radii[j], known = radii[j] + 1, known + 1
        costs[j] = _cost_of_next(buckets, j, radii[j] + 1, each, n_items / n_keys)
    return state[SIZE] <= keys.shape[0], spent


@njit(cache=True, nogil=True)
def _cost_of_candidate(queries, buckets):
    if buckets.codes.shape[0] < buckets.rows.shape[0]:
        return FAR_CANDIDATE
    return CANDIDATE if queries.shape[1] == 1 else LONG_CANDIDATE


@njit(cache=True, nogil=True)
def _cost_of_next(buckets, j, r, each, density):
    """What a shell will cost, of the number of items in a bucket of the shell before."""
    if r + 1 >= buckets.shells.shape[1] or buckets.shells[j, r] == buckets.shells[j, r + 1]:
        return np.inf
    n_keys = buckets.shells[j, r + 1] - buckets.shells[j, r]
    # Farther from the query, buckets are more like those of everywhere.
    everywhere = buckets.rows.shape[1] / 2.0 ** buckets.widths[j]
    return n_keys * (LOOKUP + each * (density + everywhere) / 2)


@njit(cache=True, nogil=True)
def _cost_of_rest(trial, widths, n_shells):
    """What the next shells cost, each the cheapest, if costs grow as the number of keys does."""
    costs, radii = trial[0], trial[1]
    total = 0.0
    for _ in range(n_shells):
        j = _cheapest(costs)
        total += costs[j]
        radii[j] += 1
        costs[j] *= max(widths[j] - radii[j] - 1, 0.0) / (radii[j] + 2)
        costs[j] = max(costs[j], 1e-9)
    return total


@njit(cache=True, nogil=True)
def _cheapest(costs):
    """The first place of the least cost."""
    best = 0
    for j in range(1, costs.shape[0]):
        if costs[j] < costs[best]:
            best = j
    return best


@njit(cache=True, nogil=True)
def _find_buckets(buckets, j, r, key, ranges):
    """Fill the ranges of items in one shell; give their number and that of the items."""
    offsets, masks, base = buckets.offsets, buckets.masks, buckets.bases[j]
    start, stop = buckets.shells[j, r], buckets.shells[j, r + 1]
    n_ranges, n_items = 0, 0
    for i in range(start, min(stop, start + AHEAD)):
        prefetch(offsets, base + (key ^ np.int64(masks[i])))
    for i in range(start, stop):
        if i + AHEAD < stop:
            prefetch(offsets, base + (key ^ np.int64(masks[i + AHEAD])))
        place = base + (key ^ np.int64(masks[i]))
        first, last = int(offsets[place]), int(offsets[place + 1])
        ranges[0, n_ranges], ranges[1, n_ranges] = first, last
        n_ranges += int(last > first)
        n_items += last - first
    return n_ranges, n_items


@njit(cache=True, nogil=True)
def _look_through(queries, q, buckets, j, scratch, n_ranges, allowed, k, keys, counts, state):
    """Take what is near in the buckets of one shell."""
    radii, ranges, spans = scratch[0], scratch[4], scratch[5]
    if queries.shape[1] == 1 and buckets.codes.shape[0] == buckets.rows.shape[0]:
        query, codes, rows = queries[q, 0], buckets.codes[j].reshape(-1), buckets.rows[j]
        _look_short(
            query, codes, rows, spans, n_ranges, radii, ranges, allowed, k, keys, counts, state
        )
    else:
        _look_long(queries, q, buckets, j, radii, ranges, n_ranges, allowed, k, keys, counts, state)


@njit(cache=True, nogil=True)
def _look_short(
    query, codes, rows, spans, n_ranges, radii, ranges, allowed, k, keys, counts, state
):
    """The same for codes of one word that lie in the order of the buckets."""
    bound = np.uint64(state[BOUND])
    for i in range(min(AHEAD, n_ranges)):
        _ask_for(codes, ranges, i)
    for i in range(n_ranges):
        if i + AHEAD < n_ranges:
            _ask_for(codes, ranges, i + AHEAD)
        p, stop = np.uint64(ranges[0, i]), np.uint64(ranges[1, i])
        while True:
            p = _next_near(codes, p, stop, query, bound)
            if p == stop:
                break
            apart = query ^ codes[p]
            is_new = True
            for other in range(radii.shape[0]):  # its own included: this shell is beyond that
                is_new &= np.int64(popcount(apart & spans[other])) > radii[other]
            row = np.int64(rows[p])
            if is_new and (allowed.shape[0] == 0 or allowed[row]):
                _take(keys, counts, state, k, np.int64(popcount(apart)), row)
                bound = np.uint64(state[BOUND])
            p += ONE


@njit(inline="always")
def _next_near(codes, p, stop, query, bound):
    """The first place from p on whose code is within the bound, or ``stop``."""
    while p + FOUR <= stop:
        a, b = popcount(query ^ codes[p]), popcount(query ^ codes[p + ONE])
        c, d = popcount(query ^ codes[p + TWO]), popcount(query ^ codes[p + THREE])
        if min(min(a, b), min(c, d)) <= bound:
            break
        p += FOUR
    while p < stop and popcount(query ^ codes[p]) > bound:
        p += ONE
    return p


@njit(inline="always")
def _ask_for(codes, ranges, i):
    """Bring the beginning of a bucket near; the processor sees for itself to the rest."""
    for p in range(ranges[0, i], min(ranges[1, i], ranges[0, i] + LINES * LINE), LINE):
        prefetch(codes, p)


@njit(cache=True, nogil=True)
def _look_long(queries, q, buckets, j, radii, ranges, n_ranges, allowed, k, keys, counts, state):
    """The same for codes of several words, which lie in the order of buckets or of rows."""
    is_laid = buckets.codes.shape[0] == buckets.rows.shape[0]
    codes, rows, n_words = buckets.codes[j if is_laid else 0], buckets.rows[j], queries.shape[1]
    for i in range(n_ranges):
        if is_laid and i + AHEAD < n_ranges:
            prefetch(codes, ranges[0, i + AHEAD] * n_words)
        for p in range(ranges[0, i], ranges[1, i]):
            if not is_laid and p + AHEAD < ranges[1, i]:
                prefetch(codes, np.int64(rows[p + AHEAD]) * n_words)
            place = p if is_laid else np.int64(rows[p])
            distance = distance_between(queries, q, codes, place)
            if distance <= state[BOUND]:
                row = np.int64(rows[p])
                is_new = _is_new(queries, q, codes, place, buckets.lows, buckets.widths, j, radii)
                if is_new and (allowed.shape[0] == 0 or allowed[row]):
                    _take(keys, counts, state, k, distance, row)


@njit(cache=True, nogil=True)
def _is_new(queries, q, codes, place, lows, widths, j, radii):
    """Whether no other segment has met this item."""
    for i in range(radii.shape[0]):
        if i != j and radii[i] >= 0:
            low, width = lows[i], widths[i]
            apart = segment_of(queries, q, low, width) ^ segment_of(codes, place, low, width)
            if popcount(np.uint64(apart)) <= radii[i]:
                return False
    return True


@njit(cache=True, nogil=True)
def _take(keys, counts, state, k, distance, row):
    """Keep an item at most as far as the bound, which falls where k others are nearer.

    ``counts[d]`` items are held at distance d, and ``state[HELD]`` of them up to the bound.  Of
    those at the bound only the rows before ``state[LIMIT]`` matter once there was no more room.
    With k = 0 all are kept, and a size beyond the room says that there were too many.
    """
    key = (distance << ROW_BITS) | row
    if key < state[LIMIT]:
        if state[SIZE] >= keys.shape[0] and k > 0:
            _keep_nearest(keys, counts, state, k)
        if state[SIZE] < keys.shape[0]:
            keys[state[SIZE]] = key
        state[SIZE] += 1
        counts[distance] += 1
        state[HELD] += 1
        state[TAKEN] += 1
        while k > 0 and state[HELD] - counts[state[BOUND]] >= k:
            state[HELD] -= counts[state[BOUND]]
            state[BOUND] -= 1


@njit(cache=True, nogil=True)
def _keep_nearest(keys, counts, state, k):
    """Make room: only the k nearest so far, and what comes before the last of them, matter."""
    keys.sort()
    counts[:] = 0
    for i in range(k):
        counts[keys[i] >> ROW_BITS] += 1
    state[SIZE], state[HELD] = k, k
    state[BOUND], state[LIMIT] = keys[k - 1] >> ROW_BITS, keys[k - 1]


@njit(cache=True, nogil=True)
def _put_in_order(keys, state):
    """Drop what is beyond the bound, sort the rest, and give its number."""
    kept = 0
    for i in range(state[SIZE]):
        if keys[i] >> ROW_BITS <= state[BOUND]:
            keys[kept] = keys[i]
            kept += 1
    keys[:kept].sort()
    return kept
