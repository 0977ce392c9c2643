"""Anchor graph hashing: eigenfunctions of a graph that connects rows through anchors."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.checks import Float64Array, PositionArray, check_count
from bittern.errors import InputError
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.kernel_maps import (
    choose_anchors,
    onnx_square_distances,
    square_distances,
)
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph

SMALLEST = 1e-9  # eigenvalue; smaller ones are rounding
ROUNDING = 1e-12  # share of the largest weight; smaller values of eigenfunctions are 0
SAME = 1e-9  # share of t; distances that differ by less are equal


class AGH(Hasher):
    r"""Anchor graph hashing: signs of the smoothest functions on a graph through anchors.

    Each row is connected to its s nearest of m anchors, the centres of k-means clusters, with the
    weights

    .. math:: Z_{ij} = \frac{\exp(-\|x_i - a_j\|^2 / t)}
        {\sum_{j' \in \langle i \rangle} \exp(-\|x_i - a_{j'}\|^2 / t)}

    for its s nearest anchors j ∈ ⟨i⟩, and 0 for the others; √t is the mean distance of a training
    row from its s-th nearest anchor.  The graph of the rows is :math:`A = Z \Lambda^{-1} Z^\top`
    with :math:`\Lambda = \operatorname{diag}(Z^\top 1)`.  A small matrix gives its eigenvectors,

    .. math:: M = \Lambda^{-1/2} Z^\top Z \Lambda^{-1/2} = V \Sigma V^\top, \qquad
        W = \sqrt n \, \Lambda^{-1/2} V \Sigma^{-1/2}, \qquad Y = Z W,

    largest eigenvalue first, without the trivial one, for which Y is constant.  A row's Z, and so
    its :math:`y = W^\top z(x)`, depends only on the anchors, so it exists for new rows too.

    With ``layers=1``, a bit is :math:`y_k > 0` for each of ``n_bits`` eigenfunctions.  With
    ``layers=2``, half as many eigenfunctions give two bits each; the second bit is
    :math:`y_k > b_k^+` where :math:`y_k > 0`, and :math:`y_k < b_k^-` elsewhere.  The thresholds
    make the function :math:`f = (y - b^+` where positive, :math:`b^- - y` elsewhere) smoothest on
    the graph: they minimise :math:`f^\top (I - A) f` with :math:`1^\top f = 0`.  In closed form,
    with g = \|y\|, :math:`1_+` the indicator of the :math:`n_+` positive rows, and :math:`n_-` the
    number of others,

    .. math:: c = \frac{1_+^\top (I - A)\, g}{1_+^\top (I - A)\, 1_+}, \qquad
        b^+ = \frac{1^\top g + n_- c}{n}, \qquad b^- = \frac{n_+ c - 1^\top g}{n}.

    ``n_anchors`` is m and ``n_neighbours`` is s.  If there are fewer eigenfunctions (at most m - 1)
    than needed, further bits are second bits of these eigenfunctions, the smoothest first; then
    signs of random combinations of them.  Deviations: the original code leaves out every eigenvalue
    near 1; here only the trivial eigenvector is left out, so that a graph of several components has
    bits that separate them.  If the positive rows are such components, the thresholds are the means
    of the two sides.

    Reference: [Liu-Wang-Kumar-Chang-2011].
    """

    name = "agh"

    anchors_: Rows  # (m, dim)
    width_: float
    projection_: Float64Array  # (m, n_bits - n_second): eigenfunctions, then mixtures
    thresholds_: Float64Array  # (2, n_second): for positive values and for others

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 300,
        n_neighbours: int = 3,
        layers: int = 2,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.n_neighbours = n_neighbours
        self.layers = layers
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        check_count(self.n_anchors, f"{self._title}: n_anchors")
        check_count(self.n_neighbours, f"{self._title}: n_neighbours")
        if check_count(self.layers, f"{self._title}: layers") > 2:
            raise InputError(f"{self._title}: layers must be 1 or 2, got {self.layers}.")
        rng = self._generator()
        anchors, Z, width = _anchor_graph(X, self.n_anchors, self.n_neighbours, rng)
        W = _eigenfunctions(Z)
        n_first, n_second = self._share(W.shape[1])
        mixed = W @ rng.standard_normal((W.shape[1], self.n_bits - n_first - n_second))
        self._keep(
            anchors_=anchors,
            width_=width,
            projection_=np.hstack((W[:, :n_first], mixed)),
            thresholds_=_second_thresholds(Z, Z @ W[:, :n_second]),
        )

    def _check_learned(self) -> None:
        if self.anchors_.ndim != 2 or len(self.anchors_) != len(self.projection_):
            raise ValueError("anchors_ and projection_ must have as many rows")

    def _share(self, n_functions: int) -> tuple[int, int]:
        """The number of bits that are signs of eigenfunctions, and of second bits."""
        wanted = self.n_bits if self.layers == 1 else (self.n_bits + 1) // 2
        n_first = min(wanted, n_functions)
        return n_first, min(n_first, self.n_bits - n_first)

    def _logits(self, X: Rows) -> Rows:
        distances = square_distances(X, self.anchors_)
        nearest, weights = _weights(distances, self.n_neighbours, self.width_)
        y = np.zeros((len(X), self.projection_.shape[1]))
        for anchor, weight in zip(nearest.T, weights.T, strict=True):
            y += weight[:, None] * self.projection_[anchor]
        zero = self._zero()
        y[np.abs(y) <= zero] = 0
        above, below = self.thresholds_
        first = y[:, : len(above)]
        second = np.where(first > 0, first - above, below - first)
        second[np.abs(second) <= zero[: len(above)]] = 0
        return np.hstack((y, second))

    def _zero(self) -> Float64Array:
        """Values of each function that are 0 up to rounding."""
        return ROUNDING * np.abs(self.projection_).max(axis=0, initial=0)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        y = self._onnx_functions(graph, onnx_square_distances(graph, rows, self.anchors_))
        zero = self._zero()
        y = _onnx_without_rounding(graph, y, zero)
        above, below = self.thresholds_
        first = graph.add("Gather", y, np.arange(len(above)), axis=1)
        up, down = graph.add("Sub", first, above), graph.add("Sub", below, first)
        is_above = graph.add("Greater", first, np.float64(0))
        second = graph.add("Where", is_above, up, down)
        second = _onnx_without_rounding(graph, second, zero[: len(above)])
        return graph.add("Concat", y, second, axis=1)

    def _onnx_functions(self, graph: OnnxGraph, distances: str) -> str:
        """The eigenfunctions and mixtures; among equal distances, TopK also takes the first."""
        levels = graph.add("Round", graph.add("Div", distances, np.float64(SAME * self.width_)))
        s = np.array([min(self.n_neighbours, len(self.anchors_))])
        nearest = graph.add("TopK", levels, s, largest=0, outputs=2) + ".1"
        near = graph.add("GatherElements", distances, nearest, axis=1)
        least = graph.add("ReduceMin", near, axes=[1], keepdims=1)
        weights = graph.add("Div", graph.add("Sub", least, near), np.float64(self.width_))
        weights = graph.add("Exp", weights)
        total = graph.add("ReduceSum", weights, np.array([1]), keepdims=1)
        weights = graph.add("Unsqueeze", graph.add("Div", weights, total), np.array([1]))
        values = graph.add("Gather", self.projection_, nearest, axis=0)  # (n, s, n_functions)
        return graph.add("Squeeze", graph.add("MatMul", weights, values), np.array([1]))


def _onnx_without_rounding(graph: OnnxGraph, values: str, zero: Float64Array) -> str:
    is_zero = graph.add("LessOrEqual", graph.add("Abs", values), zero)
    return graph.add("Where", is_zero, np.float64(0), values)


def _anchor_graph(
    X: Rows, n_anchors: int, n_neighbours: int, rng: np.random.Generator
) -> tuple[Rows, Any, float]:
    """Anchors with a row near them, weights Z ``(n, m)`` as a sparse matrix, and t."""
    from scipy.sparse import csr_array

    anchors = choose_anchors(X, n_anchors, rng, "kmeans")
    distances = square_distances(X, anchors)
    s = min(n_neighbours, len(anchors))
    width = float(np.sqrt(np.partition(distances, s - 1, axis=1)[:, s - 1]).mean() ** 2) or 1.0
    nearest, weights = _weights(distances, s, width)
    starts = np.arange(0, nearest.size + 1, s)
    Z = csr_array((weights.ravel(), nearest.ravel(), starts), shape=distances.shape)
    used = Z.sum(axis=0) > 0
    return anchors[used], Z[:, used], width


def _weights(
    distances: Float64Array, n_neighbours: int, width: float
) -> tuple[PositionArray, Float64Array]:
    """Each row's nearest anchors ``(n, s)``, ties by position, and their weights."""
    levels = np.rint(distances / (SAME * width))  # equal distances may differ by rounding
    nearest = np.argsort(levels, axis=1, kind="stable")[:, :n_neighbours]
    near = np.take_along_axis(distances, nearest, axis=1)
    weights = np.exp((near.min(axis=1, keepdims=True) - near) / width)
    return nearest, weights / weights.sum(axis=1, keepdims=True)


