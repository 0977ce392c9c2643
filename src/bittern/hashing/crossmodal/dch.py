"""Discrete cross-modal hashing: one code per pair, from which a classifier predicts the labels."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count, check_number
from bittern.hashing.base import Bits, Rows
from bittern.hashing.crossmodal.projections import ProjectionHasher, choose_ridge, make_views
from bittern.hashing.discrete_codes import DiscreteProblem, random_codes
from bittern.hashing.targets import Targets
from bittern.progress import track


class DCH(ProjectionHasher):
    r"""Discrete cross-modal hashing: codes of pairs from which a classifier predicts the labels.

    For n pairs with labels L (n, c) and features X and Y of images and texts, find codes
    :math:`B \in \{-1, 1\}^{n \times b}`, a classifier W, and hash functions P and Q that minimise

    .. math:: \|L - B W\|^2 + \lambda \|W\|^2 + \mu \left( \|B - X P\|^2 + \rho \|P\|^2
        + \|B - Y Q\|^2 + \rho \|Q\|^2 \right)

    alternately, as :class:`~bittern.hashing.SDH` does for one modality: W, P and Q by ridge
    regression, B bit by bit.  Bits are the signs of :math:`x^\top P` and :math:`y^\top Q`;
    ``training_bits_`` is B.

    ``penalty`` is λ and ``mu`` is μ; ρ is ``ridge`` times the number of pairs, for features scaled
    to mean square 1.  The features are Gaussian kernels with ``n_anchors`` random training rows
    (``kernel="rbf"``) or the rows (``"linear"``); ``ridge`` defaults to 0.001 and 0.1.  L are the
    classes or tags as zeros and ones; for a Relevance, the affinities to at most 256 random pairs.
    The functions have no constant term, as in the original: the features have mean 0, so each bit
    divides the training rows about evenly.  With a constant term, weak features such as those of
    Wiki give bits that are nearly constant.  Deviation: in the original the weights μ of images and
    texts may differ.

    Reference: [Xu-Shen-Yang-Shen-Li-2017].
    """

    name = "dch"
    needs_y = True

    training_bits_: Bits
    objectives_: Float64Array  # (1 + n_iter,); the first is of random codes

    def __init__(
        self,
        n_bits: int = 32,
        *,
        kernel: str = "rbf",
        n_anchors: int = 1000,
        mu: float = 1e-3,
        penalty: float = 1.0,
        ridge: float | None = None,
        n_iter: int = 5,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.mu = mu
        self.penalty = penalty
        self.ridge = ridge
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._check()
        rng = self._generator()
        views = make_views(images, texts, self.kernel, self.n_anchors, rng, self._title)
        ridge = choose_ridge(self.ridge, self.kernel, self._title)
        maps = [view.ridge_map(ridge) for view in views]
        L = targets.indicators(rng).astype(np.float64)
        problem = DiscreteProblem(maps, [float(self.mu)] * 2, L, float(self.penalty))
        solution = problem.solve(random_codes(len(images), self.n_bits, rng))
        objectives = [solution.objective]
        for _ in track(range(self.n_iter), f"{self._title}: learning the codes"):
            solution = problem.improve(solution)
            objectives.append(solution.objective)
            (P, _), (Q, _) = solution.functions
            self._keep(
                image_function_=views[0].function(P),
                text_function_=views[1].function(Q),
                training_bits_=solution.B > 0,
                objectives_=np.array(objectives),
            )

    def _check(self) -> None:
        check_number(self.mu, f"{self._title}: mu", least=0)
        check_number(self.penalty, f"{self._title}: penalty", above=0)
        check_count(self.n_iter, f"{self._title}: n_iter")
