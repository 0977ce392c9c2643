"""How far away the nearest relevant item is."""

import numpy as np


def first_distance(profile):
    """Hamming distance of the nearest relevant item.

    NaN for a query that finds nothing relevant.  Ties do not matter: tied items share a distance.
    """
    found = profile.relevant > 0  # (n_queries, n_distances)
    return np.where(found.any(axis=1), found.argmax(axis=1), np.nan)
