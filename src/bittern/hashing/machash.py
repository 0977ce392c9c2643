"""MACHash: the method of auxiliary coordinates, which makes codes and linear functions agree."""

from __future__ import annotations

import numpy as np
from numba import njit

from bittern.checks import (
    Float32Array,
    Float64Array,
    check_choice,
    check_count,
    check_number,
)
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.graph_cuts import (
    LOSSES,
    AffinityPairs,
    Block,
    Counts,
    Longs,
    Signs,
    choose_bits,
    count_differences,
    loss_steps,
    make_blocks,
    set_weights,
)
from bittern.hashing.kernel_maps import onnx_margins_with_ones, with_ones
from bittern.hashing.linear import margins
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph
from bittern.progress import track

GROWTH = 1.4  # of μ from one iteration to the next
N_EPOCHS = 20  # of a bit's classifier in one iteration
TOLERANCE = 0.05  # of a classifier's optimality conditions


class MACHash(Hasher):
    r"""Auxiliary coordinates: alternate between codes of least loss and linear hash functions.

    Learning linear hash functions h for a loss L of codes directly is hard because codes are
    discrete.  Here the codes Z of the training rows are separate variables,

    .. math:: \min_{Z, h} L(Z) + \mu \sum_i \|z_i - h(x_i)\|^2, \qquad Z \in \{-1, 1\}^{n \times b},

    and μ, at first ``mu``, grows by the factor 1.4 from one iteration to the next.  Each iteration
    has two steps:

    - given Z, each bit of h is a linear support vector machine (squared hinge loss, parameter
      ``C``) that predicts the bit of Z from the row, centred and scaled to mean squared length 1;
    - given h, each bit of Z in turn is chosen for the least sum.  With the other bits fixed, L is
      a quadratic function of it whose weights are not negative inside blocks of rows of affinity
      1; a minimum cut finds the best bits of one block after another.

    It ends when Z = h(X), or after ``n_iter`` iterations.  The first Z is found without h.  L is
    the sum over pairs of one of the losses of :class:`~bittern.hashing.FastHash` for the share of
    bits in which a pair differs, scaled so that a row's pairs weigh as much as its bits;
    ``"ksh"``, :math:`(z_i^\top z_j / b - 2 a_{ij} + 1)^2`, is the original's.

    Each row is paired with ``n_pairs`` random rows of affinity above 0 and as many of affinity 0.
    Deviations: a support vector machine starts from the last iteration's solution instead of from
    scratch, and passes over the rows at most 20 times.

    Reference: [Raziperchikolaei-Carreira-Perpinan-2016].
    """

    name = "machash"
    needs_y = True
    cost_power = 1

    mean_: Float64Array  # (dim + 1,) the mean, with a 0 appended
    projection_: Float64Array  # (dim + 1, n_bits) for rows with a 1 appended

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "ksh",
        n_pairs: int = 100,
        mu: float = 0.1,
        C: float = 1.0,
        n_iter: int = 15,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.loss = loss
        self.n_pairs = n_pairs
        self.mu = mu
        self.C = C
        self.n_iter = n_iter
        self.random_state = random_state

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """PyMaxflow, which chooses bits."""
        return ("maxflow",)

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        check_choice(self.loss, f"{self._title}: loss", tuple(LOSSES))
        check_count(self.n_pairs, f"{self._title}: n_pairs")
        check_count(self.n_iter, f"{self._title}: n_iter")
        mu = check_number(self.mu, f"{self._title}: mu", above=0)
        check_number(self.C, f"{self._title}: C", above=0)
        rng = self._generator()
        pairs = AffinityPairs.sample(targets, self.n_pairs, self.n_pairs, rng)
        codes = AuxiliaryCoordinates(pairs, make_blocks(pairs, rng), self.loss, self.n_bits, rng)
        classifiers = _Classifiers(X, self.n_bits, self.C)
        for _ in track(range(self.n_iter), f"{self._title}: alternating"):
            predicted = classifiers.fit(codes.bits, rng)
            self._keep(mean_=classifiers.mean, projection_=classifiers.projection())
            codes.update(predicted, mu)
            mu *= GROWTH
            if (predicted == codes.bits).all():
                break

    def _logits(self, X: Rows) -> Rows:
        return margins(with_ones(X), self.mean_, self.projection_)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        return onnx_margins_with_ones(graph, rows, self.mean_, self.projection_)


