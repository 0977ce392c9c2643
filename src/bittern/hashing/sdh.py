"""Supervised discrete hashing: codes from which a linear classifier predicts the labels."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count, check_number
from bittern.hashing.base import Rows
from bittern.hashing.discrete_codes import DiscreteProblem, RidgeMap, random_codes
from bittern.hashing.kernel_maps import (
    KernelHasher,
    choose_anchors,
    gaussian,
    mean_square,
    onnx_gaussian,
    onnx_margins_with_ones,
    square_distances,
    with_ones,
)
from bittern.hashing.linear import margins
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph
from bittern.progress import track

RIDGE = 1e-2  # δ


class SDH(KernelHasher):
    r"""Supervised discrete hashing: codes from which a linear classifier predicts the labels.

    For n rows with labels Y (n, c) and kernel values Φ (n, m), find codes
    :math:`B \in \{-1, 1\}^{n \times b}`, a classifier W and a hash function P, p that minimise

    .. math:: \|Y - B W\|^2 + \lambda \|W\|^2
        + \nu \left( \|B - \Phi P - 1 p^\top\|^2 + \delta \|P\|^2 \right)

    alternately: W and P by ridge regression, :math:`W = (B^\top B + \lambda I)^{-1} B^\top Y`,
    :math:`P = (\Phi^\top \Phi + \delta I)^{-1} \Phi^\top B` (Φ has column means 0, and p is the
    mean of B); then B column by column (discrete cyclic coordinate descent).  With :math:`w_k` the
    k-th row of W, and a bar for the other columns and rows, the best column is

    .. math:: b_k = \operatorname{sgn}\left( Y w_k - \bar B \bar W w_k
        + \nu (\Phi p_k + p_{0k}) \right),

    repeated until no entry changes, at most ten rounds.  A bit of x is 1 if
    :math:`\phi(x)^\top p_k + p_{0k} > 0`, for training rows as well.

    Φ are Gaussian kernels with ``n_anchors`` random training rows, minus their means; ``nu`` is ν,
    ``penalty`` is λ, and δ is 0.01.  Y are the classes or tags as zeros and ones; for a Relevance,
    the affinities to at most 256 random rows.  ``width`` is the kernel's σ², by default half the
    mean squared distance of training rows from anchors.  Deviations: the original tunes σ for each
    dataset, penalises p like P, and starts each discrete step from zeros, which may increase the
    objective.  Here a second step starts from the last codes, and the one with the lower objective
    after W and P are updated is kept, so that the objective never increases.

    Reference: [Shen-Shen-Liu-Shen-2015].
    """

    name = "sdh"
    needs_y = True
    cost_power = 2

    objectives_: Float64Array  # (1 + n_iter,); the first is of random codes

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 1000,
        width: float | None = None,
        nu: float = 1e-5,
        penalty: float = 1.0,
        n_iter: int = 5,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.width = width
        self.nu = nu
        self.penalty = penalty
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._check()
        rng = self._generator()
        anchors = choose_anchors(X, self.n_anchors, rng)
        values = square_distances(X, anchors)
        width = float(self.width or mean_square(values) / 2)
        values *= -0.5 / width
        mean = np.exp(values, out=values).mean(axis=0)
        values -= mean
        Y = targets.indicators(rng).astype(np.float64)
        maps, weights = [RidgeMap(values, RIDGE)], [float(self.nu)]
        problem = DiscreteProblem(maps, weights, Y, float(self.penalty))
        solution = problem.solve(random_codes(len(X), self.n_bits, rng))
        objectives = [solution.objective]
        for _ in track(range(self.n_iter), f"{self._title}: learning the codes"):
            solution = problem.improve(solution)
            objectives.append(solution.objective)
            ((P, p),) = solution.functions
            self._keep(
                anchors_=anchors,
                width_=width,
                mean_=np.append(mean, 0),
                projection_=np.vstack((P, p)),
                objectives_=np.array(objectives),
            )

    def _check(self) -> None:
        check_count(self.n_anchors, f"{self._title}: n_anchors")
        check_count(self.n_iter, f"{self._title}: n_iter")
        check_number(self.nu, f"{self._title}: nu", least=0)
        check_number(self.penalty, f"{self._title}: penalty", above=0)
        if self.width is not None:
            check_number(self.width, f"{self._title}: width", above=0)

    def _logits(self, X: Rows) -> Rows:
        values = with_ones(gaussian(X, self.anchors_, self.width_))
        return margins(values, self.mean_, self.projection_)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        values = onnx_gaussian(graph, rows, self.anchors_, self.width_)
        return onnx_margins_with_ones(graph, values, self.mean_, self.projection_)
