"""Rows grouped by class: a counting sort."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def group_rows(classes, places, order):
    """Fill ``order`` with the rows of class 0, then of class 1 and so on; each class ascends.

    ``places[c]`` is where class c begins; it moves on.
    """
    for row in range(classes.shape[0]):
        c = classes[row]
        order[places[c]] = row
        places[c] += 1
