"""Tieu and Viola's many selective features."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.features.base import ImageFeature
from bittern.features.images import ImageArray

__all__ = ["Convolution"]

# Level, edge, spot, wave and ripple of Laws, each of unit length.
KERNELS = np.array(
    [[1, 4, 6, 4, 1], [-1, -2, 0, 2, 1], [-1, 0, 2, 0, -1], [-1, 2, 0, -2, 1], [1, -4, 6, -4, 1]],
    np.float32,
)
KERNELS /= np.sqrt((KERNELS**2).sum(axis=1, keepdims=True))


class Convolution(ImageFeature):
    r"""Mean response to every sequence of three out of 25 filters, for each colour channel.

    Of the channels :math:`I_c`, with intensities in [0, 1] and scaled to ``size`` × ``size``
    pixels by means over areas, the 46,875 values are

    .. math::

        g_{ijkc} = \operatorname{mean} X_{ijkc}, \qquad
        X_{ijkc} = {\downarrow_2} |f_k * X_{ijc}|, \quad
        X_{ijc} = {\downarrow_2} |f_j * X_{ic}|, \quad
        X_{ic} = {\downarrow_2} |f_i * I_c|

    where :math:`f` are the filters and :math:`\downarrow_2` keeps every other pixel of both
    directions, from the first on.  Beyond an edge stands the pixel at the edge.  A row reshaped to
    ``(25, 25, 25, 3)`` has the third, the second and the first filter and the channel as its axes.

    The scheme is that of [Tieu-Viola-2000], who sum where we take means, so that ``size`` does
    not change the scale.  We did not have the coefficients of their 25 filters; ours are the
    products of Laws' five kernels along y (slower) and x [Laws-1980], scaled to unit length, so
    that noise makes all of them respond alike.  The working size is ours too.
    """

    name = "convolution"

    def __init__(self, *, size: int = 48) -> None:
        self.size = size

    def _check(self) -> None:
        check_count(self.size, f"{self._title}: size", least=8, most=1024)

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.areas import shrink
        from bittern.kernels.filters import rectify, sum_rectified

        n_filters = len(KERNELS) ** 2
        maps = np.empty((self.size, self.size, 3), np.float32)
        shrink(image, maps)
        maps /= np.float32(255)
        for _ in range(2):
            side = (len(maps) + 1) // 2
            out = np.empty((side, side, n_filters, maps.shape[2]), np.float32)
            rectify(maps, KERNELS, out)
            maps = out.reshape(side, side, -1)
        side = (len(maps) + 1) // 2
        sums = np.empty((n_filters, maps.shape[2]), np.float32)
        sum_rectified(maps, KERNELS, sums)
        return sums.reshape(-1) / np.float32(side * side)
