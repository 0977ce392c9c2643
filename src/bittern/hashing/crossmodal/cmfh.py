"""Collective matrix factorisation hashing: factors that both modalities share."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count, check_number
from bittern.hashing.base import Bits, Rows
from bittern.hashing.crossmodal.factors import Factorisation, feature_matrices
from bittern.hashing.crossmodal.projections import ProjectionHasher, View
from bittern.hashing.targets import Targets
from bittern.progress import track

GAMMA = 1e-2  # of the loadings and factors


class CMFH(ProjectionHasher):
    r"""Collective matrix factorisation hashing: signs of factors that both modalities share.

    For n pairs without labels, and features :math:`X_t` (n, :math:`m_t`) of images and texts, find
    factors V (n, b) that minimise

    .. math:: \sum_t \Big( \tfrac{1}{2 m_t} \|X_t - V U_t\|^2 + \mu \|V - X_t W_t\|^2
        + \mu \rho \|W_t\|^2 \Big) + \gamma \Big( \sum_t \|U_t\|^2 + \|V\|^2 \Big)

    in turn over U, V and W, each in closed form.  Bits are the signs of :math:`x_t^\top W_t`;
    ``training_bits_`` are the signs of V.

    ``mu`` is μ, and ρ is ``ridge`` times the number of pairs; γ is 0.01.  The features are the rows
    minus their mean, scaled to mean square 1.  Deviations: in the original the weight of a modality
    grows with its columns and scale, and γ is the penalty of W as well.

    Reference: [Ding-Guo-Zhou-2014].
    """

    name = "cmfh"

    training_bits_: Bits
    objectives_: Float64Array  # (n_iter,)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        mu: float = 100.0,
        ridge: float = 0.1,
        n_iter: int = 25,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.mu = mu
        self.ridge = ridge
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        check_number(self.mu, f"{self._title}: mu", above=0)
        check_number(self.ridge, f"{self._title}: ridge", above=0)
        check_count(self.n_iter, f"{self._title}: n_iter")
        views = View.linear(images), View.linear(texts)
        problem = Factorisation(feature_matrices(views), views, self.mu, self.ridge, GAMMA)
        V = self._generator().standard_normal((len(images), self.n_bits))
        W = problem.predictors(V)
        objectives = []
        for _ in track(range(self.n_iter), f"{self._title}: factorising"):
            U = problem.loadings(V)
            V = problem.factors(U, W)
            W = problem.predictors(V)
            objectives.append(problem.objective(V, U, W))
            self._keep(
                image_function_=views[0].function(W[0]),
                text_function_=views[1].function(W[1]),
                training_bits_=V > 0,
                objectives_=np.array(objectives),
            )
