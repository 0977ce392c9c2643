"""Neighbourhood-preserving quantisation: thresholds that keep similar rows in one region."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bittern.checks import Float64Array, PositionArray, check_count, check_number
from bittern.errors import InputError
from bittern.hashing.base import Rows
from bittern.hashing.cuts import Levels, Neighbourhood, least_squares_cuts
from bittern.hashing.linear import LinearHasher
from bittern.hashing.projected import ThermometerHasher, n_thresholds
from bittern.hashing.targets import Targets
from bittern.progress import track
from bittern.relevance import Relevance, ball_radius

MOST_BITS = 4  # per dimension
LEAST_GAIN = 1e-12  # of the objective
NEIGHBOURS, SAMPLE = 50, 100  # that a ball holds on average; rows that estimate its radius


class NeighbourHasher(ThermometerHasher):
    """Thermometers whose thresholds keep similar rows together."""

    beta: float
    n_rows: int

    @property
    def _takes_y(self) -> bool:
        return True

    def _neighbourhoods(
        self, X: Rows, targets: Targets | None, n_dimensions: int
    ) -> tuple[LinearHasher, Iterator[Neighbourhood]]:
        """The fitted projection, and the similar rows along each of its dimensions."""
        check_number(self.beta, f"{self._title}: beta", above=0)
        check_count(self.n_rows, f"{self._title}: n_rows")
        hasher, Z, rounding = self._project(X, targets, n_dimensions)
        rows, pairs = similar_pairs(X, targets, self.n_rows, self._generator())
        columns = list(zip(Z[rows].T, rounding, strict=True))
        return hasher, (
            Neighbourhood.of(Levels.of(z, error), pairs, self.beta)
            for z, error in track(columns, f"{self._title}: placing thresholds")
        )


class NPQ(NeighbourHasher):
    r"""Neighbourhood-preserving quantisation: similar rows fall into the same region.

    Each projected dimension has :math:`2^q - 1` thresholds and so :math:`2^q` regions.  "In the
    same region" predicts "similar"; over all pairs of ``n_rows`` random training rows it has TP
    hits, FP false alarms and FN misses.  With SSE the squared error around the means of the
    regions, and SST that around the mean of all rows, the thresholds maximise

    .. math:: \alpha F_\beta + (1 - \alpha) \left(1 - \frac{\mathrm{SSE}}{\mathrm{SST}}\right),
        \qquad F_\beta = \frac{(1 + \beta^2)\, \mathrm{TP}}
            {(1 + \beta^2)\, \mathrm{TP} + \beta^2\, \mathrm{FN} + \mathrm{FP}}.

    Two rows are similar if their affinity by ``y`` is above 0; without ``y``, if they lie within ε,
    the mean distance of 100 training rows to their 50th nearest.  The distance of two codes is the
    sum over dimensions of how many regions they are apart, as in :class:`~bittern.hashing.MHQ`,
    whose ``bits_per_dimension`` (q), ``projection`` and stored bits it shares.

    The original searches by a genetic algorithm (15 individuals, 15 generations).  Here α = 1 and
    α = 0 are solved exactly: F is a ratio of sums over regions, which Dinkelbach's method and
    dynamic programming over the cut points maximise, and α = 0 is k-means in one dimension.
    Between them, the better of these two solutions is improved one threshold at a time until no
    change of one threshold helps; this may end in a local maximum.  Where a cut lowers the
    objective there is none, and its threshold is ∞.  If no rows are similar, F is 0 everywhere, and
    the squared error decides.

    The author's program counts a hit once for each pair but a false alarm as (size of the region)²
    minus the hits, so pairs count twice there, and each row is paired with itself: its precision is
    at most half of the one defined here.

    Reference: [Moran-Lavrenko-Osborne-2013a].
    """

    name = "npq"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        projection: LinearHasher | str | None = None,
        bits_per_dimension: int = 2,
        alpha: float = 1.0,
        beta: float = 1.0,
        n_rows: int = 2000,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.projection = projection
        self.bits_per_dimension = bits_per_dimension
        self.alpha = alpha
        self.beta = beta
        self.n_rows = n_rows
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        check_count(self.bits_per_dimension, f"{self._title}: bits_per_dimension", 1, MOST_BITS)
        if check_number(self.alpha, f"{self._title}: alpha", least=0) > 1:
            raise InputError(f"{self._title}: alpha must be at most 1, got {self.alpha:g}.")
        sizes = n_thresholds(self._even_allocation(self.bits_per_dimension))
        hasher, neighbourhoods = self._neighbourhoods(X, targets, len(sizes))
        thresholds = [
            one.levels.thresholds(best_cuts(one, n, self.alpha), n)
            for one, n in zip(neighbourhoods, sizes, strict=True)
        ]
        self._keep_thresholds(hasher, thresholds)


def similar_pairs(
    X: Rows, targets: Targets | None, n_rows: int, rng: np.random.Generator
) -> tuple[PositionArray, tuple[PositionArray, PositionArray]]:
    """Random rows, and their similar pairs in both orders, as places among them."""
    rows = np.sort(rng.permutation(len(X))[:n_rows])
    if targets is not None:
        similar = targets.affinity(rows, rows) > 0
        similar |= similar.T
    else:
        neighbours = min(NEIGHBOURS, len(X) - 1)
        if not neighbours:
            return rows, (rows[:0], rows[:0])
        radius = ball_radius(X, neighbours, SAMPLE, int(rng.integers(2**31)))
        ball = Relevance.from_ball(X[rows], X[rows], radius)
        similar = ball.block(slice(0, len(rows))) > 0
    np.fill_diagonal(similar, False)
    first, second = np.nonzero(similar)
    return rows, (first, second)


def best_cuts(neighbours: Neighbourhood, n_cuts: int, alpha: float) -> PositionArray:
    """The cuts of the best objective that was found."""
    compact = least_squares_cuts(neighbours.levels, n_cuts)
    if alpha == 0:
        return compact
    together = neighbours.best_cuts(n_cuts, start=compact)
    if alpha == 1:
        return together
    starts = [_Search(neighbours, n_cuts, alpha, cuts) for cuts in (compact, together)]
    return max(starts, key=lambda one: one.score).climb()


class _Search:
    """Cuts that change one at a time; a cut at either end leaves a region empty."""

    def __init__(self, neighbours: Neighbourhood, n_cuts: int, alpha: float, cuts: PositionArray):
        self.neighbours, self.alpha, self.end = neighbours, alpha, len(neighbours.levels)
        self.spread = float(neighbours.levels.square_errors(0, self.end)) or 1.0
        self.cuts = np.concatenate((np.zeros(n_cuts - len(cuts), np.intp), cuts))
        edges = np.concatenate(([0], self.cuts, [self.end]))
        self.score = float(self._objective(self._measure(edges[:-1], edges[1:]).sum(axis=1)))

    def climb(self) -> PositionArray:
        """The cuts after the last improvement."""
        while any([self._move(k) for k in range(len(self.cuts))]):
            pass
        return np.unique(self.cuts[(self.cuts > 0) & (self.cuts < self.end)])

    def _move(self, k: int) -> bool:
        """Move a cut to the best place of all; whether that improves the objective."""
        others = np.delete(self.cuts, k)
        edges = np.concatenate(([0], others, [self.end]))
        places = np.arange(self.end + 1)
        region = np.minimum(np.searchsorted(edges, places, side="right"), len(edges) - 1) - 1
        whole = self._measure(edges[:-1], edges[1:])
        divided = self._measure(edges[region], places) + self._measure(places, edges[region + 1])
        scores = self._objective(whole.sum(axis=1)[:, None] - whole[:, region] + divided)
        best = int(np.argmax(scores))
        if scores[best] <= self.score + LEAST_GAIN:
            return False
        self.cuts, self.score = np.sort(np.append(others, best)), float(scores[best])
        return True

    def _measure(self, low: PositionArray, high: PositionArray) -> Float64Array:
        """Hits, pairs and squared errors ``(3, n)`` of regions of levels ``low`` … ``high - 1``."""
        errors = self.neighbours.levels.square_errors(low, high)
        return np.array([*self.neighbours.pairs(low, high), errors])

    def _objective(self, sums: Float64Array) -> Float64Array:
        hits, pairs, errors = sums
        F = self.neighbours.ratio(hits, pairs)
        return self.alpha * F + (1 - self.alpha) * (1 - errors / self.spread)
