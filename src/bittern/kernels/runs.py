"""Scans for near items on any processor, of codes of any length.

``runs[r, w, i]`` is word w of item i of run r: distances of a run are summed over its planes into a
buffer, which the compiler turns into vector code, and then compared.

Guaranteed by the caller: arrays are C-contiguous, and ``allowed`` is a mask over all rows or empty
where all are allowed.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.kernels.found import take
from bittern.kernels.long import RUN, measure

NEARBY = 1 << 17  # bytes of runs that stay in the cache while all queries pass
HIGHEST = np.uint64(1 << 63)


def runs_of(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """``(n_runs, n_words, RUN)``; the last run is filled with zeros."""
    n, n_words = words.shape
    padded = np.zeros((-(-n // RUN) * RUN, n_words), np.uint64)
    padded[:n] = words
    return np.ascontiguousarray(padded.reshape(-1, RUN, n_words).transpose(0, 2, 1))


@njit(cache=True, nogil=True)
def find_nearest(queries, n, runs, allowed, k, found):
    """Offer all n items of the runs to ``found``."""
    buffer = np.empty(RUN, np.uint64)
    step = max(1, NEARBY // (8 * runs.shape[1] * RUN))
    for near in range(0, runs.shape[0], step):
        for q in range(queries.shape[0]):
            for r in range(near, min(runs.shape[0], near + step)):
                measure(queries[q], runs[r], 0, buffer)
                if _any_below(buffer, np.uint64(found.bounds[q])):
                    for i in range(min(RUN, n - r * RUN)):
                        distance, row = np.int64(buffer[i]), r * RUN + i
                        if distance < found.bounds[q] and (allowed.shape[0] == 0 or allowed[row]):
                            take(found, q, row, distance, k)


@njit(cache=True, nogil=True)
def find_within(queries, n, runs, radius, allowed, places, rows, distances):
    """Count the items of each distance up to the radius, or put them in their places.

    Where ``rows`` is empty, ``places[q, d]`` is raised by the number of items at distance d from
    query q.  Else item by item goes to ``rows[places[q, d]]``, which is raised by one.
    """
    buffer = np.empty(RUN, np.uint64)
    step = max(1, NEARBY // (8 * runs.shape[1] * RUN))
    for near in range(0, runs.shape[0], step):
        for q in range(queries.shape[0]):
            for r in range(near, min(runs.shape[0], near + step)):
                measure(queries[q], runs[r], 0, buffer)
                if _any_below(buffer, np.uint64(radius + 1)):
                    for i in range(min(RUN, n - r * RUN)):
                        distance, row = np.int64(buffer[i]), r * RUN + i
                        if distance <= radius and (allowed.shape[0] == 0 or allowed[row]):
                            place = places[q, distance]
                            if rows.shape[0] > 0:
                                rows[place], distances[place] = row, distance
                            places[q, distance] = place + 1


@njit(inline="always")
def _any_below(buffer, bound):
    """Whether a distance is less than the bound: then their difference has the highest bit."""
    joined = np.uint64(0)
    for i in range(buffer.shape[0]):
        joined |= buffer[i] - bound
    return joined >= HIGHEST
