"""Manhattan hashing: k-means in every projected dimension, and Manhattan distances of clusters."""

from __future__ import annotations

from bittern.checks import check_count
from bittern.hashing.base import Rows
from bittern.hashing.cuts import Levels, least_squares_cuts
from bittern.hashing.linear import LinearHasher
from bittern.hashing.projected import ThermometerHasher, n_thresholds
from bittern.hashing.targets import Targets


class MHQ(ThermometerHasher):
    r"""Manhattan hashing: each projected dimension is divided into :math:`2^q` clusters.

    The clusters of a dimension are those of k-means with :math:`2^q` centres on the training rows,
    numbered from left to right.  The distance of two codes is the sum over dimensions of how many
    clusters they are apart.  The original writes the number of a cluster as q bits and adds up
    differences of numbers; here a cluster is a thermometer of :math:`2^q - 1` bits, whose Hamming
    distances are the same numbers.  So codes of ``n_bits`` nominal bits store
    :math:`(2^q - 1) / q` times as many, which ``n_stored_bits`` counts.

    ``bits_per_dimension`` is q; with an ``n_bits`` that it does not divide, the last dimension has
    fewer bits.  ``projection`` is a linear hasher, by its name (``"itq"``) or unfitted (``ITQ()``),
    by default ``"pcah"``; ``y`` is passed to it if it uses it.

    k-means is solved exactly, by dynamic programming, where the original iterates.  A threshold
    lies midway between two training values, where the original has the nearest of two centres,
    which divides the training rows the same way.

    Reference: [Kong-Li-Guo-2012].
    """

    name = "mhq"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        projection: LinearHasher | str | None = None,
        bits_per_dimension: int = 2,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.projection = projection
        self.bits_per_dimension = bits_per_dimension
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        check_count(self.bits_per_dimension, f"{self._title}: bits_per_dimension", 1, 8)
        sizes = n_thresholds(self._even_allocation(self.bits_per_dimension))
        hasher, Z, rounding = self._project(X, targets, len(sizes))
        thresholds = []
        for z, error, n in zip(Z.T, rounding, sizes, strict=True):
            levels = Levels.of(z, error)
            thresholds.append(levels.thresholds(least_squares_cuts(levels, n), n))
        self._keep_thresholds(hasher, thresholds)
