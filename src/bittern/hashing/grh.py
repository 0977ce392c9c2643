"""Graph-regularised hashing: bits that neighbours share, learned by classifiers, in turn."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.classifiers import check_regularisation, regularised_classifiers
from bittern.hashing.kernel_maps import (
    choose_anchors,
    gaussian,
    mean_square,
    onnx_gaussian,
    square_distances,
)
from bittern.hashing.linear import LinearHasher, margins, onnx_margins
from bittern.hashing.projected import unfitted
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph
from bittern.progress import track


class GRH(Hasher):
    r"""Graph-regularised hashing: neighbours vote on each bit, and classifiers learn the result.

    :math:`B_0 \in \{-1, 1\}^{n \times b}` are the bits of ``n_labelled`` random training rows under
    the linear hasher ``start``, S their affinities by ``y``, and D the diagonal of the sums of the
    rows of S.  ``n_iter`` times, from :math:`B = B_0`,

    .. math:: B \leftarrow \operatorname{sgn}(\alpha D^{-1} S B + (1 - \alpha) B_0),
        \qquad \operatorname{sgn}(0) = 1;

    then a support vector machine learns each column of B from the rows, and its predictions replace
    the column.  The last machines are the hash functions.

    The machines are linear (squared hinge loss, parameter ``C``) on the Gaussian
    kernel of a row with ``n_anchors`` random training rows, or on the row itself with
    ``n_anchors=None``.  The rarer bit of a column weighs more, so that both weigh the same.
    ``start`` is a linear hasher, by its name (``"itq"``) or unfitted (``ITQ()``).

    The original chooses α in 0.1 … 1 and the number of iterations on validation data, as a grid
    over ``alpha`` and ``n_iter`` does in a protocol.  With α below ½ no vote changes a bit.  The
    defaults are those of the authors' program; on held-out training rows of CIFAR-10 no other α or
    number of iterations was better by more than .001.  The original has 1,000 labelled rows, and
    kernel machines on all of them; its program also has machines on 300 landmarks, as here, and
    rounds the weights of bits up.  The kernel's σ² is the mean squared distance of rows from
    anchors.  Features are centred, and scaled to a mean square length of 1.

    Reference: [Moran-Lavrenko-2015a].
    """

    name = "grh"
    needs_y = True
    cost_power = 1

    anchors_: Rows | None  # (n_anchors, dim)
    width_: float | None
    mean_: Float64Array  # (n_features,)
    projection_: Float64Array  # (n_features, n_bits)
    intercept_: Float64Array  # (n_bits,)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        start: LinearHasher | str | None = "lsh",
        alpha: float = 1.0,
        n_iter: int = 1,
        C: float = 1.0,
        n_anchors: int | None = 300,
        n_labelled: int = 2000,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.start = start
        self.alpha = alpha
        self.n_iter = n_iter
        self.C = C
        self.n_anchors = n_anchors
        self.n_labelled = n_labelled
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        check_regularisation(self._title, self.alpha, self.n_iter, self.C)
        check_count(self.n_labelled, f"{self._title}: n_labelled")
        rng = self._generator()
        start = unfitted(self, "start", self.n_bits, default="lsh")
        start.fit(X, targets.given if start._takes_y else None)
        anchors = width = None
        if self.n_anchors is not None:
            check_count(self.n_anchors, f"{self._title}: n_anchors")
            anchors = choose_anchors(X, self.n_anchors, rng)
            width = mean_square(square_distances(X, anchors))
        rows = np.sort(rng.permutation(len(X))[: self.n_labelled])
        features = _mapped(X[rows], anchors, width).astype(np.float64)
        mean = features.mean(axis=0)
        steps = regularised_classifiers(
            features - mean, start.transform(X[rows]), targets.take(rows), self.alpha, self.C
        )
        for _ in track(range(self.n_iter), f"{self._title}: learning the bits"):
            projection, intercept = next(steps)
            self._keep(
                anchors_=anchors,
                width_=width,
                mean_=mean,
                projection_=projection,
                intercept_=intercept,
            )

    def _logits(self, X: Rows) -> Rows:
        features = _mapped(X, self.anchors_, self.width_)
        return margins(features, self.mean_, self.projection_, self.intercept_)

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        if self.anchors_ is not None and self.width_ is not None:
            rows = onnx_gaussian(graph, rows, self.anchors_, self.width_)
        return onnx_margins(graph, rows, self.mean_, self.projection_, self.intercept_)


def _mapped(X: Rows, anchors: Rows | None, width: float | None) -> Rows:
    """Kernel values with the anchors, or the rows themselves without anchors."""
    return X if anchors is None or width is None else gaussian(X, anchors, width)
