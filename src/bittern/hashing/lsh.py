"""Random hash functions: hyperplanes, stripes, and Fourier features."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_number
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.hashing.linear import SLACK
from bittern.hashing.sums import RowSums, SumHasher
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph


class LSH(SumHasher):
    r"""Random hyperplanes: bit k of x is 1 if :math:`w_k^\top (x - \bar x) > 0`, w normal.

    Two rows at angle θ, seen from the mean of the training rows, differ in a bit with probability
    θ/π [Charikar-2002].  With ``centre=False`` the angle is at the origin, as in LSH for cosines.

    Reference: [Gionis-Indyk-Motwani-1999].
    """

    name = "lsh"

    def __init__(self, n_bits: int = 32, *, centre: bool = True, random_state: int | None = 0):
        self.n_bits = n_bits
        self.centre = centre
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        self._draw(X.mean(axis=0, dtype=np.float64) if self.centre else np.zeros(X.shape[1]))

    def _fit_sums(self, sums: RowSums) -> None:
        self._draw(sums.mean if self.centre else np.zeros(sums.dim))

    def _draw(self, mean: Float64Array) -> None:
        projection = self._generator().standard_normal((len(mean), self.n_bits))
        self._keep(mean_=mean, projection_=projection)


class PStableLSH(Hasher):
    r"""Random stripes: each bit is the parity of the cell of a random projection.

    .. math:: h_k(x) = \left\lfloor \frac{w_k^\top x + u_k}{r} \right\rfloor,
        \qquad \text{bit } k = h_k(x) \bmod 2,

    with :math:`w_k` standard normal, which is 2-stable, :math:`u_k` uniform in [0, r), and r the
    ``width``.  As :math:`w_k^\top (x - y)` is normal with standard deviation
    :math:`c = \|x - y\|`, the probability that two rows differ in a bit depends on c/r alone:

    .. math:: P = \frac12 - \frac{4}{\pi^2} \sum_{j = 1, 3, 5, \ldots}
        \frac{1}{j^2} \exp\left(-\frac{(j \pi c / r)^2}{2}\right).

    It grows as :math:`\sqrt{2/\pi}\, c / r` while c is small, and levels off at ½ when c exceeds r.
    ``width=None`` takes r = 3s with :math:`s^2` the mean squared distance of two training rows, so
    that P = .27 at c = s and still grows there; of the multiples ½ … 8 it was about the best on
    held-out training rows of CIFAR-10.

    The original uses :math:`h_k` as a part of the key of a hash table and has no binary code;
    taking one bit per function, its parity, is our choice.

    Reference: [Datar-Immorlica-Indyk-Mirrokni-2004].
    """

    name = "p-stable"

    directions_: Float64Array  # (dim, n_bits)
    shifts_: Float64Array  # (n_bits,)
    width_: float

    def __init__(
        self, n_bits: int = 32, *, width: float | None = None, random_state: int | None = 0
    ):
        self.n_bits = n_bits
        self.width = width
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        if self.width is None:
            width = 3 * np.sqrt(square_spread(X))
        else:
            width = check_number(self.width, f"{self._title}: width", above=0)
        rng = self._generator()
        directions = rng.standard_normal((X.shape[1], self.n_bits))
        shifts = rng.uniform(0, width, self.n_bits)
        self._keep(directions_=directions, shifts_=shifts, width_=float(width))

    def _bits(self, X: Rows) -> Bits:
        pairs = X @ (self.directions_ / (2 * self.width_))  # in pairs of stripes
        pairs += self.shifts_ / (2 * self.width_)
        pairs -= np.floor(pairs)
        return pairs >= 0.5

    def _onnx_bits(self, graph: OnnxGraph, rows: str) -> str:
        pairs = graph.add("MatMul", rows, self.directions_ / (2 * self.width_))
        pairs = graph.add("Add", pairs, self.shifts_ / (2 * self.width_))
        pairs = graph.add("Sub", pairs, graph.add("Floor", pairs))
        return graph.add("GreaterOrEqual", pairs, np.float64(0.5))


class SKLSH(Hasher):
    r"""Signs of random Fourier features of a Gaussian kernel, with random thresholds.

    .. math:: \text{bit } k = \left[ \cos(w_k^\top x + b_k) + t_k > 0 \right],

    with :math:`w_k \sim N(0, \gamma I)`, :math:`b_k` uniform in [0, 2π], :math:`t_k` in [-1, 1].
    Two rows differ in a bit with probability

    .. math:: P = \frac{8}{\pi^2} \sum_{m = 1}^{\infty} \frac{1 - K(mx, my)}{4m^2 - 1},
        \qquad K(x, y) = \exp(-\gamma \|x - y\|^2 / 2).

    ``gamma=None`` takes γ = 1 / the mean squared distance of two training rows, so that K is
    :math:`e^{-1/2}` at a typical distance, and codes still separate far rows from farther ones.

    Reference: [Raginsky-Lazebnik-2009].
    """

    name = "sklsh"

    directions_: Float64Array  # (dim, n_bits)
    phases_: Float64Array  # (n_bits,)
    thresholds_: Float64Array  # (n_bits,)

    def __init__(
        self, n_bits: int = 32, *, gamma: float | None = None, random_state: int | None = 0
    ):
        self.n_bits = n_bits
        self.gamma = gamma
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        if self.gamma is None:
            gamma = 1 / square_spread(X)
        else:
            gamma = check_number(self.gamma, f"{self._title}: gamma", above=0)
        rng = self._generator()
        self._keep(
            directions_=np.sqrt(gamma) * rng.standard_normal((X.shape[1], self.n_bits)),
            phases_=rng.uniform(0, 2 * np.pi, self.n_bits),
            thresholds_=rng.uniform(-1, 1, self.n_bits),
        )

    def _logits(self, X: Rows) -> Rows:
        angles = X @ self.directions_
        angles += self.phases_
        return np.cos(angles, out=angles) + self.thresholds_

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        angles = graph.add("Add", graph.add("MatMul", rows, self.directions_), self.phases_)
        return graph.add("Add", graph.add("Cos", angles), self.thresholds_)


def square_spread(X: Rows) -> float:
    """Mean squared distance of two random rows, which is twice the total variance; 1 if it is 0."""
    mean = X.mean(axis=0, dtype=np.float64)
    square = 2 * float(X.var(axis=0, dtype=np.float64).sum())
    rounding = SLACK * float(np.finfo(X.dtype).eps) * float(np.linalg.norm(mean))
    return square if square > rounding**2 else 1.0
