"""Weights found by trying them all, on a grid over the simplex."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_count
from bittern.errors import InputError
from bittern.fusion.learner import FittedFusion
from bittern.fusion.normalise import NORMALISATIONS
from bittern.fusion.sources import (
    Scores,
    check_judgements,
    check_scores,
    check_weights,
)
from bittern.fusion.weighted_sum import add_up
from bittern.parallel import run_blocks
from bittern.progress import Bar
from bittern.relevance import Relevance

__all__ = ["OracleWeights", "RasterFusion", "oracle_weights", "precision_of_weights", "simplex"]

MOST_POINTS = 1_000_000
N_BLOCKS = 64  # of queries; fixed, so that sums do not depend on the number of threads


class RasterFusion(FittedFusion):
    r"""The weighted sum with the weights, of a grid, of the largest mean average precision.

    The grid has every :math:`w` with :math:`\sum_s w_s = 1` whose parts are whole, not negative
    multiples of ``step`` (1 over a whole number).  Training queries with nothing relevant are left
    out.  Of equally good weights, those nearest to equal ones are taken, then the first.

    ``weights_`` ``(sources,)`` is what was found and ``mean_ap_`` its mean average precision on
    the training queries; ``grid_`` and ``grid_ap_`` are all that were tried, and theirs.

    Reference: 4.1 of [Yavlinsky-2004].
    """

    def __init__(
        self, *, step: float = 0.1, normalise: str = "zscore", n_threads: int | None = None
    ) -> None:
        self.step = step
        self.normalise = normalise
        self.n_threads = n_threads

    def fit(self, scores: ArrayLike, relevant: Relevance | ArrayLike) -> Self:
        """Try the grid on training queries: a Relevance, or booleans ``(queries, items)``."""
        s = check_scores(scores, self._title, complete=True)
        judged = check_judgements(relevant, s.shape[1:], self._title)
        n_defined = int((judged == 1).any(axis=1).sum())
        if n_defined == 0:
            raise InputError(f"{self._title}: no query has anything relevant to learn from.")
        grid = simplex(len(s), self.step, self._title)
        total, _, _ = _scan(s, judged, grid, self.normalise, self.n_threads, self._title)
        mean = total / n_defined
        best = np.lexsort((np.arange(len(grid)), (grid**2).sum(axis=1), -mean))[0]
        self.n_sources_ = len(s)
        self.weights_, self.mean_ap_ = grid[best], float(mean[best])
        self.grid_, self.grid_ap_ = grid, mean
        return self

    def combine(self, scores: ArrayLike) -> Float64Array:
        """The weighted sum of normalised scores, ``(queries, items)``."""
        s = self._fitted_scores(scores)
        return add_up(s, self.normalise, check_weights(self.weights_, s, self._title))


class OracleWeights(NamedTuple):
    """The best weights of each query, chosen with sight of its judgements: no method, a bound."""

    weights: Float64Array  # (queries, sources); NaN where nothing is relevant
    ap: Float64Array  # (queries,); NaN where nothing is relevant


def oracle_weights(
    scores: ArrayLike,
    relevant: Relevance | ArrayLike,
    *,
    step: float = 0.1,
    n_refinements: int = 0,
    normalise: str = "zscore",
    n_threads: int | None = None,
) -> OracleWeights:
    """The weights with which each query by itself has its largest average precision.

    An *oracle*: it looks at the judgements of the very queries that it is measured on, and tells
    what weights could do at best, not what a method does.  The grid is that of
    :class:`RasterFusion`, tried in full for every query.

    With many sources, take a coarse ``step`` and some ``n_refinements``: in each, the step is
    halved, and moved between two sources at a time where that helps a query most, for as long as it
    helps.  What is found is then a lower bound of the best of the finer grid.

    ``weighted_sum(scores, weights=found.weights)`` are the fused scores, where all are defined.

    Reference: 4.1 of [Yavlinsky-2004].
    """
    owner = "oracle_weights"
    s = check_scores(scores, owner, complete=True)
    judged = check_judgements(relevant, s.shape[1:], owner)
    check_count(n_refinements, f"{owner}: n_refinements", 0)
    grid = simplex(len(s), step, owner)
    _, best, ap = _scan(s, judged, grid, normalise, n_threads, owner)
    weights = grid[best]
    for round_ in range(1, n_refinements + 1):
        _climb(s, judged, step / 2**round_, weights, ap, normalise, n_threads)
    weights[best < 0] = np.nan
    return OracleWeights(weights, ap)


def precision_of_weights(
    scores: ArrayLike,
    relevant: Relevance | ArrayLike,
    points: ArrayLike,
    *,
    normalise: str = "zscore",
    n_threads: int | None = None,
) -> Float64Array:
    """Average precision of each query with each of some weights, ``(queries, points)``.

    ``points`` is ``(points, sources)``, or ``(queries, points, sources)`` for points of each
    query's own.  Ties count in expectation; NaN where nothing is relevant.
    """
    owner = "precision_of_weights"
    s = check_scores(scores, owner, complete=True)
    judged = check_judgements(relevant, s.shape[1:], owner)
    p = np.asarray(points, np.float64)
    if p.ndim == 2:
        p = np.broadcast_to(p, (s.shape[1], *p.shape))
    if p.ndim != 3 or (len(p), p.shape[2]) != (s.shape[1], len(s)) or not np.isfinite(p).all():
        raise InputError(
            f"{owner}: points must be finite, (points, {len(s)}) or ({s.shape[1]}, points, "
            f"{len(s)}), got shape {p.shape}."
        )
    out = np.empty(p.shape[:2])

    def work(rows: slice) -> None:
        from bittern.kernels import raster

        block = np.ascontiguousarray(p[rows])
        raster.score_points(_normalised(s, rows, normalise), judged[rows], block, out[rows])

    run_blocks(work, _query_blocks(s.shape[1]), n_threads)
    return out


def simplex(n_sources: int, step: float, owner: str = "simplex") -> Float64Array:
    """Every weight vector of a grid, ``(points, n_sources)``, in ascending order.

    >>> simplex(2, 0.5).tolist()
    [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    """
    parts = round(1 / step) if isinstance(step, int | float) and 0 < step <= 1 else 0
    if parts < 1 or abs(parts * step - 1) > 1e-9:
        raise InputError(f"{owner}: step must be 1 over a whole number, like 0.1, got {step!r}.")
    n_points = comb(parts + n_sources - 1, n_sources - 1)
    if n_points > MOST_POINTS:
        raise InputError(
            f"{owner}: a step of {step:g} over {n_sources} sources makes a grid of {n_points:,} "
            f"points, more than {MOST_POINTS:,}; take a larger step."
        )
    return np.array(list(_compositions(parts, n_sources)), np.float64) / parts


def _compositions(total: int, n: int) -> Iterator[tuple[int, ...]]:
    """Ways to write ``total`` as an ordered sum of n whole numbers, ascending."""
    if n == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, n - 1):
            yield first, *rest


def _scan(
    scores: Scores,
    judged: NDArray[np.int8],
    grid: Float64Array,
    normalise: str,
    n_threads: int | None,
    owner: str,
) -> tuple[Float64Array, NDArray[np.int64], Float64Array]:
    """Sum of average precisions at each point; each query's best point and its value."""
    n_queries = scores.shape[1]
    changed = np.zeros(len(grid), np.int64)
    changed[1:] = (grid[1:] != grid[:-1]).argmax(axis=1)
    best, ap = np.empty(n_queries, np.int64), np.empty(n_queries)
    blocks = _query_blocks(n_queries)
    sums = np.zeros((len(blocks), len(grid)))
    NORMALISATIONS[normalise]  # (refused here, not in a thread)

    def work(block: tuple[int, slice]) -> None:
        from bittern.kernels import raster

        place, rows = block
        z = _normalised(scores, rows, normalise)
        raster.scan_grid(z, judged[rows], grid, changed, sums[place], best[rows], ap[rows])

    with Bar(f"{owner}: {len(grid):,} weights") as bar:
        done: list[int] = [0]

        def tell(block: tuple[int, slice]) -> None:
            done[0] += block[1].stop - block[1].start
            bar(done[0], n_queries)

        run_blocks(work, enumerate(blocks), n_threads, tell)
    return sums.sum(axis=0), best, ap


def _climb(
    scores: Scores,
    judged: NDArray[np.int8],
    step: float,
    weights: Float64Array,
    ap: Float64Array,
    normalise: str,
    n_threads: int | None,
) -> None:
    """Improve the weights of each query in place."""

    def work(rows: slice) -> None:
        from bittern.kernels import raster

        z = _normalised(scores, rows, normalise)
        raster.climb(z, judged[rows], step, weights[rows], ap[rows])

    run_blocks(work, _query_blocks(scores.shape[1]), n_threads)


def _normalised(scores: Scores, rows: slice, normalise: str) -> Any:
    return np.ascontiguousarray(NORMALISATIONS[normalise](scores[:, rows]))


def _query_blocks(n_queries: int) -> list[slice]:
    size = -(-n_queries // N_BLOCKS)
    return [slice(start, min(start + size, n_queries)) for start in range(0, n_queries, size)]
