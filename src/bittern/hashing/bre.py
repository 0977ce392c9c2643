"""Binary reconstructive embeddings: Hamming distances that reproduce given distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, check_count
from bittern.hashing.base import Rows
from bittern.hashing.kernel_maps import (
    KernelHasher,
    choose_anchors,
    mean_square,
    square_distances,
    unit_rows,
)
from bittern.hashing.targets import Targets
from bittern.progress import track

Array = NDArray[Any]
LEAST_GAIN = 1e-9  # share of the total cost; smaller savings are ignored
PAIRS_AT_ONCE = 1 << 16


class BRE(KernelHasher):
    r"""Kernel functions whose Hamming distances reconstruct the distances of the rows.

    Bit p is :math:`h_p(x) = [\sum_q W_{pq}\, \kappa(a_{pq}, x) > 0]` with a Gaussian kernel minus
    its training mean, and ``n_landmarks`` anchors :math:`a_{pq}` for each bit.  Over a set N of
    pairs the weights minimise

    .. math:: \sum_{(i, j) \in N} \left( d_{ij} - \frac1b \sum_{p=1}^{b} [h_p(x_i) \ne h_p(x_j)]
        \right)^2

    by coordinate descent.  As one weight goes from :math:`-\infty` to :math:`\infty`, each row
    changes its bit once, where the sum is 0; sorting the rows by that point finds the best interval
    exactly, in O(n log n + \|N\|).  A sweep sets all weights of a bit, in random order, bit after
    bit; there are ``n_sweeps``.  The objective never increases.

    With ``y``, :math:`d_{ij}` is 1 - affinity; without, :math:`\frac14 \|x_i - x_j\|^2` of centred
    rows of length 1, which is between 0 and 1.  N pairs each row with ``n_pairs`` random others;
    with ``y``, half of them have affinity above 0 if there are enough.

    Deviations: the anchors of all bits are drawn from one pool of ``n_anchors`` training rows, so
    that encoding evaluates each kernel once; the original chooses pairs by nearness.

    Reference: [Kulis-Darrell-2009].
    """

    name = "bre"
    cost_power = 1

    objective_: float  # the sum of squares

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 500,
        n_landmarks: int = 50,
        n_pairs: int = 100,
        n_sweeps: int = 3,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.n_landmarks = n_landmarks
        self.n_pairs = n_pairs
        self.n_sweeps = n_sweeps
        self.random_state = random_state

    @property
    def _takes_y(self) -> bool:
        return True

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        for name in ("n_anchors", "n_landmarks", "n_pairs", "n_sweeps"):
            check_count(getattr(self, name), f"{self._title}: {name}")
        rng = self._generator()
        if targets:
            pairs = _pairs_by_targets(targets, self.n_pairs, rng)
        else:
            pairs = _pairs_by_distance(X, self.n_pairs, rng)
        anchors = choose_anchors(X, self.n_anchors, rng)
        squares = square_distances(X, anchors)
        width = mean_square(squares)
        K = np.exp(-0.5 / width * squares)
        mean = K.mean(axis=0)
        embedding = Embedding(K - mean, pairs, self.n_bits, self.n_landmarks, rng)
        kept: dict[str, Any] = {"anchors_": anchors, "width_": width, "mean_": mean}
        self._keep(**kept, projection_=embedding.weights.copy(), objective_=embedding.objective())
        steps = [p for _ in range(self.n_sweeps) for p in range(self.n_bits)]
        for p in track(steps, f"{self._title}: learning the weights"):
            embedding.improve(p, rng)
            self._keep(
                **kept, projection_=embedding.weights.copy(), objective_=embedding.objective()
            )


class DistancePairs:
    """Pairs of rows, each listed twice: row i with ``other[first[i]:first[i + 1]]``."""

    def __init__(self, rows: Array, others: Array, n: int):
        keys = np.unique(np.concatenate([rows * n + others, others * n + rows]))
        keys = keys[keys // n != keys % n]
        self.row, self.other = (keys // n).astype(np.int32), (keys % n).astype(np.int32)
        self.first = np.searchsorted(self.row, np.arange(n + 1))
        self.distance = np.zeros(len(keys))


def _pairs_by_distance(X: Rows, n_pairs: int, rng: np.random.Generator) -> DistancePairs:
    """Random pairs, and their distances after centring and scaling to length 1."""
    rows = np.repeat(np.arange(len(X)), n_pairs)
    pairs = DistancePairs(rows, rng.integers(len(X), size=len(rows)), len(X))
    unit = unit_rows(X - X.mean(axis=0, dtype=np.float64))
    for start in range(0, len(pairs.row), PAIRS_AT_ONCE):
        some = slice(start, start + PAIRS_AT_ONCE)
        apart = unit[pairs.row[some]] - unit[pairs.other[some]]
        pairs.distance[some] = 0.25 * np.einsum("ij,ij->i", apart, apart)
    return pairs


def _pairs_by_targets(targets: Targets, n_pairs: int, rng: np.random.Generator) -> DistancePairs:
    """Random pairs, half of them similar if there are enough, and 1 - their affinities."""
    n, half = targets.n, max(1, n_pairs // 2)
    others = np.empty((n, n_pairs), np.intp)
    for i in range(n):
        similar = np.flatnonzero(targets.affinity([i])[0])
        chosen = similar if len(similar) <= half else rng.choice(similar, half, replace=False)
        others[i, : len(chosen)] = chosen
        others[i, len(chosen) :] = rng.integers(n, size=n_pairs - len(chosen))
    pairs = DistancePairs(np.repeat(np.arange(n), n_pairs), others.ravel(), n)
    for i in range(n):
        listed = slice(pairs.first[i], pairs.first[i + 1])
        pairs.distance[listed] = 1 - targets.affinity([i], pairs.other[listed])[0]
    return pairs


class Embedding:
    """Weights, bits, and the number of bits in which each pair differs."""

    def __init__(
        self,
        K: Float64Array,
        pairs: DistancePairs,
        n_bits: int,
        n_landmarks: int,
        rng: np.random.Generator,
    ):
        self.K, self.pairs, self.n_bits = np.asfortranarray(K), pairs, n_bits
        n_anchors = K.shape[1]
        size = min(n_landmarks, n_anchors)
        self.landmarks = np.stack(
            [rng.choice(n_anchors, size, replace=False) for _ in range(n_bits)]
        )
        self.weights = np.zeros((n_anchors, n_bits))
        for p, chosen in enumerate(self.landmarks):
            self.weights[chosen, p] = rng.standard_normal(size)
        self.bits = np.asfortranarray(self.K @ self.weights > 0)
        self.apart = np.zeros(len(pairs.row), np.int32)
        for bit in self.bits.T:
            self.apart += bit[pairs.row] != bit[pairs.other]

    def objective(self) -> float:
        """The sum of squares over pairs, each counted once."""
        error = self.pairs.distance - self.apart / self.n_bits
        return float(error @ error / 2)

    def improve(self, p: int, rng: np.random.Generator) -> None:
        """Set each weight of bit p to its best value, once."""
        row, other, bit = self.pairs.row, self.pairs.other, self.bits[:, p]
        rest = self.apart - (bit[row] != bit[other])
        # How much more a pair costs if it differs in this bit.
        costs = (1 - 2 * self.n_bits * (self.pairs.distance - rest / self.n_bits)) / self.n_bits**2
        sums = self.K @ self.weights[:, p]
        order, single = rng.permutation(self.landmarks[p]), costs.astype(np.float32)
        _descend(self.K, order, self.weights[:, p], sums, bit, self.pairs.first, other, single)
        self.apart = rest + (bit[row] != bit[other])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _descend(
    K: Float64Array,
    columns: Array,
    weights: Float64Array,
    sums: Float64Array,
    bit: Array,
    first: Array,
    other: Array,
    costs: Array,
) -> None:
    """Set the weights of some columns to their best values, one after the other."""
    n = sums.shape[0]
    places, rest, signs = np.empty(n), np.empty(n), np.empty(n, np.float32)
    scale = np.abs(costs).sum()
    for q in columns:
        kernel = K[:, q]
        for i in range(n):
            rest[i] = sums[i] - weights[q] * kernel[i]
            places[i] = -rest[i] / kernel[i] if kernel[i] != 0 else np.inf
            signs[i] = 1 if bit[i] else -1
        order = np.argsort(places)
        weight, saved = _sweep(kernel, rest, places, order, signs, first, other, costs)
        if saved > LEAST_GAIN * scale:
            weights[q] = weight
            for i in range(n):
                sums[i] = rest[i] + weight * kernel[i]
                bit[i] = sums[i] > 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sweep(
    kernel: Float64Array,
    rest: Float64Array,
    places: Float64Array,
    order: Array,
    signs: Float32Array,
    first: Array,
    other: Array,
    costs: Array,
) -> tuple[float, float]:
    """The best weight and its saving, over all intervals between points; changes ``signs``."""
    n = order.shape[0]
    cost = 0.0
    for i in range(n):  # the bits for a weight below all points, and their extra cost
        new = kernel[i] < 0 if kernel[i] != 0 else rest[i] > 0
        if new != (signs[i] > 0):
            cost += _flip(i, signs, first, other, costs)
    lowest = places[order[0]]
    best, weight = np.inf, 0.0
    if np.isfinite(lowest):
        best, weight = cost, lowest - 1.0 - abs(lowest)
    for k in range(n):
        i = order[k]
        if not np.isfinite(places[i]):
            break
        cost += _flip(i, signs, first, other, costs)
        last = k + 1 == n or not np.isfinite(places[order[k + 1]])
        following = places[i] + 1.0 + abs(places[i]) if last else places[order[k + 1]]
        middle = 0.5 * (places[i] + following)
        if cost < best and places[i] < middle < following:
            best, weight = cost, middle
    return weight, -best


@njit(cache=True, nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def _flip(i: int, signs: Float32Array, first: Array, other: Array, costs: Array) -> float:
    """Flip one bit and return the cost; each pair is listed twice but counted once."""
    pull = np.float32(0)
    for e in range(first[i], first[i + 1]):
        pull += costs[e] * signs[other[e]]
    change = signs[i] * pull
    signs[i] = -signs[i]
    return change
