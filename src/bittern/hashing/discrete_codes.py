"""Codes from which labels can be predicted, and which functions of the rows can predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bittern.checks import Float64Array

MAX_ROUNDS = 10  # of a discrete step, over all bits


class RidgeMap:
    r"""Ridge regression on columns Φ ``(n, m)`` with means 0, for any number of targets.

    The best P and p of :math:`\|B - \Phi P - 1 p^\top\|^2 + \delta \|P\|^2` are
    :math:`P = (\Phi^\top \Phi + \delta I)^{-1} \Phi^\top B` and the column means of B; without a
    ``constant``, p is 0.
    """

    def __init__(self, values: Float64Array, penalty: float, constant: bool = True) -> None:
        from scipy.linalg import cho_factor

        gram = values.T @ values
        gram[np.diag_indices_from(gram)] += penalty
        self._factor = cho_factor(gram, overwrite_a=True)
        self.values, self.penalty, self._constant = values, penalty, constant

    def solve(self, B: Float64Array) -> tuple[Float64Array, Float64Array]:
        """The best P ``(m, b)`` and p ``(b,)`` for targets B ``(n, b)``."""
        from scipy.linalg import cho_solve

        P = cho_solve(self._factor, self.values.T @ B)
        return P, B.mean(axis=0) if self._constant else np.zeros(B.shape[1])


@dataclass(frozen=True)
class Solution:
    """Codes, and the best classifier and hash functions for them."""

    B: Float64Array  # (n, n_bits)
    W: Float64Array  # (n_bits, c)
    functions: list[tuple[Float64Array, Float64Array]]  # P (m, n_bits) and p (n_bits,) of each map
    objective: float


class DiscreteProblem:
    r"""Codes that predict labels Y and that ridge regressions can predict.

    With a weight :math:`\nu_t` for each map, minimises over
    :math:`B \in \{-1, 1\}^{n \times b}`, W, and all P and p

    .. math:: \|Y - B W\|^2 + \lambda \|W\|^2 + \sum_t \nu_t \left(
        \|B - \Phi_t P_t - 1 p_t^\top\|^2 + \delta_t \|P_t\|^2 \right).
    """

    def __init__(
        self,
        maps: Sequence[RidgeMap],
        weights: Sequence[float],
        Y: Float64Array,
        penalty: float,
    ) -> None:
        self._maps = list(zip(maps, weights, strict=True))
        self._Y, self._penalty = Y, penalty

    def solve(self, B: Float64Array) -> Solution:
        """The best W, P and p for these codes."""
        from scipy.linalg import solve

        gram = B.T @ B + self._penalty * np.eye(B.shape[1])
        W = solve(gram, B.T @ self._Y, assume_a="pos")
        objective = np.square(self._Y - B @ W).sum() + self._penalty * np.square(W).sum()
        functions = [ridge.solve(B) for ridge, _ in self._maps]
        for (ridge, weight), (P, p) in zip(self._maps, functions, strict=True):
            hashed = np.square(B - ridge.values @ P - p).sum() + ridge.penalty * np.square(P).sum()
            objective += weight * hashed
        return Solution(B, W, functions, float(objective))

    def improve(self, last: Solution) -> Solution:
        """The best of a discrete step from zeros, one from the last codes, and ``last`` itself."""
        linear = self._Y @ last.W.T
        for (ridge, weight), (P, p) in zip(self._maps, last.functions, strict=True):
            linear += weight * (ridge.values @ P + p)
        starts = np.zeros_like(last.B), last.B
        found = [self.solve(discrete_step(start, last.W, linear)) for start in starts]
        return min(*found, last, key=lambda solution: solution.objective)


def discrete_step(B: Float64Array, W: Float64Array, linear: Float64Array) -> Float64Array:
    """Codes that minimise ‖B W‖² - 2 Σ linear · B in each column, after at most ten rounds."""
    B, gram = np.array(B, order="F"), W @ W.T
    for _ in range(MAX_ROUNDS):
        changed = False
        for k in range(B.shape[1]):
            pull = linear[:, k] - B @ gram[:, k] + B[:, k] * gram[k, k]
            pull = np.where(pull == 0, B[:, k], pull)
            column = np.where(pull < 0, -1.0, 1.0)
            changed |= bool((column != B[:, k]).any())
            B[:, k] = column
        if not changed:
            break
    return B


def random_codes(n: int, n_bits: int, rng: np.random.Generator) -> Float64Array:
    """Random signs ``(n, n_bits)``, to start from."""
    return np.where(rng.random((n, n_bits)) < 0.5, -1.0, 1.0)
