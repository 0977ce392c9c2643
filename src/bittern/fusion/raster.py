"""Fixed weights found on a grid over the simplex, and the best weights of each query as a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_count
from bittern.errors import InputError
from bittern.fusion.scores import (
    NORMALISATIONS,
    FittedFusion,
    Scores,
    add_up,
    check_judgements,
    check_scores,
    check_weights,
)
from bittern.parallel import run_blocks
from bittern.progress import Bar
from bittern.relevance import Relevance

MOST_POINTS = 1_000_000
N_BLOCKS = 64  # of queries; fixed, so that sums do not depend on the number of threads


class RasterFusion(FittedFusion):
    r"""The weighted sum, with the weights of a grid that give the largest mean average precision.

    The grid holds every :math:`w` with :math:`\sum_s w_s = 1` whose entries are non-negative
    multiples of ``step`` (1 over a whole number).  Training queries with nothing relevant are left
    out.  Among equally good weights it takes those nearest to equal ones, then the first.

    ``weights_`` ``(sources,)`` are the weights found and ``mean_ap_`` is their mean average
    precision on the training queries; ``grid_`` and ``grid_ap_`` are all weights tried, and theirs.

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
        queries = _Queries.check(scores, relevant, self.normalise, self.n_threads, self._title)
        n_defined = int((queries.judged == 1).any(axis=1).sum())
        if n_defined == 0:
            raise InputError(f"{self._title}: no query has anything relevant to learn from.")
        grid = simplex(len(queries.scores), self.step, self._title)
        total, _, _ = queries.scan(grid, self._title)
        mean = total / n_defined
        best = np.lexsort((np.arange(len(grid)), (grid**2).sum(axis=1), -mean))[0]
        self.n_sources_ = len(queries.scores)
        self.weights_, self.mean_ap_ = grid[best], float(mean[best])
        self.grid_, self.grid_ap_ = grid, mean
        return self

    def combine(self, scores: ArrayLike) -> Float64Array:
        """The weighted sum of normalised scores, ``(queries, items)``."""
        s = self._fitted_scores(scores)
        return add_up(s, self.normalise, check_weights(self.weights_, s, self._title))


class OracleWeights(NamedTuple):
    """The best weights of each query, chosen by its judgements: a bound, not a method."""

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
    """The weights that give each single query its largest average precision.

    An *oracle* sees the judgements of the queries that it is measured on, so it shows what weights
    can do at best, not what a method does.  The whole grid of :class:`RasterFusion` is
    tried for every query.

    With many sources, use a coarse ``step`` and some ``n_refinements``.  Each of these halves the
    step and, for each query, moves that much weight between two sources as long as it helps,
    best move first.  The result is then a lower bound of the best on the finer grid.

    ``weighted_sum(scores, weights=found.weights)`` gives the fused scores, if all weights are
    defined.

    Reference: 4.1 of [Yavlinsky-2004].
    """
    owner = "oracle_weights"
    queries = _Queries.check(scores, relevant, normalise, n_threads, owner)
    check_count(n_refinements, f"{owner}: n_refinements", 0)
    grid = simplex(len(queries.scores), step, owner)
    _, best, ap = queries.scan(grid, owner)
    weights = grid[best]
    for round_ in range(1, n_refinements + 1):
        queries.climb(step / 2**round_, weights, ap)
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
    """Average precision of each query with each of the given weights, ``(queries, points)``.

    ``points`` is ``(points, sources)``, or ``(queries, points, sources)`` for separate points of
    each query.  Ties count in expectation; NaN where nothing is relevant.
    """
    owner = "precision_of_weights"
    queries = _Queries.check(scores, relevant, normalise, n_threads, owner)
    n_sources, n_queries = queries.scores.shape[:2]
    p = np.asarray(points, np.float64)
    if p.ndim == 2:
        p = np.broadcast_to(p, (n_queries, *p.shape))
    if p.ndim != 3 or (len(p), p.shape[2]) != (n_queries, n_sources) or not np.isfinite(p).all():
        raise InputError(
            f"{owner}: points must be finite, (points, {n_sources}) or ({n_queries}, points, "
            f"{n_sources}), got shape {p.shape}."
        )
    out = np.empty(p.shape[:2])

    def work(block: _Block) -> None:
        from bittern.kernels import fusion

        some = np.ascontiguousarray(p[block.rows])
        fusion.score_points(block.scores, block.judged, some, out[block.rows])

    queries.for_each_block(work)
    return out


