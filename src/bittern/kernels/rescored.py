"""How many relevant items the first places hold after rescoring, in expectation over ties."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

NEGLIGIBLE = 1e-12


@numba.njit(cache=True, nogil=True)
def expected_relevant(
    estimates: NDArray[np.float32],
    relevant: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    bounds: NDArray[np.float32],
    cuts: NDArray[np.int64],
    k: int,
) -> NDArray[np.float64]:
    """The expected number of relevant items in the first k, for each query and each cut.

    ``estimates`` and ``relevant`` describe items in the order of rescoring, those of query q from
    ``offsets[q]`` to ``offsets[q + 1]``.  Of them, the ``cuts[f]`` with the smallest estimates are
    candidates; ``bounds[q, f]`` is the largest estimate of a candidate.  If more items have that
    estimate than places are left, each choice of them is equally likely.
    """
    found = np.zeros((len(offsets) - 1, len(cuts)))
    for q in range(len(offsets) - 1):
        first, last = offsets[q], offsets[q + 1]
        for f in range(len(cuts)):
            found[q, f] = _expected(
                estimates[first:last], relevant[first:last], bounds[q, f], cuts[f], k
            )
    return found


@numba.njit(cache=True, nogil=True)
def _expected(
    estimates: NDArray[np.float32], relevant: NDArray[np.bool_], bound: float, cut: int, k: int
) -> float:
    """One query and one cut: items pass by in order, with the chance that j tied ones were chosen.

    Of the t tied items m are candidates.  If j of b that have passed were chosen, the next one is
    chosen with probability (m - j) / (t - b).
    """
    definite, t = 0, 0
    for estimate in estimates:
        definite += estimate < bound
        t += estimate == bound
    m = min(cut - definite, t)
    chance = np.zeros(k + 1)  # of j tied items chosen so far
    chance[0] = 1.0
    total, before, b = 0.0, 0, 0
    for i in range(len(estimates)):
        if estimates[i] > bound:
            continue
        room = k - before  # places left if no tied item was chosen
        if room <= 0 or chance[:room].sum() < NEGLIGIBLE:
            break
        if estimates[i] < bound:
            total += relevant[i] * chance[:room].sum()
            before += 1
            continue
        chosen = 0.0
        for j in range(min(room - 1, m), -1, -1):
            step = chance[j] * (m - j) / (t - b)
            chosen += step
            chance[j + 1] += step
            chance[j] -= step
        total += relevant[i] * chosen
        b += 1
    return total