class AuxiliaryCoordinates:
    """The codes of the training rows as separate variables."""

    def __init__(
        self,
        pairs: AffinityPairs,
        blocks: list[Block],
        loss: str,
        n_bits: int,
        rng: np.random.Generator,
    ):
        self.pairs, self.blocks, self.rng = pairs, blocks, rng
        self.loss, self.n_bits = loss, n_bits
        self.scale = n_bits * pairs.n / max(1, len(pairs.other))
        self.bits: Signs = np.zeros((n_bits, pairs.n), np.int8)
        self.apart: Counts = np.zeros(len(pairs.other), np.uint16)
        self._weights: Float32Array = np.empty(len(pairs.other), np.float32)
        unary = np.zeros(pairs.n)
        for r, bit in enumerate(self.bits, 1):  # as FastHash chooses them
            self._set_weights(loss_steps(loss, r), 1.0)
            for _ in range(2):
                choose_bits(bit, self._weights, unary, pairs, blocks, rng)
            count_differences(bit, pairs, 1, self.apart)

    def objective(self, predicted: Signs, mu: float) -> float:
        r"""The loss, plus μ times the squared distances of the codes from the predicted ones."""
        share = np.arange(self.n_bits + 1) / self.n_bits
        similar, dissimilar = (loss(share)[self.apart] for loss in LOSSES[self.loss])
        a = self.pairs.affinity.astype(np.float64)
        total = float((a * similar + (1 - a) * dissimilar).sum() / 2 * self.scale)
        return total + 4 * mu * float((self.bits != predicted).sum())

    def update(self, predicted: Signs, mu: float) -> None:
        """Set each bit in turn to the values that minimise the objective, block by block."""
        for bit, wanted in zip(self.bits, predicted, strict=True):
            count_differences(bit, self.pairs, -1, self.apart)
            self._set_weights(loss_steps(self.loss, self.n_bits), self.scale)
            unary = -2 * mu * wanted.astype(np.float64)  # (z - h)² = 2 - 2 z h
            choose_bits(bit, self._weights, unary, self.pairs, self.blocks, self.rng)
            count_differences(bit, self.pairs, 1, self.apart)

    def _set_weights(self, steps: tuple[Float64Array, Float64Array], scale: float) -> None:
        similar, dissimilar = (scale * step for step in steps)
        set_weights(self.pairs.affinity, self.apart, similar, dissimilar, self._weights)


class _Classifiers:
    """A linear support vector machine for each bit, by dual coordinate descent."""

    def __init__(self, X: Rows, n_bits: int, C: float):
        mean = X.mean(axis=0, dtype=np.float64)
        centred = X - mean
        size = float(np.sqrt((centred**2).sum(axis=1).mean()))
        # Rows that are equal except for rounding become 0.
        rounding = np.finfo(X.dtype).eps * np.abs(mean).max(initial=0) * len(mean) ** 0.5
        self._size = size if size > rounding else np.inf
        self._rows = with_ones(centred / self._size).astype(np.float32)
        self._square = np.einsum("ij,ij->i", self._rows, self._rows).astype(np.float64)
        self._alpha = np.zeros((n_bits, len(X)), np.float32)
        self._w = np.zeros((n_bits, self._rows.shape[1]), np.float32)
        self._bits: Signs = np.zeros((n_bits, len(X)), np.int8)
        self._C, self._mean = C, mean

    @property
    def mean(self) -> Float64Array:
        """The mean of the rows with a 1 appended, except that the last entry is 0."""
        return np.append(self._mean, 0.0)

    def fit(self, bits: Signs, rng: np.random.Generator) -> Signs:
        """Continue training from the last solution, and predict the bits of the training rows."""
        self._alpha[bits != self._bits] = 0
        self._bits = bits.copy()
        self._w = np.ascontiguousarray((self._alpha * bits) @ self._rows)
        orders = np.stack([rng.permutation(len(self._rows)) for _ in range(N_EPOCHS)])
        for k in range(len(bits)):
            _train(self._rows, self._square, bits[k], orders, self._C, self._alpha[k], self._w[k])
        return np.where(self._w @ self._rows.T > 0, 1, -1).astype(np.int8)

    def projection(self) -> Float64Array:
        """The weights for rows that are not scaled."""
        projection = self._w.T.astype(np.float64)
        projection[:-1] /= self._size
        return projection


@njit(cache=True, nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def _train(
    X: Float32Array,
    square: Float64Array,
    y: Signs,
    orders: Longs,
    C: float,
    alpha: Float32Array,
    w: Float32Array,
) -> None:
    """Dual coordinate descent for squared hinge loss: alpha ≥ 0, w = Σ alpha y x."""
    ridge = 0.5 / C
    for epoch in range(orders.shape[0]):
        worst = 0.0
        for i in orders[epoch]:
            product = np.float32(0)
            for j in range(X.shape[1]):
                product += w[j] * X[i, j]
            gradient = y[i] * product - 1 + ridge * alpha[i]
            if alpha[i] == 0 and gradient > 0:
                continue
            worst = max(worst, abs(gradient))
            new = max(alpha[i] - gradient / (square[i] + ridge), 0.0)
            step = np.float32((new - alpha[i]) * y[i])
            alpha[i] = new
            for j in range(X.shape[1]):
                w[j] += step * X[i, j]
        if worst < TOLERANCE:
            break
