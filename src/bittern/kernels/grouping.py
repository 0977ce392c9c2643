"""Rows grouped by class: counting sorts."""

from __future__ import annotations

import numpy as np
from numba import njit

ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def group_rows(classes, places, order):
    """Fill ``order`` with the rows of class 0, then of class 1 and so on; each class ascends.

    ``places[c]`` is where class c begins; it moves on.
    """
    for row in range(classes.shape[0]):
        c = classes[row]
        order[places[c]] = row
        places[c] += 1


@njit(cache=True, nogil=True)
def group_words(words, classes, offsets, planes):
    """Fill ``planes`` with the words of the rows ``(n, n_words)``, grouped by class.

    ``offsets`` has an entry for each class, and one more; it receives where each class begins.
    """
    n_classes = offsets.shape[0] - 1
    offsets[:] = 0
    for row in range(classes.shape[0]):
        offsets[np.uint64(classes[row]) + ONE] += 1
    for c in range(n_classes):
        offsets[c + 1] += offsets[c]
    places = np.empty(n_classes, np.uint64)
    for w in range(planes.shape[0]):
        places[:] = offsets[:n_classes]
        plane = planes[w]
        for row in range(classes.shape[0]):
            group = np.uint64(classes[row])  # unsigned: then no place is counted from the end
            place = places[group]
            places[group] = place + ONE
            plane[place] = words[row, w]
