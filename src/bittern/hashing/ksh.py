"""Supervised hashing with kernels: bits whose inner products approach the affinities."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.hashing.base import Rows
from bittern.hashing.kernel_maps import KernelHasher, choose_anchors, mean_square, square_distances
from bittern.hashing.targets import Targets
from bittern.progress import track

RIDGE = 1e-6  # share of the mean diagonal, for fewer rows than anchors
LEAST_GAIN = 1e-2  # times the number of rows; stop after a step that gains less
MAX_DOUBLINGS = 50


class KSH(KernelHasher):
    r"""Supervised hashing with kernels: inner products of codes approach the affinities.

    With κ(x) the Gaussian kernel of x with m random anchors, minus its mean over the training rows,
    a bit is :math:`h_k(x) = \operatorname{sgn}(a_k^\top \kappa(x))`.  Over l training rows with
    kernel matrix K and :math:`S = 2 \cdot \text{affinity} - 1` in [-1, 1], the b bits minimise

    .. math:: \left\lVert b S - \sum_{k = 1}^{b} h_k h_k^\top \right\rVert_F^2,
        \qquad h_k = \operatorname{sgn}(K a_k),

    one after the other.  Given the first k - 1, the k-th maximises :math:`h^\top R h` with the
    residual :math:`R = b S - \sum_{j < k} h_j h_j^\top`:

    1. without the sign, by the largest solution of :math:`K^\top R K a = \mu K^\top K a`, scaled so
       that :math:`\|K a\|^2 = l`;
    2. from there, with :math:`\varphi(z) = 2 / (1 + e^{-z}) - 1` for the sign, by Nesterov's
       accelerated gradient on :math:`-\varphi(K a)^\top R\, \varphi(K a)`, at most ``n_steps``.

    The better of the two is kept, by :math:`h^\top R h` with the true sign.

    ``n_anchors`` is m and ``n_labelled`` is l, the number of random rows whose affinities are used
    (the matrix S is dense).  The kernel's σ² is the mean squared distance of training rows from
    anchors.  If S is not symmetric, its symmetric part is used, which has the same optimum; 10⁻⁶ of
    its mean diagonal is added to :math:`K^\top K`.

    Reference: [Liu-Wang-Ji-Jiang-Chang-2012].
    """

    name = "ksh"
    needs_y = True
    cost_power = 1

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 300,
        n_labelled: int = 2000,
        n_steps: int = 500,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.n_labelled = n_labelled
        self.n_steps = n_steps
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        check_count(self.n_anchors, f"{self._title}: n_anchors")
        check_count(self.n_labelled, f"{self._title}: n_labelled")
        check_count(self.n_steps, f"{self._title}: n_steps", 0)
        rng = self._generator()
        anchors = choose_anchors(X, self.n_anchors, rng)
        K = square_distances(X, anchors)
        width = mean_square(K)
        K = np.exp(K * (-0.5 / width))
        mean = K.mean(axis=0)
        labelled = np.sort(rng.permutation(len(X))[: self.n_labelled])
        affinity = targets.affinity(labelled, labelled).astype(np.float64)
        projection = self._learn(K[labelled] - mean, affinity + affinity.T - 1)
        self._keep(anchors_=anchors, width_=width, mean_=mean, projection_=projection)

    def _learn(self, K: Float64Array, S: Float64Array) -> Float64Array:
        """Weights ``(m, n_bits)`` of the bits."""
        projection = np.zeros((K.shape[1], self.n_bits))
        residual, relaxation = _Residual(self.n_bits * S), _Relaxation(K, self.n_bits * S)
        for k in track(range(self.n_bits), f"{self._title}: learning the bits"):
            relaxed = relaxation.best()
            smooth = _ascend(K, residual, relaxed, self.n_steps)
            codes = [np.where(K @ a > 0, 1.0, -1.0) for a in (relaxed, smooth)]
            better = int(residual.agreement(codes[1]) > residual.agreement(codes[0]))
            projection[:, k] = (relaxed, smooth)[better]
            residual.subtract(codes[better])
            relaxation.subtract(codes[better])
        return projection


class _Residual:
    """The matrix R: S, once for each group of rows with equal entries, minus the bits so far."""

    def __init__(self, S: Float64Array) -> None:
        first, groups = np.unique(S, axis=0, return_index=True, return_inverse=True)[1:]
        self._groups = groups.ravel()
        self._S = S[np.ix_(first, first)]
        self._bits: list[Float64Array] = []

    def times(self, y: Float64Array) -> Float64Array:
        """The product R y."""
        out = (self._S @ np.bincount(self._groups, y))[self._groups]
        for h in self._bits:
            out -= (h @ y) * h
        return out

    def agreement(self, y: Float64Array) -> float:
        """The product y' R y."""
        return float(y @ self.times(y))

    def subtract(self, h: Float64Array) -> None:
        """Replace R by R - h h'."""
        self._bits.append(h)


