"""Twin of ``bittern.kernels.ranks``, by a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def rank_relevant(
    queries: Array,
    database: Array,
    levels: Array,
    excluded: Array,
    nearer: Array,
    found: Array,
    ranks: Array,
    hits: Array,
) -> None:
    """Twin of ``ranks.rank_relevant``; advances ``nearer`` and ``found`` as that does."""
    for q, code in enumerate(queries):
        items = np.flatnonzero(np.arange(len(database)) != excluded[q])
        distance = np.bitwise_count(code ^ database[items]).sum(axis=1, dtype=np.intp)
        ordered = levels[q, items][np.argsort(distance, kind="stable")]
        places = np.flatnonzero(ordered)
        ranks[q, : len(places)] = places + 1
        hits[q, : len(places)] = ordered[places]
        np.add.at(nearer[q], distance, 1)
        np.add.at(found[q], distance[levels[q, items] > 0], 1)
