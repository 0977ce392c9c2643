"""Discrete latent factor hashing: codes under which a logistic model explains the similarities."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count, check_number
from bittern.hashing.base import Bits, Rows
from bittern.hashing.crossmodal.projections import ProjectionHasher, make_views
from bittern.hashing.discrete_codes import random_codes
from bittern.hashing.targets import Targets
from bittern.progress import track


class DLFH(ProjectionHasher):
    r"""Discrete latent factor hashing: codes that explain which pairs are similar.

    Images have codes U and texts codes V, both in :math:`\{-1, 1\}^{n \times b}`.  With the
    affinities S in [0, 1] and weights c, the codes maximise

    .. math:: \sum_{ij} c_{ij} \left( S_{ij} \theta_{ij} - \log (1 + e^{\theta_{ij}}) \right),
        \qquad \theta_{ij} = \tfrac{\lambda}{b} \, u_i^\top v_j.

    If ``balanced``, similar and dissimilar pairs have the same total weight.  Otherwise all weights
    are 1, as in the original; if few pairs are similar, the largest sum is then near a trivial one,
    where every text has the code opposite to that of every image.

    Each of ``n_iter`` rounds draws ``n_columns`` random pairs J (as many as bits, by default), then
    updates U bit by bit against the texts of J, and V against the images of J.  A bit maximises a
    lower bound that is quadratic, as the curvature is at most a quarter:

    .. math:: u_{ik} = \operatorname{sgn} \sum_{j \in J} c_{ij} \Big( \tfrac{\lambda}{b}
        \big( S_{ij} - \sigma(\theta_{ij}) \big) v_{jk} + \tfrac{\lambda^2}{4 b^2} u_{ik} \Big),

    so the sum over J never falls.  The hash functions are ridge regressions of U on the features of
    the images and of V on those of the texts, without a constant term; the penalty is ``ridge``
    times the number of pairs, for features scaled to mean square 1.

    ``strength`` is λ; ``kernel`` and ``n_anchors`` are as in
    :class:`~bittern.hashing.crossmodal.DCH`.  ``training_bits_`` is U and ``training_text_bits_``
    V.

    Reference: [Jiang-Li-2019].
    """

    name = "dlfh"
    needs_y = True

    training_bits_: Bits
    training_text_bits_: Bits

    def __init__(
        self,
        n_bits: int = 32,
        *,
        kernel: str = "rbf",
        n_anchors: int = 1000,
        strength: float = 8.0,
        n_columns: int | None = None,
        balanced: bool = True,
        ridge: float = 1e-2,
        n_iter: int = 30,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.strength = strength
        self.n_columns = n_columns
        self.balanced = balanced
        self.ridge = ridge
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._check()
        rng = self._generator()
        views = make_views(images, texts, self.kernel, self.n_anchors, rng, self._title)
        maps = [view.ridge_map(self.ridge) for view in views]
        U, V = (random_codes(len(images), self.n_bits, rng) for _ in range(2))
        for _ in track(range(self.n_iter), f"{self._title}: learning the codes"):
            chosen = np.sort(rng.permutation(len(images))[: self.n_columns or self.n_bits])
            S = targets.affinity(columns=chosen).astype(np.float64)
            U = likelier_codes(U, V[chosen], S, self._weights(S), self.strength)
            S = targets.affinity(rows=chosen).T.astype(np.float64)
            V = likelier_codes(V, U[chosen], S, self._weights(S), self.strength)
            (P, _), (Q, _) = (ridge.solve(codes) for ridge, codes in zip(maps, (U, V), strict=True))
            self._keep(
                image_function_=views[0].function(P),
                text_function_=views[1].function(Q),
                training_bits_=U > 0,
                training_text_bits_=V > 0,
            )

    def _weights(self, S: Float64Array) -> Float64Array:
        share = float(S.mean())
        if not self.balanced or share in (0, 1):
            return np.ones_like(S)
        return S / (2 * share) + (1 - S) / (2 - 2 * share)

    def _check(self) -> None:
        check_number(self.strength, f"{self._title}: strength", above=0)
        check_number(self.ridge, f"{self._title}: ridge", above=0)
        check_count(self.n_iter, f"{self._title}: n_iter")
        if self.n_columns is not None:
            check_count(self.n_columns, f"{self._title}: n_columns")


def likelier_codes(
    U: Float64Array, V: Float64Array, S: Float64Array, weights: Float64Array, strength: float
) -> Float64Array:
    """Codes U ``(n, b)`` under which affinities S ``(n, m)`` to codes V ``(m, b)`` are likelier."""
    from scipy.special import expit

    U, n_bits = U.copy(), V.shape[1]
    scale = strength / n_bits
    theta, bound = scale * U @ V.T, scale / 4 * weights.sum(axis=1)
    for k in range(n_bits):
        pull = (weights * (S - expit(theta))) @ V[:, k] + bound * U[:, k]
        column = np.where(pull < 0, -1.0, 1.0)
        theta += scale * np.outer(column - U[:, k], V[:, k])
        U[:, k] = column
    return U
