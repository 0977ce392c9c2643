"""Cross-modal hashers whose bits are sides of hyperplanes, in the features of each modality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_choice, check_count, check_number
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.base import CrossModalHasher, Modality
from bittern.hashing.discrete_codes import RidgeMap
from bittern.hashing.itq_cca import LEAST_CORRELATION, equal_scales
from bittern.hashing.kernel_maps import (
    choose_anchors,
    gaussian,
    mean_square,
    onnx_gaussian,
    square_distances,
)
from bittern.hashing.linear import margins, onnx_margins, principal_axes
from bittern.io.onnx_graph import OnnxGraph

RIDGES = {"linear": 0.1, "rbf": 1e-3}  # kernels, and the best ridge on held-out training rows


class ProjectionHasher(CrossModalHasher):
    """Bit k of x is 1 if ``(φ(x) - mean) @ projection[:, k] + intercept[k] > 0``.

    Each modality has its own function, a dictionary of these arrays.  φ(x) is x itself or, if there
    are ``anchors``, its Gaussian kernels with them, of ``width`` σ².
    """

    image_function_: dict[str, NDArray[Any]]
    text_function_: dict[str, NDArray[Any]]

    def _logits(self, rows: Rows, modality: Modality) -> Rows:
        f = self.image_function_ if modality == "images" else self.text_function_
        if "anchors" in f:
            rows = gaussian(rows, f["anchors"], float(f["width"]))
        return margins(rows, f["mean"], f["projection"], f.get("intercept"))

    def _onnx_logits(self, graph: OnnxGraph, rows: str, modality: Modality) -> str:
        f = self.image_function_ if modality == "images" else self.text_function_
        if "anchors" in f:
            rows = onnx_gaussian(graph, rows, f["anchors"], float(f["width"]))
        return onnx_margins(graph, rows, f["mean"], f["projection"], f.get("intercept"))


@dataclass(frozen=True, eq=False)
class View:
    """The training rows of one modality as features with column means 0 and mean square 1."""

    features: Float64Array  # (n, m)
    mean: Float64Array  # (m,)
    scale: float
    kernel: dict[str, NDArray[Any]]  # anchors and width, or nothing

    @classmethod
    def linear(cls, X: Rows) -> Self:
        """The rows themselves, minus their mean, divided by a common standard deviation."""
        return cls._scaled(X.astype(np.float64), {})

    @classmethod
    def rbf(cls, X: Rows, n_anchors: int, rng: np.random.Generator) -> Self:
        """Gaussian kernels with random training rows; σ² is half the mean squared distance."""
        anchors = choose_anchors(X, n_anchors, rng)
        values = square_distances(X, anchors)
        width = mean_square(values) / 2
        values *= -0.5 / width
        return cls._scaled(
            np.exp(values, out=values), {"anchors": anchors, "width": np.array(width)}
        )

    @classmethod
    def _scaled(cls, values: Float64Array, kernel: dict[str, NDArray[Any]]) -> Self:
        mean = values.mean(axis=0)
        values -= mean
        scale = float(np.sqrt(np.square(values).mean())) or 1.0
        values /= scale
        return cls(values, mean, scale, kernel)

    def principal(self) -> tuple[Float64Array, Float64Array]:
        """All principal axes ``(m, r)`` along which the features vary, and the coordinates."""
        _, axes, variances = principal_axes(self.features, min(self.features.shape))
        axes = axes[:, : np.count_nonzero(variances)]
        return axes, self.features @ axes

    def whitened(self, regularisation: float) -> tuple[Float64Array, Float64Array]:
        """A map ``(m, r)`` to uncorrelated columns of equal size, and the features in them.

        Small columns stay smaller: ``regularisation``, times the mean, is added to their squares.
        """
        axes, V = self.principal()
        scales = equal_scales(V, regularisation)
        return axes * scales, V * scales

    def ridge_map(self, ridge: float) -> RidgeMap:
        """Regression on the features without a constant; δ is ``ridge`` times the rows."""
        return RidgeMap(self.features, ridge * len(self.features), constant=False)

    def function(
        self, projection: Float64Array, intercept: Float64Array | None = None
    ) -> dict[str, NDArray[Any]]:
        """The hash function with these weights ``(m, n_bits)`` of the features."""
        arrays = {"mean": self.mean, "projection": projection / self.scale}
        if intercept is not None:
            arrays["intercept"] = intercept
        return {**arrays, **self.kernel}


def canonical_pairs(
    images: View, texts: View, regularisation: float, n: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """At most n canonical directions of both modalities, as columns, and their correlations."""
    (A, X), (B, Y) = images.whitened(regularisation), texts.whitened(regularisation)
    left, correlations, right = np.linalg.svd(X.T @ Y, full_matrices=False)
    k = min(n, int((correlations > LEAST_CORRELATION).sum()))
    return A @ left[:, :k], B @ right[:k].T, correlations[:k]


def make_views(
    images: Rows, texts: Rows, kernel: str, n_anchors: int, rng: np.random.Generator, title: str
) -> tuple[View, View]:
    """The features of both modalities for the options ``kernel`` and ``n_anchors`` of a method."""
    check_choice(kernel, f"{title}: kernel", tuple(RIDGES))
    check_count(n_anchors, f"{title}: n_anchors")
    if kernel == "linear":
        return View.linear(images), View.linear(texts)
    return View.rbf(images, n_anchors, rng), View.rbf(texts, n_anchors, rng)


def choose_ridge(ridge: float | None, kernel: str, title: str) -> float:
    """The option ``ridge`` of a method, or what suits the features if it is None."""
    return RIDGES[kernel] if ridge is None else check_number(ridge, f"{title}: ridge", above=0)
