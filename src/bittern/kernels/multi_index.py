"""Multi-index hashing: each of several segments of a code puts it into a bucket.

An item at distance at most ``sum(r_j + 1) - 1`` from the query differs from it by at most ``r_j``
bits in segment j, for at least one j: otherwise it would differ by ``r_j + 1`` or more in each.  So
looking up, in every segment j, all keys within ``r_j`` of the query's key finds every item within
that distance.

A *shell* is the keys of one segment at one distance from the query's key::

    segment 0   query's key 01001   shell 0: 01001   shell 1: 11001 00001 01101 01011 01000   …
    segment 1   query's key 11100   shell 0: 11100   shell 1: 01100 10100 11000 11110 11101   …

Each shell looked up, in any segment, extends by one the distance within which all items are known.
So we always look up the cheapest shell next.

An item can turn up in several segments.  It is taken only the first time, that is, if no other
segment has it within the radius looked up so far; the item's bits show this.

The caller guarantees: arrays are those of ``bittern.index.multi_index``, rows fit 32 bits, and
``allowed`` is a mask over all rows, or empty if all rows are allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.bits import distance_between, distance_to_row, popcount, prefetch
from bittern.kernels.segment_tables import SegmentTables

# Costs in nanoseconds, measured on one machine; only their ratios matter.
LOOKUP = 28.0  # find the bucket of a key and read its start
CANDIDATE = 2.1  # compare a code stored next to the previous one
LONG_CANDIDATE = 7.0  # the same for codes of several words
FAR_CANDIDATE = 21.0  # compare a code anywhere in memory
TAKE = 60.0  # keep an item that is among the nearest so far
TRIAL = 1 / 16  # of the scan's cost, spent before the cost of the rest is estimated
LINE, LINES = 8, 12  # words in a line of the cache, and lines of one bucket to prefetch
AHEAD = 8  # how many keys or buckets ahead we prefetch
MOST_WITHIN = 1 << 16  # most items of one query within a radius; beyond it, a scan is used
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
ROW_BITS = np.int64(32)  # items sort by one number: distance, then these bits for the row
ROW = np.int64((1 << 32) - 1)
EVERY_KEY = np.iinfo(np.int64).max
SIZE, HELD, BOUND, LIMIT, TAKEN = range(5)  # entries of ``Kept.state``


class Searched(NamedTuple):
    """What is searched: all codes, tables of the first ``n_built``, and which rows are allowed."""

    words: NDArray[np.uint64]  # (n_first, n_words)
    late: NDArray[np.uint64]  # (n_late, n_words) the rows after them
    n_built: int
    tables: SegmentTables
    allowed: NDArray[np.bool_]  # (n_first + n_late,), or empty


class Kept(NamedTuple):
    """The items kept for one query.

    ``counts[d]`` items are kept at distance d.  ``state`` has the number of ``keys`` (SIZE), how
    many of them are within the bound (HELD), the distance beyond which no item matters (BOUND), the
    key beyond which none matters, set once ``keys`` was full (LIMIT), and the number of items ever
    taken (TAKEN).
    """

    keys: NDArray[np.int64]  # (room,) distance and row in one number
    counts: NDArray[np.int64]  # (n_distances,)
    state: NDArray[np.int64]  # (5,)


class Scratch(NamedTuple):
    """Working memory of one query, with an entry per segment, and room for one shell."""

    radii: NDArray[np.int64]  # (m,) radius looked up so far
    keys: NDArray[np.int64]  # (m,) of the query
    costs: NDArray[np.float64]  # (m,) of the next shell
    estimate: NDArray[np.float64]  # (2, m) costs and radii while the rest is estimated
    ranges: NDArray[np.int64]  # (2, most keys) beginnings and ends of buckets
    spans: NDArray[np.uint64]  # (m,) the bits of each segment in a word, for codes of one word


@njit(cache=True, nogil=True)
def fill_buckets(words, low, width, offsets, rows):
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
def copy_codes(words, rows, codes):
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
def find_nearest(queries, searched, k, scan_cost, rows, distances, is_done, costs):
    """Fill the k nearest of each query; ``is_done[q]`` is False if a scan is cheaper.

    Rows from ``n_built`` on are in no bucket, so all of them are compared.  Fills ``costs`` with
    the cost of each query, done or not.
    """
    n_distances = 64 * queries.shape[1] + 1
    kept = _room(4 * k + 256, n_distances)
    tables, allowed = searched.tables, searched.allowed
    scratch = _scratch(tables)
    for q in range(queries.shape[0]):
        _begin(kept, n_distances - 1)
        _compare_rest(queries, q, searched, k, kept)
        is_done[q], costs[q] = _probe(queries, q, tables, allowed, k, scan_cost, kept, scratch)
        if is_done[q]:
            _put_in_order(kept)
            for i in range(k):
                distances[q, i], rows[q, i] = kept.keys[i] >> ROW_BITS, kept.keys[i] & ROW


@njit(cache=True, nogil=True)
def find_within(queries, searched, radius, scan_cost, sizes, is_done, costs):
    """Sorted keys (distance, row) of all items within the radius, query by query.

    Fills ``sizes`` with their number, ``is_done`` with False if a scan is cheaper, and ``costs``.
    """
    kept, k = _room(MOST_WITHIN, 64 * queries.shape[1] + 1), np.int64(0)
    tables, allowed = searched.tables, searched.allowed
    scratch = _scratch(tables)
    found, n_found = np.empty(1024, np.int64), 0
    for q in range(queries.shape[0]):
        _begin(kept, radius)
        _compare_rest(queries, q, searched, k, kept)
        is_done[q], costs[q] = _probe(queries, q, tables, allowed, k, scan_cost, kept, scratch)
        if is_done[q]:
            sizes[q] = _put_in_order(kept)
            found = _appended(found, n_found, kept.keys, sizes[q])
            n_found += sizes[q]
    return found[:n_found]


@njit(cache=True, nogil=True)
def _appended(found, n_found, keys, size):
    """The list with ``size`` more keys, in a larger array if it is full."""
    if n_found + size > found.shape[0]:
        larger = np.empty(2 * (n_found + size), np.int64)
        for i in range(n_found):
            larger[i] = found[i]
        found = larger
    for i in range(size):
        found[n_found + i] = keys[i]
    return found


@njit(cache=True, nogil=True)
def _room(size, n_distances):
    return Kept(np.empty(size, np.int64), np.empty(n_distances, np.int64), np.empty(5, np.int64))


@njit(cache=True, nogil=True)
def _scratch(tables):
    m, most = tables.lows.shape[0], 0
    for j in range(m):
        for r in range(tables.shells.shape[1] - 1):
            most = max(most, tables.shells[j, r + 1] - tables.shells[j, r])
    return Scratch(
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.float64),
        np.empty((2, m), np.float64),
        np.empty((2, most), np.int64),
        _spans(tables.lows, tables.widths),
    )


@njit(cache=True, nogil=True)
def _spans(lows, widths):
    spans = np.zeros(lows.shape[0], np.uint64)
    for j in range(lows.shape[0]):
        for bit in range(lows[j], lows[j] + widths[j]):
            spans[j] |= ONE << np.uint64(bit % 64)
    return spans


@njit(cache=True, nogil=True)
def _begin(kept, bound):
    kept.counts[:] = 0
    kept.state[:] = 0
    kept.state[BOUND], kept.state[LIMIT] = bound, EVERY_KEY


@njit(cache=True, nogil=True)
def _compare_rest(queries, q, searched, k, kept):
    """Take the near items among those that are in no bucket yet."""
    words, late, allowed = searched.words, searched.late, searched.allowed
    keys, counts, state = kept.keys, kept.counts, kept.state
    for row in range(searched.n_built, words.shape[0] + late.shape[0]):
        distance = distance_to_row(queries, q, words, late, row)
        if distance <= state[BOUND] and (allowed.shape[0] == 0 or allowed[row]):
            _take(keys, counts, state, k, distance, row)


@njit(cache=True, nogil=True)
def _probe(queries, q, tables, allowed, k, scan_cost, kept, scratch):
    """Look up shells until the answer is known; return whether this beats a scan, and the cost."""
    radii, costs, estimate, state = scratch.radii, scratch.costs, scratch.estimate, kept.state
    each = _cost_of_candidate(queries, tables)
    for j in range(radii.shape[0]):
        radii[j], costs[j] = -1, LOOKUP
        scratch.keys[j] = segment_of(queries, q, tables.lows[j], tables.widths[j])
    known, spent = -1, 0.0
    while (k > 0 and state[HELD] < k) or state[BOUND] > known:
        j = _cheapest(costs)
        if spent + costs[j] > scan_cost or state[SIZE] > kept.keys.shape[0]:
            return False, spent
        if spent > TRIAL * scan_cost and (k == 0 or state[HELD] >= k):
            for i in range(costs.shape[0]):
                estimate[0, i], estimate[1, i] = costs[i], radii[i]
            if spent + _cost_of_rest(estimate, tables.widths, state[BOUND] - known) > scan_cost:
                return False, spent
        n_keys = tables.shells[j, radii[j] + 2] - tables.shells[j, radii[j] + 1]
        n_ranges, n_items = _find_buckets(tables, j, radii[j] + 1, scratch.keys[j], scratch.ranges)
        spent += LOOKUP * n_keys + each * n_items
        if spent > scan_cost:
            return False, spent
        before = state[TAKEN]
        _compare_buckets(queries, q, tables, allowed, j, scratch, n_ranges, k, kept)
        spent += TAKE * (state[TAKEN] - before)
        radii[j], known = radii[j] + 1, known + 1
        costs[j] = _cost_of_next(tables, j, radii[j] + 1, each, n_items / n_keys)
    return state[SIZE] <= kept.keys.shape[0], spent


@njit(cache=True, nogil=True)
def _cost_of_candidate(queries, tables):
    if tables.codes.shape[0] < tables.rows.shape[0]:
        return FAR_CANDIDATE
    return CANDIDATE if queries.shape[1] == 1 else LONG_CANDIDATE


@njit(cache=True, nogil=True)
def _cost_of_next(tables, j, r, each, density):
    """Estimated cost of a shell, from the number of items per bucket in the previous shell."""
    if r + 1 >= tables.shells.shape[1] or tables.shells[j, r] == tables.shells[j, r + 1]:
        return np.inf
    n_keys = tables.shells[j, r + 1] - tables.shells[j, r]
    # Farther from the query, buckets are more like the average bucket.
    average = tables.rows.shape[1] / 2.0 ** tables.widths[j]
    return n_keys * (LOOKUP + each * (density + average) / 2)


@njit(cache=True, nogil=True)
def _cost_of_rest(estimate, widths, n_shells):
    """Estimated cost of the next shells, cheapest first; costs grow like the numbers of keys."""
    costs, radii = estimate[0], estimate[1]
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
    """The first segment with the lowest cost."""
    best = 0
    for j in range(1, costs.shape[0]):
        if costs[j] < costs[best]:
            best = j
    return best


@njit(cache=True, nogil=True)
def _find_buckets(tables, j, r, key, ranges):
    """Fill the ranges of items in one shell; return the number of ranges and of items."""
    offsets, masks, base = tables.offsets, tables.masks, tables.bases[j]
    start, stop = tables.shells[j, r], tables.shells[j, r + 1]
    n_ranges, n_items = 0, 0
    for i in range(start, min(stop, start + AHEAD)):
        prefetch(offsets, base + (key ^ np.int64(masks[i])))
    for i in range(start, stop):
        if i + AHEAD < stop:
            prefetch(offsets, base + (key ^ np.int64(masks[i + AHEAD])))
        place = base + (key ^ np.int64(masks[i]))
        first, last = int(offsets[place]), int(offsets[place + 1])
        ranges[0, n_ranges], ranges[1, n_ranges] = first, last
        n_ranges += int(last > first)  # without a branch: the next bucket overwrites an empty one
        n_items += last - first
    return n_ranges, n_items


@njit(cache=True, nogil=True)
def _compare_buckets(queries, q, tables, allowed, j, scratch, n_ranges, k, kept):
    """Take the near items of the buckets of one shell."""
    if queries.shape[1] == 1 and tables.codes.shape[0] == tables.rows.shape[0]:
        codes, rows = tables.codes[j].reshape(-1), tables.rows[j]
        radii, ranges, spans = scratch.radii, scratch.ranges, scratch.spans
        keys, counts, state = kept.keys, kept.counts, kept.state
        _compare_short(
            queries[q, 0],
            codes,
            rows,
            allowed,
            radii,
            ranges,
            spans,
            n_ranges,
            k,
            keys,
            counts,
            state,
        )
    else:
        _compare_long(queries, q, tables, allowed, j, scratch, n_ranges, k, kept)


@njit(cache=True, nogil=True)
def _compare_short(
    query, codes, rows, allowed, radii, ranges, spans, n_ranges, k, keys, counts, state
):
    """For codes of one word, stored in the order of the buckets.

    This is called for every shell, so arrays are passed one by one: Numba would unpack a tuple each
    time.
    """
    bound = np.uint64(state[BOUND])
    for i in range(min(AHEAD, n_ranges)):
        _prefetch_bucket(codes, ranges, i)
    for i in range(n_ranges):
        if i + AHEAD < n_ranges:
            _prefetch_bucket(codes, ranges, i + AHEAD)
        p, stop = np.uint64(ranges[0, i]), np.uint64(ranges[1, i])
        while True:
            p = _next_near(codes, p, stop, query, bound)
            if p == stop:
                break
            apart = query ^ codes[p]
            is_new = True
            for other in range(radii.shape[0]):  # segment j too: this shell is beyond its radius
                is_new &= np.int64(popcount(apart & spans[other])) > radii[other]
            row = np.int64(rows[p])
            if is_new and (allowed.shape[0] == 0 or allowed[row]):
                _take(keys, counts, state, k, np.int64(popcount(apart)), row)
                bound = np.uint64(state[BOUND])
            p += ONE


@njit(inline="always")
def _next_near(codes, p, stop, query, bound):
    """The first position from p on whose code is within the bound, or ``stop``."""
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
def _prefetch_bucket(codes, ranges, i):
    """Prefetch the beginning of a bucket; the processor prefetches the rest by itself."""
    for p in range(ranges[0, i], min(ranges[1, i], ranges[0, i] + LINES * LINE), LINE):
        prefetch(codes, p)


@njit(cache=True, nogil=True)
def _compare_long(queries, q, tables, allowed, j, scratch, n_ranges, k, kept):
    """For codes of several words, stored in the order of the buckets or of the rows."""
    ranges = scratch.ranges
    keys, counts, state = kept.keys, kept.counts, kept.state
    is_sorted = tables.codes.shape[0] == tables.rows.shape[0]
    codes, rows, n_words = tables.codes[j if is_sorted else 0], tables.rows[j], queries.shape[1]
    for i in range(n_ranges):
        if is_sorted and i + AHEAD < n_ranges:
            prefetch(codes, ranges[0, i + AHEAD] * n_words)
        for p in range(ranges[0, i], ranges[1, i]):
            if not is_sorted and p + AHEAD < ranges[1, i]:
                prefetch(codes, np.int64(rows[p + AHEAD]) * n_words)
            place = p if is_sorted else np.int64(rows[p])
            distance = distance_between(queries, q, codes, place)
            if distance <= state[BOUND]:
                row = np.int64(rows[p])
                is_new = _is_new(queries, q, codes, place, tables, j, scratch.radii)
                if is_new and (allowed.shape[0] == 0 or allowed[row]):
                    _take(keys, counts, state, k, distance, row)


@njit(cache=True, nogil=True)
def _is_new(queries, q, codes, place, tables, j, radii):
    """Whether no other segment has found this item."""
    for i in range(radii.shape[0]):
        if i != j and radii[i] >= 0:
            low, width = tables.lows[i], tables.widths[i]
            apart = segment_of(queries, q, low, width) ^ segment_of(codes, place, low, width)
            if popcount(np.uint64(apart)) <= radii[i]:
                return False
    return True


@njit(cache=True, nogil=True)
def _take(keys, counts, state, k, distance, row):
    """Keep an item within the bound; the bound shrinks once k others are nearer.

    With k = 0 all items are kept, and SIZE exceeds the room if there were too many.
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
    """Make room: keep the k nearest so far, and note the last of them as the limit."""
    keys.sort()
    counts[:] = 0
    for i in range(k):
        counts[keys[i] >> ROW_BITS] += 1
    state[SIZE], state[HELD] = k, k
    state[BOUND], state[LIMIT] = keys[k - 1] >> ROW_BITS, keys[k - 1]


@njit(cache=True, nogil=True)
def _put_in_order(kept):
    """Drop the items beyond the bound, sort the rest, and return their number."""
    keys, n = kept.keys, 0
    for i in range(kept.state[SIZE]):
        if keys[i] >> ROW_BITS <= kept.state[BOUND]:
            keys[n] = keys[i]
            n += 1
    keys[:n].sort()
    return n
