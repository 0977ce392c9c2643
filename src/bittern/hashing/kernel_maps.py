"""Kernel maps: rows described by their similarity to a few anchors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, row_blocks
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.linear import margins, offset, onnx_margins
from bittern.io.onnx_graph import OnnxGraph


class KernelHasher(Hasher):
    r"""Bit k of x is 1 if ``(κ(x) - mean_) @ projection_[:, k] > 0``, where κ(x) uses anchors.

    :math:`\kappa_j(x) = \exp(-\|x - a_j\|^2 / (2\sigma^2))`, with σ² in ``width_``.
    """

    anchors_: Rows  # (n_anchors, dim)
    width_: float
    mean_: Float64Array  # (n_anchors,)
    projection_: Float64Array  # (n_anchors, n_bits)

    def _logits(self, X: Rows) -> Rows:
        return margins(gaussian(X, self.anchors_, self.width_), self.mean_, self.projection_)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        values = onnx_gaussian(graph, rows, self.anchors_, self.width_)
        return onnx_margins(graph, values, self.mean_, self.projection_)


def choose_anchors(X: Rows, n: int, random_state: np.random.Generator, by: str = "random") -> Rows:
    """At most n distinct anchors: ``"random"`` rows, or the means of ``"kmeans"`` clusters."""
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n:
        return distinct
    if by == "random":
        return distinct[np.sort(random_state.choice(len(distinct), n, replace=False))]
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    seed = int(random_state.integers(2**31))
    clusters = KMeans(n, init="random", n_init=1, max_iter=20, random_state=seed)
    with threadpool_limits(1, "openmp"):  # threads would sum the means in random order
        clusters.fit(X)
    return np.unique(clusters.cluster_centers_.astype(X.dtype), axis=0)


def square_distances(X: Rows, anchors: Rows) -> Float64Array:
    """Squared Euclidean distances ``(n, n_anchors)``.

    Computed by matrix products, in double precision and around the anchors' mean, so that rows far
    from the origin lose no precision.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    centre = anchors.mean(axis=0, dtype=np.float64)
    around, out = anchors - centre, np.empty((len(X), len(anchors)))
    for some in row_blocks(len(X), 8 * X.shape[1]):
        out[some] = euclidean_distances(X[some] - centre, around, squared=True)
    return out


def onnx_square_distances(graph: OnnxGraph, rows: str, anchors: Rows) -> str:
    """The same in an ONNX graph."""
    centre = anchors.mean(axis=0, dtype=np.float64)
    around = anchors - centre
    rows = graph.add("Sub", rows, centre)
    lengths = graph.add("ReduceSumSquare", rows, axes=[1], keepdims=1)
    found = graph.add("Add", graph.add("MatMul", rows, -2 * around.T), lengths)
    found = graph.add("Add", found, np.einsum("ij,ij->i", around, around))
    return graph.add("Max", found, np.float64(0))


def mean_square(distances: NDArray[Any]) -> float:
    """The mean of squared distances, as the width of a kernel; 1 if all are 0."""
    return float(distances.mean()) or 1.0


def gaussian(X: Rows, anchors: Rows, width: float) -> Rows:
    """Gaussian kernel values ``(n, n_anchors)``."""
    values = square_distances(X, anchors)
    values *= -0.5 / width
    return np.exp(values, out=values)


def onnx_gaussian(graph: OnnxGraph, rows: str, anchors: Rows, width: float) -> str:
    """The same in an ONNX graph."""
    squares = onnx_square_distances(graph, rows, anchors)
    return graph.add("Exp", graph.add("Mul", squares, np.float64(-0.5 / width)))


def unit_rows(X: Rows) -> Rows:
    """Rows scaled to length 1; rows of zeros stay zero."""
    length = np.linalg.norm(X.astype(np.float64, copy=False), axis=1, keepdims=True).astype(X.dtype)
    return X / np.where(length > 0, length, 1)


def onnx_unit_rows(graph: OnnxGraph, rows: str) -> str:
    """The same in an ONNX graph."""
    length = graph.add("Sqrt", graph.add("ReduceSumSquare", rows, axes=[1], keepdims=1))
    is_long = graph.add("Greater", length, np.float64(0))
    return graph.add("Div", rows, graph.add("Where", is_long, length, np.float64(1)))


def with_ones(values: Rows) -> Rows:
    """The columns and an extra column of ones, whose weight is the constant term."""
    return np.hstack((values, np.ones((len(values), 1), values.dtype)))


def onnx_margins_with_ones(
    graph: OnnxGraph, values: str, mean: Float64Array, projection: Float64Array
) -> str:
    """The margins of columns with ones, in an ONNX graph: the last weights are constant terms."""
    found = graph.add("MatMul", values, projection[:-1])
    return graph.add("Sub", graph.add("Add", found, projection[-1]), offset(mean, projection))
