"""Scalable discrete matrix factorisation hashing (SCRATCH)."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count, check_number
from bittern.hashing.base import Bits, Rows
from bittern.hashing.crossmodal.factors import Factorisation, feature_matrices
from bittern.hashing.crossmodal.projections import ProjectionHasher, choose_ridge, make_views
from bittern.hashing.itq import nearest_orthogonal
from bittern.hashing.targets import Targets
from bittern.progress import track

GAMMA = 1.0  # of the loadings and factors


class SCRATCH(ProjectionHasher):
    r"""Factors that reconstruct features and labels, and that each modality can predict.

    For n pairs with labels L (n, c) and features :math:`X_t` (n, :math:`m_t`) of images and texts,
    find factors V (n, b), codes :math:`B \in \{-1, 1\}^{n \times b}` and an orthogonal R that
    minimise

    .. math:: \sum_t \Big( \tfrac{1}{2 m_t} \|X_t - V U_t\|^2 + \mu \|V - X_t W_t\|^2
        + \mu \rho \|W_t\|^2 \Big) + \alpha \|L - V G\|^2 + \|B - V R\|^2
        + \gamma \Big( \sum_t \|U_t\|^2 + \|G\|^2 + \|V\|^2 \Big)

    in turn over B, U and G, V, W, and R, each in closed form.  Bits are the signs of
    :math:`x_t^\top W_t R`; ``training_bits_`` are the signs of V R.

    ``alpha`` is α, ``mu`` is μ, and ρ is ``ridge`` times the number of pairs, for features scaled
    to mean square 1; γ is 1.  ``kernel``, ``n_anchors`` and ``ridge`` are as in
    :class:`~bittern.hashing.crossmodal.DCH`.  L are the classes or tags as zeros and ones, minus
    their means; for a Relevance, the affinities to at most 256 random pairs.
    Deviations: the original has labels that are not centred, γ = 5 for W as well, and features
    whose weight grows with the number of columns.

    Reference: [Li-Chen-Zhang-2018].
    """

    name = "scratch"
    needs_y = True

    training_bits_: Bits
    objectives_: Float64Array  # (n_iter,)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        kernel: str = "rbf",
        n_anchors: int = 500,
        alpha: float = 500.0,
        mu: float = 1000.0,
        ridge: float | None = None,
        n_iter: int = 20,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.alpha = alpha
        self.mu = mu
        self.ridge = ridge
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._check()
        rng = self._generator()
        views = make_views(images, texts, self.kernel, self.n_anchors, rng, self._title)
        ridge = choose_ridge(self.ridge, self.kernel, self._title)
        L = targets.indicators(rng).astype(np.float64)
        matrices = [*feature_matrices(views), (self.alpha, L - L.mean(axis=0))]
        problem = Factorisation(matrices, views, self.mu, ridge, GAMMA)
        V = rng.standard_normal((len(images), self.n_bits))
        R = np.linalg.qr(rng.standard_normal((self.n_bits, self.n_bits)))[0]
        W = problem.predictors(V)
        objectives = []
        for _ in track(range(self.n_iter), f"{self._title}: learning the codes"):
            B = np.where(V @ R > 0, 1.0, -1.0)
            U = problem.loadings(V)
            V = problem.factors(U, W, B @ R.T)
            W = problem.predictors(V)
            R = nearest_orthogonal(V.T @ B)
            objectives.append(problem.objective(V, U, W) + np.square(B - V @ R).sum())
            self._keep(
                image_function_=views[0].function(W[0] @ R),
                text_function_=views[1].function(W[1] @ R),
                training_bits_=V @ R > 0,
                objectives_=np.array(objectives),
            )

    def _check(self) -> None:
        check_number(self.alpha, f"{self._title}: alpha", least=0)
        check_number(self.mu, f"{self._title}: mu", above=0)
        check_count(self.n_iter, f"{self._title}: n_iter")