def _eigenfunctions(Z: Any) -> Float64Array:
    """W ``(m, n_functions)``, the smoothest functions first."""
    n, mass = Z.shape[0], Z.sum(axis=0)
    M = (Z.T @ Z).toarray() / np.sqrt(mass[:, None] * mass)
    trivial = np.sqrt(mass / n)
    values, vectors = np.linalg.eigh(M - np.outer(trivial, trivial))
    order = np.flatnonzero(values > SMALLEST)[::-1]
    values, vectors = values[order], vectors[:, order]
    peaks = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[peaks, np.arange(len(order))])
    return np.sqrt(n) * vectors / np.sqrt(mass[:, None] * values)


def _second_thresholds(Z: Any, Y: Float64Array) -> Float64Array:
    """Thresholds ``(2, n_functions)`` of the second bits, for positive and for other rows."""
    n, mass, positive = len(Y), Z.sum(axis=0), (Y > 0).astype(np.float64)
    n_above = positive.sum(axis=0)
    sizes = np.abs(Y)
    total = sizes.sum(axis=0)
    smooth = positive - Z @ ((Z.T @ positive) / mass[:, None])  # (I - A) 1+
    up, down = (smooth * sizes).sum(axis=0), (smooth * positive).sum(axis=0)
    apart = down > SMALLEST * n
    means = total / 2 / np.maximum(n_above, 1) - total / 2 / np.maximum(n - n_above, 1)
    c = np.where(apart, up / np.where(apart, down, 1), means)
    return np.array([(total + (n - n_above) * c) / n, (n_above * c - total) / n])
