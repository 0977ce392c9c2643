"""PDQ: 256 bits of an image's lowest frequencies, and how much the image has to tell apart."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array
from bittern.features.base import ImageArray, iter_images
from bittern.features.perceptual import PerceptualHash
from bittern.features.texture import LUMA

SIDE, N_FREQUENCIES = 64, 16
SMALLEST = 5  # pixels of a side; smaller images have no bits
GRADIENTS_PER_POINT, BEST_QUALITY = 90, 100


class PDQ(PerceptualHash):
    r"""PDQ: which of the 16 × 16 lowest frequencies are above their median.

    The luma is averaged twice by a box of half a small pixel, in both directions, and 64 × 64
    pixels :math:`A` of the result are kept.  With

    .. math:: D_{ik} = \sqrt{2/64} \cos\frac{\pi (i + 1)(2k + 1)}{128}, \qquad i < 16,\ k < 64

    the numbers are :math:`D A D^\top` minus their lower median, the last one first.  Bits equal
    those of the package ``pdqhash``.  The authors call codes within a distance of 31 similar, and
    codes of images with a :meth:`quality` below 50 unreliable.  An image with a side of less than
    5 pixels has no bit and the quality 0.

    Reference: [Davis-Rosen-2019].
    """

    name = "pdq"
    n_bits = N_FREQUENCIES**2
    radius = 31

    def quality(self, X: Any) -> NDArray[np.int64]:
        """How much there is to tell apart in each image: 0, as in an even surface, to 100.

        It is the sum of differences between neighbours of the 64 × 64 pixels, each in whole
        hundredths of the range of grey values, divided by 90.
        """
        found = [_quality(_small(image)) for image in iter_images(X, self._title)]
        return np.array(found, np.int64)

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.pdq import find_frequencies

        small = _small(image)
        if small is None:
            return np.zeros(self.n_bits, np.float32)
        found = np.empty((N_FREQUENCIES, N_FREQUENCIES), np.float32)
        find_frequencies(small, _cosines(), found)
        numbers = found.reshape(-1)[::-1]
        return numbers - np.partition(numbers, self.n_bits // 2 - 1)[self.n_bits // 2 - 1]


def _small(image: ImageArray) -> Float32Array | None:
    """The 64 × 64 pixels; None if the image is too small."""
    from bittern.kernels.pdq import shrink_by_boxes

    if min(image.shape[:2]) < SMALLEST:
        return None
    red, green, blue = (image[:, :, c] * weight for c, weight in enumerate(LUMA))
    small = np.empty((SIDE, SIDE), np.float32)
    shrink_by_boxes((red + green + blue).astype(np.float32), small)
    return small


def _quality(small: Float32Array | None) -> int:
    from bittern.kernels.pdq import sum_gradients

    if small is None:
        return 0
    return min(int(sum_gradients(small)) // GRADIENTS_PER_POINT, BEST_QUALITY)


@cache
def _cosines() -> Float32Array:
    """The matrix D of the docstring, each entry rounded once from a product of doubles."""
    scale, step = float(np.float32(math.sqrt(2.0 / SIDE))), math.pi / 2.0 / SIDE
    rows = [
        [scale * math.cos(step * (i + 1) * (2 * k + 1)) for k in range(SIDE)]
        for i in range(N_FREQUENCIES)
    ]
    return np.array(rows, np.float32)
