"""Self-taught hashing: a Laplacian eigenmap, and a linear classifier for each of its bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.checks import Float64Array, check_count, check_number, row_blocks
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.classifiers import linear_classifier
from bittern.hashing.kernel_maps import (
    onnx_margins_with_ones,
    onnx_unit_rows,
    unit_rows,
    with_ones,
)
from bittern.hashing.linear import margins
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph
from bittern.progress import track

LEAST_WEIGHT = 1e-3  # of an edge
MAX_EIGENVECTORS = 1024
DENSE = 1000  # rows up to which a dense solver finds all eigenvectors


class STH(Hasher):
    r"""Self-taught hashing: bits from a graph of the training rows, learned by linear classifiers.

    Rows are scaled to length 1.  Two rows are joined by an edge of weight
    :math:`A_{ij} = \cos(x_i, x_j)` if one is among the k nearest (by cosine) of the other.  With
    :math:`D = \operatorname{diag}(A 1)`, the smoothest functions on this graph solve

    .. math:: (D - A)\, v = \lambda D v,

    smallest λ first, without the trivial constant v.  Bit k of row i is 1 if its entry of the k-th
    function is above the median, so it is 1 for half of the rows.  A linear support vector machine
    (squared hinge loss, parameter ``C``, by LIBLINEAR) then learns each bit from the rows, and
    these classifiers hash all rows, training rows included.

    ``n_neighbours`` is k.  At most ``n_rows`` random training rows are used.  A cosine below 10⁻³
    counts as 10⁻³, so that every row keeps its edges.  There are at most n - 1 eigenvectors, and no
    more than 1,024 are computed; further bits are random combinations (standard normal weights) of
    the eigenvectors, cut at the median as well.  A bit that all rows share is constant.

    Reference: [Zhang-Wang-Cai-Lu-2010].
    """

    name = "sth"

    mean_: Float64Array  # (dim + 1,)
    projection_: Float64Array  # (dim + 1, n_bits); the last row are constant terms

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_neighbours: int = 25,
        C: float = 1.0,
        n_rows: int = 20_000,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.n_neighbours = n_neighbours
        self.C = C
        self.n_rows = n_rows
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        check_count(self.n_neighbours, f"{self._title}: n_neighbours")
        check_number(self.C, f"{self._title}: C", above=0)
        check_count(self.n_rows, f"{self._title}: n_rows")
        rng = self._generator()
        if len(X) > self.n_rows:
            X = X[np.sort(rng.choice(len(X), self.n_rows, replace=False))]
        X = unit_rows(X)
        functions = _smooth_functions(_neighbour_graph(X, self.n_neighbours), self.n_bits, rng)
        wanted = functions > np.median(functions, axis=0)
        mean = X.mean(axis=0, dtype=np.float64)
        projection = np.zeros((X.shape[1] + 1, self.n_bits))
        centred = (X - mean).astype(np.float64)
        for k in track(range(self.n_bits), f"{self._title}: learning the bits"):
            projection[:, k] = linear_classifier(centred, wanted[:, k], self.C, rng)
        self._keep(mean_=np.append(mean, 0), projection_=projection)

    def _logits(self, X: Rows) -> Rows:
        return margins(with_ones(unit_rows(X)), self.mean_, self.projection_)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        unit = onnx_unit_rows(graph, rows)
        return onnx_margins_with_ones(graph, unit, self.mean_, self.projection_)


def _neighbour_graph(X: Rows, n_neighbours: int) -> Any:
    """Weights ``(n, n)`` as a sparse symmetric matrix: cosines of neighbours, in either order."""
    from scipy.sparse import csr_array

    n, k = len(X), min(n_neighbours, len(X) - 1)
    nearest, cosines = np.empty((n, k), np.intp), np.empty((n, k))
    for some in row_blocks(n, 4 * n):
        near = X[some] @ X.T
        near[np.arange(len(near)), np.arange(n)[some]] = -np.inf  # a row is not its own neighbour
        nearest[some] = np.argpartition(-near, max(k - 1, 0), axis=1)[:, :k]
        cosines[some] = np.take_along_axis(near, nearest[some], axis=1)
    weights = np.maximum(cosines, LEAST_WEIGHT)
    graph = csr_array((weights.ravel(), nearest.ravel(), np.arange(n + 1) * k), shape=(n, n))
    return graph.maximum(graph.T).tocsr()


def _smooth_functions(graph: Any, n_functions: int, rng: np.random.Generator) -> Float64Array:
    """The smoothest functions ``(n, n_functions)`` on a graph, then random combinations."""
    n = graph.shape[0]
    if n == 1:
        return np.zeros((1, n_functions))
    degree = np.asarray(graph.sum(axis=1)).ravel()
    found = _largest_eigenvectors(graph, degree, min(n_functions, n - 1, MAX_EIGENVECTORS), rng)
    functions = found / np.sqrt(degree)[:, None]
    mixed = found @ rng.standard_normal((found.shape[1], n_functions - found.shape[1]))
    return np.hstack((functions, mixed / np.sqrt(degree)[:, None]))


def _largest_eigenvectors(
    graph: Any, degree: Float64Array, k: int, rng: np.random.Generator
) -> Float64Array:
    """The k largest eigenvectors ``(n, k)`` of D^-½ A D^-½, without the trivial one."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import LinearOperator, eigsh

    n, scale = len(degree), diags_array(1 / np.sqrt(degree))
    A = scale @ graph @ scale
    trivial = np.sqrt(degree / degree.sum())
    start = rng.standard_normal(n)
    if n <= DENSE or 4 * k > n:
        vectors = np.linalg.eigh(A.toarray() - np.outer(trivial, trivial))[1]
        return vectors[:, : -k - 1 : -1]
    deflated = LinearOperator(
        (n, n), dtype=np.float64, matvec=lambda v: A @ v.ravel() - trivial * (trivial @ v.ravel())
    )
    return eigsh(deflated, k, which="LA", v0=start, tol=1e-4, rng=rng)[1][:, ::-1]
