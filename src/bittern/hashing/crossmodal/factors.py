"""Matrix factors that reconstruct several matrices, and that each modality can predict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bittern.checks import Float64Array
from bittern.hashing.crossmodal.projections import View
from bittern.hashing.discrete_codes import RidgeMap


class Factorisation:
    r"""Factors V ``(n, b)`` of matrices A with weights λ, predicted from the features of pairs.

    Minimises, in turn over U, V and W, each in closed form,

    .. math:: \sum_j \lambda_j \|A_j - V U_j\|^2
        + \mu \sum_t \left( \|V - X_t W_t\|^2 + \rho \|W_t\|^2 \right)
        + \gamma \Big( \sum_j \|U_j\|^2 + \|V\|^2 \Big),

    where ρ is ``ridge`` times the number of pairs.
    """

    def __init__(
        self,
        matrices: Sequence[tuple[float, Float64Array]],
        views: Sequence[View],
        mu: float,
        ridge: float,
        gamma: float,
    ) -> None:
        self._matrices, self._mu, self._gamma = matrices, mu, gamma
        self._maps: list[RidgeMap] = [view.ridge_map(ridge) for view in views]

    def loadings(self, V: Float64Array) -> list[Float64Array]:
        """The best U for these factors."""
        gram, penalty = V.T @ V, self._gamma * np.eye(V.shape[1])
        return [_solve(weight * gram + penalty, weight * V.T @ A) for weight, A in self._matrices]

    def predictors(self, V: Float64Array) -> list[Float64Array]:
        """The best W for these factors."""
        return [ridge.solve(V)[0] for ridge in self._maps]

    def factors(
        self,
        U: list[Float64Array],
        W: list[Float64Array],
        target: Float64Array | None = None,
    ) -> Float64Array:
        """The best V; with a target ``(n, b)``, its squared distance from V is added."""
        diagonal = self._mu * len(self._maps) + self._gamma + (target is not None)
        gram = diagonal * np.eye(len(U[0]))
        pull = np.zeros((len(self._maps[0].values), len(U[0]))) if target is None else target.copy()
        for ridge, w in zip(self._maps, W, strict=True):
            pull += self._mu * (ridge.values @ w)
        for (weight, A), u in zip(self._matrices, U, strict=True):
            gram += weight * u @ u.T
            pull += weight * A @ u.T
        return _solve(gram, pull.T).T

    def objective(self, V: Float64Array, U: list[Float64Array], W: list[Float64Array]) -> float:
        """The value that is minimised, without a target."""
        size = self._gamma * np.square(V).sum()
        for (weight, A), u in zip(self._matrices, U, strict=True):
            size += weight * np.square(A - V @ u).sum() + self._gamma * np.square(u).sum()
        for ridge, w in zip(self._maps, W, strict=True):
            apart = np.square(V - ridge.values @ w).sum() + ridge.penalty * np.square(w).sum()
            size += self._mu * apart
        return float(size)


def feature_matrices(views: Sequence[View]) -> list[tuple[float, Float64Array]]:
    """The features of each modality, with equal weights that do not grow with their columns."""
    return [(1 / (len(views) * view.features.shape[1]), view.features) for view in views]


def _solve(gram: Float64Array, right: Float64Array) -> Float64Array:
    from scipy.linalg import solve

    return solve(gram, right, assume_a="pos")
