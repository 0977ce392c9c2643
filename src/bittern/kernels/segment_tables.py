"""The tables of multi-index hashing, as plain arrays: who only maps them needs no Numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SegmentTables(NamedTuple):
    """The items of each segment in the order of their keys."""

    lows: NDArray[np.int64]  # (m,) first bit of each segment
    widths: NDArray[np.int64]  # (m,) its bits, at most 32
    bases: NDArray[np.int64]  # (m,) where its part of ``offsets`` begins
    offsets: NDArray[np.uint32]  # of key x of segment j: offsets[bases[j] + x] and the next
    rows: NDArray[np.uint32]  # (m, n)
    codes: NDArray[np.uint64]  # (m, n, n_words) codes of ``rows``, or (1, n, n_words) by row
    masks: NDArray[np.uint32]  # XOR masks between keys, by their number of bits
    shells: NDArray[np.int64]  # (m, n_shells + 1) parts of ``masks`` by segment and distance
