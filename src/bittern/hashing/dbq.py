"""Double-bit quantisation: two bits per projected dimension, on top of any linear hasher."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.hashing.base import Bits, Rows
from bittern.hashing.linear import LinearHasher, margins, onnx_margins
from bittern.hashing.projected import ProjectedHasher
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph


class DBQ(ProjectedHasher):
    r"""Two bits per projected dimension, which two thresholds divide into three regions.

    With z a projected dimension, its two bits are

    .. math:: ([z > \beta],\, [z \le \alpha]) =
        \begin{cases} 01 & z \le \alpha \\ 00 & \alpha < z \le \beta \\ 10 & z > \beta \end{cases}

    so that neighbouring regions differ in one bit and the outer ones in two.  The thresholds make
    the regions :math:`S_1, S_2, S_3` of the training rows compact: under the condition that the
    mean of :math:`S_2` is 0, the squared error around the means is least where

    .. math:: F = \frac{(\sum_{S_1} z)^2}{|S_1|} + \frac{(\sum_{S_3} z)^2}{|S_3|}

    is largest.  The search is that of the original: :math:`S_2` starts empty at threshold 0; if its
    sum is not above 0 it gains the smallest value of :math:`S_3`, otherwise the largest of
    :math:`S_1`; the best F on the way wins.  The search visits every pair of thresholds for which
    the mean of :math:`S_2` is exactly 0.

    ``projection`` is a linear hasher, by its name (``"itq"``) or unfitted (``ITQ()``), by default
    ``"pcah"``.  A copy of it with half as many bits (rounded up) is fitted and kept as
    ``projection_``; it gives :math:`z = (x - \bar x)^\top w`.  With an odd ``n_bits`` the last
    dimension has one bit, [z > 0].  ``y`` is passed to the projection if it uses it.

    Thresholds lie midway between training values, not on the lower one as in the original, which
    divides the training rows the same way; and never between values that are equal except for
    rounding.

    Reference: [Kong-Li-2012a].
    """

    name = "dbq"

    thresholds_: Float64Array  # (2, n_bits // 2) α and β

    def __init__(
        self,
        n_bits: int = 32,
        *,
        projection: LinearHasher | str | None = None,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.projection = projection
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        hasher, Z, rounding = self._project(X, targets, -(-self.n_bits // 2))
        pairs = [double_thresholds(Z[:, k], rounding[k]) for k in range(self.n_bits // 2)]
        self._keep(projection_=hasher, thresholds_=np.array(pairs).reshape(-1, 2).T)
        self.stopped_early_ = hasher.stopped_early_

    def _bits(self, X: Rows) -> Bits:
        hasher, half = self.projection_, self.n_bits // 2
        Z = X @ hasher.projection_[:, :half]
        alpha, beta = self._levels()
        bits = np.empty((len(X), self.n_bits), bool)
        np.greater(Z, beta, out=bits[:, 0 : 2 * half : 2])
        np.less_equal(Z, alpha, out=bits[:, 1 : 2 * half : 2])
        if self.n_bits % 2:
            bits[:, half * 2 :] = margins(X, hasher.mean_, hasher.projection_[:, half:]) > 0
        return bits

    def _onnx_bits(self, graph: OnnxGraph, rows: str) -> str:
        hasher, half = self.projection_, self.n_bits // 2
        parts = []
        if half:
            Z = graph.add("MatMul", rows, hasher.projection_[:, :half])
            alpha, beta = self._levels()
            pair = graph.add("Greater", Z, beta), graph.add("LessOrEqual", Z, alpha)
            columns = [graph.add("Unsqueeze", one, np.array([2])) for one in pair]
            both = graph.add("Concat", *columns, axis=2)
            parts.append(graph.add("Reshape", both, np.array([0, 2 * half])))
        if self.n_bits % 2:
            last = onnx_margins(graph, rows, hasher.mean_, hasher.projection_[:, half:])
            parts.append(graph.add("Greater", last, np.float64(0)))
        return graph.add("Concat", *parts, axis=1)

    def _levels(self) -> Float64Array:
        """The values of products at α and β, ``(2, n_bits // 2)``."""
        hasher = self.projection_
        return (hasher.mean_ @ hasher.projection_)[: self.n_bits // 2] + self.thresholds_


def double_thresholds(z: Float64Array, rounding: float = 0.0) -> tuple[float, float]:
    """α and β for the values of one dimension; values ``rounding`` apart count as equal."""
    z = np.sort(z)
    n_low = int(np.searchsorted(z, 0, side="right"))
    low, high = np.cumsum(-z[:n_low][::-1]), np.cumsum(z[n_low:])  # sums, from 0 outwards
    i, j = _search_path(low, high)
    F = _mean_square(low, i) + _mean_square(high, j)
    left, right = n_low - i, n_low + j  # the number of values at most α and β
    cuts = _midpoints(z, rounding)
    F[np.isnan(cuts[left]) | np.isnan(cuts[right])] = -1
    if F.max() <= 0:
        return -np.inf, np.inf
    best = int(F.argmax())
    return float(cuts[left[best]]), float(cuts[right[best]])


def _search_path(
    low: Float64Array, high: Float64Array
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The numbers i of low and j of high values in the middle, at each step of the search.

    The middle's sum is ``high[j - 1] - low[i - 1]``; a high value joins while it is not above 0. So
    values join in the order of the sum of the earlier values on their side: a merge of two sorted
    lists, high values first among equals.  The search ends when one side is used up.
    """
    low, high = (np.concatenate(([0.0], sums)) for sums in (low, high))
    before_high = high[:-1][high[:-1] <= low[-1]]
    before_low = low[:-1][low[:-1] < high[-1]]
    order = np.argsort(np.concatenate((before_high, before_low)), kind="stable")
    joined = np.concatenate(([False], order < len(before_high)))
    j = np.cumsum(joined)
    return np.arange(len(joined)) - j, j


def _mean_square(sums: Float64Array, inner: NDArray[np.intp]) -> Float64Array:
    """Square of the sum of all but the first ``inner`` values, divided by their number."""
    total = np.concatenate(([0.0], sums))
    count = len(sums) - inner
    return (total[-1] - total[inner]) ** 2 / np.maximum(count, 1)


def _midpoints(z: Float64Array, rounding: float) -> Float64Array:
    """Thresholds that have 0 … n of the sorted values below them; NaN between equal values."""
    cuts = np.concatenate(([-np.inf], (z[1:] + z[:-1]) / 2, [np.inf]))
    cuts[1:-1][np.diff(z) <= rounding] = np.nan
    return cuts
