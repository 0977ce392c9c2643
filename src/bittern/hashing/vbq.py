"""Variable bit quantisation: more bits for the dimensions that keep neighbours together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, PositionArray, check_count
from bittern.hashing.base import Rows
from bittern.hashing.cuts import Neighbourhood, least_squares_cuts
from bittern.hashing.linear import LinearHasher
from bittern.hashing.npq import MOST_BITS, NeighbourHasher
from bittern.hashing.projected import Allocation
from bittern.hashing.targets import Targets


class VBQ(NeighbourHasher):
    r"""Variable bit quantisation: each dimension gets the number of bits that it is worth.

    There are as many projected dimensions as bits, H = ``n_bits``.  For each dimension h and each
    number k of bits up to ``max_bits``, :math:`F_h(k)` is the largest :math:`F_\beta` of
    :class:`~bittern.hashing.NPQ` with :math:`2^k - 1` thresholds, and :math:`F_h(0) = 0`.  The bits
    are divided so that

    .. math:: \sum_{h=1}^{H} F_h(k_h) \quad \text{is largest, with} \quad
        \sum_{h=1}^{H} k_h \le \text{n\_bits}.

    Dimensions with k = 0 are dropped; their F is 0 by definition, not that of a single region, as a
    dropped dimension keeps no neighbours together.  This is a knapsack from which one of several
    sizes is chosen for each item; dynamic programming over dimensions and bits solves it exactly,
    where the original has a binary integer linear program.  ``bits_`` are the :math:`k_h`.  If no
    rows are similar, every dimension has one bit.

    The distance of two codes is the sum over dimensions of how many regions they are apart, as in
    :class:`~bittern.hashing.MHQ`; k nominal bits are stored as :math:`2^k - 1`, so the number of
    stored bits, ``n_stored_bits``, depends on the rows.  ``projection``, ``beta``, ``n_rows`` and
    the role of ``y`` are those of NPQ.

    Reference: [Moran-Lavrenko-Osborne-2013b].
    """

    name = "vbq"

    bits_: PositionArray  # (n_bits,) of each dimension of the projection

    def __init__(
        self,
        n_bits: int = 32,
        *,
        projection: LinearHasher | str | None = None,
        max_bits: int = 4,
        beta: float = 1.0,
        n_rows: int = 2000,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.projection = projection
        self.max_bits = max_bits
        self.beta = beta
        self.n_rows = n_rows
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        check_count(self.max_bits, f"{self._title}: max_bits", 1, MOST_BITS)
        self._even_allocation(self.max_bits)  # checks the most that can be stored
        hasher, neighbourhoods = self._neighbourhoods(X, targets, self.n_bits)
        found = [self._choices(one) for one in neighbourhoods]
        bits = divide_bits(np.array([[F for F, _ in one] for one in found]), self.n_bits)
        thresholds = [
            one[k - 1][1] if k else np.empty(0) for one, k in zip(found, bits, strict=True)
        ]
        self._keep_thresholds(hasher, thresholds, bits_=np.array(bits))

    def _choices(self, neighbours: Neighbourhood) -> list[tuple[float, Float64Array]]:
        """F and the thresholds of a dimension with 1 … ``max_bits`` bits."""
        choices: list[tuple[float, Float64Array]] = []
        cuts: PositionArray | None = None
        for k in range(1, self.max_bits + 1):
            n = (1 << k) - 1
            start = least_squares_cuts(neighbours.levels, n) if cuts is None else cuts
            cuts = neighbours.best_cuts(n, start)
            thresholds = neighbours.levels.thresholds(cuts, n)
            choices.append((neighbours.f_measure(cuts), thresholds))
        return choices


def divide_bits(values: NDArray[np.float64], n_bits: int) -> Allocation:
    """The bits of each row of ``values``, for the largest sum of values with ``n_bits`` in all.

    ``values[h, k - 1]`` is what row h is worth with k bits; with 0 bits it is worth 0.  If all are
    worth nothing, each has one bit.
    """
    if not values.any():
        return [1] * len(values)
    worth = np.hstack((np.zeros((len(values), 1)), values))
    best = np.zeros(n_bits + 1)  # of the rows so far, for each number of bits
    choices = []
    for row in worth:
        options = np.full((len(row), n_bits + 1), -np.inf)
        for k, value in enumerate(row[: n_bits + 1]):
            options[k, k:] = best[: n_bits + 1 - k] + value
        choices.append(options.argmax(axis=0))
        best = options.max(axis=0)
    bits, left = [], n_bits
    for choice in reversed(choices):
        bits.append(int(choice[left]))
        left -= bits[-1]
    return bits[::-1]
