"""Kernelised LSH: random hyperplanes in the feature space of a kernel."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_choice, check_count, check_number
from bittern.hashing.base import Rows
from bittern.hashing.kernel_maps import (
    KernelHasher,
    choose_anchors,
    gaussian,
    mean_square,
    onnx_unit_rows,
    square_distances,
    unit_rows,
)
from bittern.hashing.linear import margins, onnx_margins
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph

KERNELS = ("gaussian", "linear", "cosine")


class KLSH(KernelHasher):
    r"""Random hyperplanes in the feature space of a kernel, each a combination of p anchors.

    By the central limit theorem, the mean of t random anchors is nearly normal around the mean of
    all; whitened by the anchors' covariance, it is a random direction of the feature space.  In
    terms of the anchors' centred kernel matrix :math:`\tilde K` it has the weights

    .. math:: w = \tilde K^{-1/2} e_S, \qquad
        \text{bit} = \Big[ \sum_{i = 1}^{p} w_i \, \tilde\kappa(x, a_i) > 0 \Big],

    with :math:`e_S` 1 for t random anchors and 0 for the others, and :math:`\tilde\kappa` the
    kernel centred at the anchors' mean.  As :math:`\sum_i w_i = 0`, κ(x, a) minus its mean over the
    anchors is enough.

    The anchors are ``n_anchors`` random training rows (or all distinct ones, if there are fewer).
    ``n_chosen`` is t; it is limited to half of the anchors, because the mean of all of them gives
    no direction.  Directions in which the anchors do not vary are left out of the inverse.

    ``kernel`` is ``"gaussian"``, :math:`\exp(-\|x - y\|^2 / (2\sigma^2))`, ``"linear"`` or
    ``"cosine"``; ``width`` is σ², by default the mean squared distance of training rows from the
    anchors.

    Reference: [Kulis-Grauman-2009].
    """

    name = "klsh"

    kernel_: str

    def __init__(
        self,
        n_bits: int = 32,
        *,
        kernel: str = "gaussian",
        width: float | None = None,
        n_anchors: int = 300,
        n_chosen: int = 30,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.kernel = kernel
        self.width = width
        self.n_anchors = n_anchors
        self.n_chosen = n_chosen
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        kernel = check_choice(self.kernel, f"{self._title}: kernel", KERNELS)
        check_count(self.n_anchors, f"{self._title}: n_anchors")
        check_count(self.n_chosen, f"{self._title}: n_chosen")
        if self.width is not None:
            check_number(self.width, f"{self._title}: width", above=0)
        rng = self._generator()
        anchors = choose_anchors(X, self.n_anchors, rng)
        width = self.width or mean_square(square_distances(X, anchors))
        K = _kernel_values(anchors, anchors, kernel, width).astype(np.float64)
        t = max(1, min(self.n_chosen, len(anchors) // 2))
        self._keep(
            kernel_=kernel,
            anchors_=anchors,
            width_=float(width),
            mean_=K.mean(axis=0),
            projection_=_inverse_root(_centred(K)) @ _choices(len(anchors), t, self.n_bits, rng),
        )

    def _logits(self, X: Rows) -> Rows:
        values = _kernel_values(X, self.anchors_, self.kernel_, self.width_)
        return margins(values, self.mean_, self.projection_)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        if self.kernel_ == "gaussian":
            return super()._onnx_logits(graph, rows)
        anchors = self.anchors_
        if self.kernel_ == "cosine":
            rows, anchors = onnx_unit_rows(graph, rows), unit_rows(anchors)
        values = graph.add("MatMul", rows, anchors.T.astype(np.float64))
        return onnx_margins(graph, values, self.mean_, self.projection_)


def _kernel_values(X: Rows, anchors: Rows, kernel: str, width: float) -> Rows:
    """Kernel values of the rows with the anchors, ``(n, n_anchors)``."""
    if kernel == "gaussian":
        return gaussian(X, anchors, width)
    if kernel == "cosine":
        X, anchors = unit_rows(X), unit_rows(anchors)
    return X @ anchors.T


def _centred(K: Float64Array) -> Float64Array:
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def _inverse_root(K: Float64Array) -> Float64Array:
    """K to the power -1/2, in the directions in which it is not 0 up to rounding."""
    values, vectors = np.linalg.eigh(K)
    real = values > len(K) * np.finfo(np.float32).eps * max(values[-1], 0)
    roots = vectors[:, real] / np.sqrt(values[real])
    return roots @ vectors[:, real].T


def _choices(n: int, t: int, n_bits: int, rng: np.random.Generator) -> Float64Array:
    """For each bit a column ``(n,)`` with t ones at random places."""
    ranks = rng.random((n, n_bits)).argsort(axis=0)
    return (ranks < t).astype(np.float64)