class _Relaxation:
    """The problem without the sign: maximise a' K' R K a where a' K' K a is the number of rows."""

    def __init__(self, K: Float64Array, S: Float64Array) -> None:
        from scipy.linalg import cholesky, solve_triangular

        right = K.T @ K
        mean = np.trace(right) / len(right)
        right[np.diag_indices_from(right)] += RIDGE * mean or 1.0
        self._root = cholesky(right, lower=True)
        self._white = solve_triangular(self._root, K.T, lower=True)  # K whitened, (m, l)
        self._matrix = self._white @ (S @ self._white.T)

    def best(self) -> Float64Array:
        """The best weights a; their largest entry is positive."""
        from scipy.linalg import eigh, solve_triangular

        last = len(self._matrix) - 1
        top = eigh(self._matrix, subset_by_index=(last, last))[1][:, 0]
        a = solve_triangular(self._root, top, trans=1, lower=True)
        length = np.linalg.norm(top @ self._white)
        a *= np.sign(a[np.abs(a).argmax()]) * np.sqrt(self._white.shape[1])
        return a / length if length > 0 else np.zeros_like(a)

    def subtract(self, h: Float64Array) -> None:
        """Replace R by R - h h'."""
        white = self._white @ h
        self._matrix -= np.outer(white, white)


def _ascend(
    K: Float64Array, residual: _Residual, start: Float64Array, n_steps: int
) -> Float64Array:
    """Weights whose smooth signs agree better with the residual."""
    value = K @ start
    before, now, cost = (start, value), (start, value), np.inf  # weights a, and K a
    curvature, last, momentum = 1.0, 0.0, 1.0
    for _ in range(n_steps):
        ahead = (last - 1) / momentum
        a, z = (new + ahead * (new - old) for new, old in zip(now, before, strict=True))
        y = np.tanh(z / 2)
        pull = residual.times(y)
        slope = -K.T @ (pull * (1 - y**2))
        along = K @ slope
        bounds = -float(y @ pull), float(slope @ slope)
        curvature, after = _curvature(residual, z, along, *bounds, curvature)
        if not np.isfinite(after):
            break
        before, now = now, (a - slope / curvature, z - along / curvature)
        last, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        gain, cost = abs(cost - after), after
        if gain <= LEAST_GAIN * len(K):
            break
    return now[0]


def _curvature(
    residual: _Residual,
    z: Float64Array,
    along: Float64Array,
    cost: float,
    square: float,
    curvature: float,
) -> tuple[float, float]:
    """The curvature of a parabola that bounds the cost after a gradient step, and that cost.

    The curvature doubles until the bound holds; the cost is infinite if it never does.
    """
    for _ in range(MAX_DOUBLINGS):
        after = -residual.agreement(np.tanh((z - along / curvature) / 2))
        if after <= cost - square / (2 * curvature):
            return curvature, after
        curvature *= 2
    return curvature, np.inf
