"""Spectral hashing: eigenfunctions of the Laplacian on a box."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.hashing.base import Hasher, Rows
from bittern.hashing.linear import SLACK, principal_axes
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph


class SH(Hasher):
    r"""Signs of the smoothest waves over the principal components.

    If the rows were uniform in a box with sides [a, b] along the principal axes, the smoothest
    functions on them would be the eigenfunctions of the Laplacian,

    .. math:: \Phi_k(z) = \sin\left(\frac{\pi}{2} + \frac{k \pi}{b - a} (z - a)\right),
        \qquad \lambda_k = \left(\frac{k \pi}{b - a}\right)^2, \qquad k = 1, 2, \ldots

    with z a principal component.  Bit j is 1 if the eigenfunction of the j-th smallest eigenvalue
    is above 0.  The constant k = 0, and products of several components, which depend on the others,
    are left out.  As in the authors' program, a and b are the smallest and the largest value of a
    training row, and only the ``n_bits`` leading components are used.

    One component may give several bits and another none, so there are always enough: rows that vary
    in one direction only are cut ``n_bits`` times along it.  If they do not vary at all, every bit
    is 0.

    Reference: [Weiss-Torralba-Fergus-2008].
    """

    name = "sh"

    mean_: Float64Array  # (dim,)
    components_: NDArray[np.intp]  # (n_bits,) which principal component, 0 the leading one
    modes_: NDArray[np.intp]  # (n_bits,) its k
    frequencies_: Float64Array  # (dim, n_bits) k π / (b - a) times the principal axis
    phases_: Float64Array  # (n_bits,) of x = 0, without the π/2

    def __init__(self, n_bits: int = 32, *, random_state: int | None = 0):
        self.n_bits = n_bits
        self.random_state = random_state

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        mean, axes, _ = principal_axes(X, min(self.n_bits, X.shape[1]))
        Z = (X @ axes.astype(X.dtype)).astype(np.float64)
        a, sides = Z.min(axis=0), np.ptp(Z, axis=0)
        sides[sides <= SLACK * np.finfo(X.dtype).eps * (np.abs(mean) @ np.abs(axes))] = 0
        components, modes = _smoothest(sides, self.n_bits)
        scale = np.pi * modes / np.where(modes > 0, sides[components], 1)
        self._keep(
            mean_=mean,
            components_=components,
            modes_=modes,
            frequencies_=axes[:, components] * scale,
            phases_=np.where(modes > 0, -scale * a[components], np.pi),
        )

    def _logits(self, X: Rows) -> Rows:
        angles = X @ self.frequencies_
        angles += self.phases_
        return np.cos(angles, out=angles) - self._rounding()

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        angles = graph.add("Add", graph.add("MatMul", rows, self.frequencies_), self.phases_)
        return graph.add("Sub", graph.add("Cos", angles), self._rounding())

    def _rounding(self) -> Float64Array:
        """Cosines that count as 0, ``(n_bits,)``."""
        size = np.abs(self.mean_) @ np.abs(self.frequencies_) + np.abs(self.phases_)
        return SLACK * np.finfo(np.float64).eps * size


def _smoothest(sides: Float64Array, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Component and mode of the n smallest k / side; 0 and 0 if all sides are 0."""
    real = np.flatnonzero(sides)
    if len(real) == 0:
        return np.zeros(n, np.intp), np.zeros(n, np.intp)
    modes = np.arange(1, n + 1)
    steps = modes[:, None] / sides[real]  # (mode, component)
    first = np.argsort(steps, axis=None, kind="stable")[:n]
    mode, component = np.unravel_index(first, steps.shape)
    return real[component], modes[mode]
