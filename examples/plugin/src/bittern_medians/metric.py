"""How far away the nearest relevant item is."""

import numpy as np

from bittern.metrics import Metric


def first_distance(profile, name):
    """Distance of the nearest relevant item; NaN for a query that finds none."""
    found = profile.relevant > 0  # (n_queries, n_columns), nearest first
    nearest = found.argmax(axis=1)[:, None]
    columns = np.arange(found.shape[1])[None]  # the column of codes is their Hamming distance
    distances = columns if profile.distances is None else profile.distances
    values = np.take_along_axis(np.broadcast_to(distances, found.shape), nearest, axis=1)[:, 0]
    return np.where(found.any(axis=1), values, np.nan)


#: Tied items share a distance, so their order does not matter: ``ranked`` is False.
FIRST_DISTANCE = Metric(first_distance, "distance of the nearest relevant item", ranked=False)
