"""What a ranking gives to the items on its places, ties sharing theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks

__all__ = ["mean_over_places", "mean_ranks"]

BLOCK = 1 << 26  # octets of sorted scores and places held at once


def mean_ranks(scores: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Rank of each item along the last axis, 1 for the largest; ties share the mean of theirs.

    NaN, an item that was not retrieved, comes after all others, as one tie.
    """
    return mean_over_places(scores, np.arange(1.0, scores.shape[-1] + 1))


def mean_over_places(
    scores: NDArray[np.floating[Any]], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``values[t]`` for the item on place t of each ranking, tied items sharing the mean of theirs.

    Which is the expectation over the orders of ties, so that no accident of order enters.
    """
    n = scores.shape[-1]
    rows = scores.reshape(-1, n)
    out = np.empty(rows.shape)
    for some in row_blocks(len(rows), 64 * n, BLOCK):
        out[some] = _shared(rows[some], values)
    return out.reshape(scores.shape)


def _shared(rows: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    negative = -rows
    order = np.argsort(negative, axis=1)  # (NaN comes last)
    ranked = np.take_along_axis(negative, order, axis=1)
    begins = np.ones(ranked.shape, np.bool_)
    both_nan = np.isnan(ranked[:, 1:]) & np.isnan(ranked[:, :-1])
    begins[:, 1:] = (ranked[:, 1:] != ranked[:, :-1]) & ~both_nan
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=begins.size)
    sums = np.add.reduceat(np.tile(values, len(rows)), starts)
    out = np.empty(rows.shape)
    shared = np.repeat(sums / sizes, sizes).reshape(rows.shape)
    np.put_along_axis(out, order, shared, axis=1)
    return out
