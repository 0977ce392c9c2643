"""Co-regularised hashing: margins within, agreement across modalities, boosted bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_count, check_number
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.cmssh import leading_pair
from bittern.hashing.crossmodal.pairs import Boosting, Pairs
from bittern.hashing.crossmodal.projections import ProjectionHasher, View
from bittern.hashing.targets import Targets
from bittern.progress import track

A, LAMBDA = 3.7, 1 / 3.7  # where the loss of dissimilar pairs bends and ends: λ and aλ = 1
DECAY = 0.01  # of the weights
N_TURNS, N_LINEARISATIONS, N_STEPS = 2, 2, 15  # of both modalities; of a modality; of L-BFGS


class CRH(ProjectionHasher):
    r"""Co-regularised hashing: similar pairs agree, dissimilar ones do not, rows keep a margin.

    A bit is the sign of :math:`w_x^\top x` for images, of :math:`w_y^\top y` for texts.  Over the
    training rows and ``n_pairs`` pairs n, similar (:math:`s_n = 1`) or not (0) by ``y``, with
    weights :math:`\omega_n` that sum to 1, the two minimise

    .. math:: \frac1I \sum_i [1 - |w_x^\top x_i|]_+ + \frac1J \sum_j [1 - |w_y^\top y_j|]_+
        + \gamma \sum_n \omega_n \big( s_n d_n^2 + (1 - s_n)\, \tau(d_n) \big)
        + \frac{\lambda_x}{2} \|w_x\|^2 + \frac{\lambda_y}{2} \|w_y\|^2

    with :math:`d_n = w_x^\top x_n - w_y^\top y_n` and

    .. math:: \tau(d) = \begin{cases} -\frac12 d^2 + \frac12 a \lambda^2 & |d| \le \lambda \\
        (d^2 - 2 a \lambda |d| + a^2 \lambda^2) / (2 (a - 1)) & \lambda < |d| \le a \lambda \\
        0 & \text{otherwise.} \end{cases}

    The modalities take turns.  For each, the objective is a difference of convex functions; the
    concave part is replaced by its tangent, which bounds it, and the convex rest is minimised, so
    that the objective never increases.  After a bit, pairs on which it errs gain weight, as in
    AdaBoost, and the next bit is learned; after a bit that errs on half of the weight, boosting
    begins anew with other pairs.

    ``gamma`` is γ; a = 3.7, λ = 1/a, :math:`\lambda_x = \lambda_y` = 0.01.  Each bit starts at the
    leading pair of :class:`~bittern.hashing.crossmodal.CMSSH`.  The original solves the convex
    problems by stochastic subgradients; here it is L-BFGS, 15 steps for each of two tangents, in
    two turns.  Written from memory of the paper; its text was not at hand.  After Ctrl-C, bits that
    are not learned yet are 0 for every row.

    Reference: [Zhen-Yeung-2012].
    """

    name = "crh"
    needs_y = True

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_pairs: int = 50_000,
        gamma: float = 1000.0,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.n_pairs = n_pairs
        self.gamma = gamma
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        check_count(self.n_pairs, f"{self._title}: n_pairs", 2)
        check_number(self.gamma, f"{self._title}: gamma", above=0)
        image, text = View.linear(images), View.linear(texts)
        boosting = Boosting(targets, self.n_pairs, self._generator())
        W, V = (np.zeros((view.features.shape[1], self.n_bits)) for view in (image, text))
        for k in track(range(self.n_bits), f"{self._title}: learning the bits"):
            W[:, k], V[:, k] = self._bit(
                image.features, text.features, boosting.pairs, boosting.weights
            )
            boosting.after(image.features @ W[:, k] > 0, text.features @ V[:, k] > 0)
            self._keep(
                image_function_=image.function(W.copy()), text_function_=text.function(V.copy())
            )

    def _bit(
        self, X: Float64Array, Y: Float64Array, pairs: Pairs, weights: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """The weights of a bit for both modalities."""
        w, v = leading_pair(X, Y, pairs, weights * np.where(pairs.similar, 1.0, -1.0))
        w, v = (side / (np.abs(Z @ side).mean() or 1.0) for Z, side in ((X, w), (Y, v)))
        common = pairs.similar, self.gamma * weights
        for _ in range(N_TURNS):
            w = Side(X, pairs.images, (Y @ v)[pairs.texts], *common).descend(w)
            v = Side(Y, pairs.texts, (X @ w)[pairs.images], *common).descend(v)
        return w, v


@dataclass(frozen=True, eq=False)
class Side:
    """The objective as a function of the weights of one modality."""

    rows: Float64Array  # (n, m)
    place: NDArray[np.intp]  # (n_pairs,) row of each pair
    other: Float64Array  # (n_pairs,) value of the other modality
    similar: NDArray[np.bool_]  # (n_pairs,)
    weight: Float64Array  # (n_pairs,)

    def descend(self, w: Float64Array) -> Float64Array:
        """Weights with an objective that is not larger."""
        from scipy.optimize import minimize

        for _ in range(N_LINEARISATIONS):
            found = minimize(
                self.bound(w), w, jac=True, method="L-BFGS-B", options={"maxiter": N_STEPS}
            )
            w = found.x
        return w

    def objective(self, w: Float64Array) -> float:
        """The objective, without what does not depend on these weights."""
        values = self.rows @ w
        d = values[self.place] - self.other
        loss = np.where(self.similar, d**2, tau(d))
        margin = np.maximum(1 - np.abs(values), 0).mean()
        return float(margin + self.weight @ loss + DECAY / 2 * w @ w)

    def bound(self, at: Float64Array) -> Callable[[Float64Array], tuple[float, Float64Array]]:
        """A convex bound of the objective that touches it at ``at``, up to a constant; its slope.

        The margin of z is max(|z|, 1) - |z|, and τ is a convex part minus a parabola; tangents
        replace what is subtracted.  All but the convex part of τ is, for each row, a parabola
        :math:`q z^2 + l z` of its value z beside max(|z|, 1); pairs are summed up once.
        """
        n, before = len(self.rows), self.rows @ at
        place, other, weight = (
            part[~self.similar] for part in (self.place, self.other, self.weight)
        )
        alike = np.where(self.similar, self.weight, 0.0)
        quadratic = np.bincount(self.place, alike, minlength=n)
        linear = np.where(before > 0, -1 / n, 1 / n)
        linear -= 2 * np.bincount(self.place, alike * self.other, minlength=n)
        linear -= np.bincount(place, weight * (before[place] - other), minlength=n)

        def value_and_slope(w: Float64Array) -> tuple[float, Float64Array]:
            values = self.rows @ w
            size = np.abs(values)
            d = values[place] - other
            value = np.maximum(size, 1).mean() + values @ (quadratic * values + linear)
            pull = tau_convex_slope(d)
            value += weight @ height(pull) + DECAY / 2 * w @ w
            slope = np.where(size > 1, np.sign(values) / n, 0.0) + 2 * quadratic * values + linear
            slope += np.bincount(place, weight * pull, minlength=n)
            return float(value), slope @ self.rows + DECAY * w

        return value_and_slope


def tau(d: Float64Array) -> Float64Array:
    """The loss of a dissimilar pair: largest at 0, and 0 beyond aλ."""
    return tau_convex(d) - d**2 / 2 + A * LAMBDA**2 / 2


def tau_convex(d: Float64Array) -> Float64Array:
    """The convex part of τ; the rest is a parabola, subtracted."""
    return height(tau_convex_slope(d))


def tau_convex_slope(d: Float64Array) -> Float64Array:
    """The derivative of the convex part: 0 up to λ, then linear up to aλ, then d."""
    size = np.abs(d)
    slope = np.minimum(np.maximum(A / (A - 1) * (size - LAMBDA), 0), size)
    return np.copysign(slope, d)


def height(slope: Float64Array) -> Float64Array:
    """The convex part of τ where it has this slope."""
    square = slope**2
    return (square - np.minimum(square, (A * LAMBDA) ** 2) / A) / 2
