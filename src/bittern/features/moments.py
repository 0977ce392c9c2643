"""Moments of the three colour channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_type
from bittern.features.base import ImageFeature
from bittern.features.images import ImageArray

__all__ = ["RGBMoments"]

ORDERS = (2, 3, 4)


class RGBMoments(ImageFeature):
    r"""Mean and second, third and fourth central moment of red, of green and of blue: 12 values.

    Of a channel with intensities :math:`z \in [0, 1]` and their histogram :math:`p`,

    .. math:: \mu = \sum_z z\,p(z), \qquad \mu_k = \sum_z (z - \mu)^k\,p(z).

    With ``roots``, the default, :math:`\operatorname{sign}(\mu_k)\,|\mu_k|^{1/k}` stands for
    :math:`\mu_k`: then all are intensities, and in an L1 distance none counts for nothing.
    Without, they are the moments as they are, of which the fourth is at most 1/12 and the mean up
    to 1.

    [Yavlinsky-2004] names the moments; the roots are ours.
    """

    name = "rgb-moments"

    def __init__(self, *, roots: bool = True) -> None:
        self.roots = roots

    def _check(self) -> None:
        check_type(self.roots, bool, f"{self._title}: roots")

    def _describe(self, image: ImageArray) -> Float32Array:
        channels = [_moments(np.bincount(z, minlength=256)) for z in image.reshape(-1, 3).T]
        values = np.stack(channels)  # (3, 4)
        if self.roots:
            central = values[:, 1:]
            values[:, 1:] = np.sign(central) * np.abs(central) ** (1 / np.array(ORDERS))
        return values.reshape(-1).astype(np.float32)


def _moments(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    z, p = np.arange(256) / 255, counts / counts.sum()
    mean = z @ p
    return np.array([mean, *((z - mean) ** k @ p for k in ORDERS)])