def simplex(n_sources: int, step: float, owner: str = "simplex") -> Float64Array:
    """Every weight vector of the grid, ``(points, n_sources)``, in ascending order.

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
            f"points, more than {MOST_POINTS:,}; use a larger step."
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


class _Block(NamedTuple):
    """Some consecutive queries, their scores normalised."""

    number: int
    rows: slice
    scores: Float64Array  # (sources, len(rows), items)
    judged: NDArray[np.int8]  # (len(rows), items)


@dataclass(frozen=True, slots=True, eq=False)
class _Queries:
    """Scores and judgements of queries, processed in blocks over threads."""

    scores: Scores  # (sources, queries, items)
    judged: NDArray[np.int8]  # (queries, items)
    normalise: str
    n_threads: int | None

    @classmethod
    def check(
        cls,
        scores: ArrayLike,
        relevant: Relevance | ArrayLike,
        normalise: str,
        n_threads: int | None,
        owner: str,
    ) -> _Queries:
        s = check_scores(scores, owner, complete=True)
        judged = check_judgements(relevant, s.shape[1:], owner)
        NORMALISATIONS[normalise]  # an unknown name fails here and not in a thread
        return cls(s, judged, normalise, n_threads)

    def scan(
        self, grid: Float64Array, owner: str
    ) -> tuple[Float64Array, NDArray[np.int64], Float64Array]:
        """Sum of average precisions at each point; each query's best point and its value."""
        n_queries = len(self.judged)
        changed = np.zeros(len(grid), np.int64)
        changed[1:] = (grid[1:] != grid[:-1]).argmax(axis=1)
        best, ap = np.empty(n_queries, np.int64), np.empty(n_queries)
        sums = np.zeros((len(self._slices()), len(grid)))

        def work(block: _Block) -> None:
            from bittern.kernels import fusion

            number, rows, z, judged = block
            fusion.scan_grid(z, judged, grid, changed, sums[number], best[rows], ap[rows])

        with Bar(f"{owner}: {len(grid):,} weights") as bar:
            done = 0

            def report(n: int) -> None:
                nonlocal done
                done += n
                bar(done, n_queries)

            self.for_each_block(work, report)
        return sums.sum(axis=0), best, ap

    def climb(self, step: float, weights: Float64Array, ap: Float64Array) -> None:
        """Improve the weights of each query, and their average precision, in place."""

        def work(block: _Block) -> None:
            from bittern.kernels import fusion

            _, rows, z, judged = block
            fusion.climb(z, judged, step, weights[rows], ap[rows])

        self.for_each_block(work)

    def for_each_block(
        self, work: Callable[[_Block], None], report: Callable[[int], None] | None = None
    ) -> None:
        """Call ``work`` with every block; ``report`` gets the size of each finished one."""
        slices = self._slices()

        def run(number: int) -> None:
            rows = slices[number]
            z = np.ascontiguousarray(NORMALISATIONS[self.normalise](self.scores[:, rows]))
            work(_Block(number, rows, z, self.judged[rows]))

        def finished(number: int) -> None:
            if report is not None:
                report(slices[number].stop - slices[number].start)

        run_blocks(run, range(len(slices)), self.n_threads, finished)

    def _slices(self) -> list[slice]:
        n = len(self.judged)
        size = -(-n // N_BLOCKS)
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]
