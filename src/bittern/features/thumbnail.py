"""A small grey copy of the image."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.features.base import ImageFeature
from bittern.features.grey import WEIGHTS
from bittern.features.images import ImageArray

__all__ = ["Thumbnail"]


class Thumbnail(ImageFeature):
    """Grey values, 0 … 1, of a copy of ``width`` × ``height`` pixels, row after row.

    A pixel of the copy is the mean luma (ITU-R BT.601) over its share of the image's area,
    whether the image is larger or smaller than the copy; the aspect is not kept.

    The feature is [Yavlinsky-2004]'s, where the size is not printed; the size is ours.
    """

    name = "thumbnail"

    def __init__(self, *, width: int = 24, height: int = 16) -> None:
        self.width = width
        self.height = height

    def _check(self) -> None:
        check_count(self.width, f"{self._title}: width", most=4096)
        check_count(self.height, f"{self._title}: height", most=4096)

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.areas import shrink

        means = np.empty((self.height, self.width, 3), np.float32)
        shrink(image, means)  # before grey: the luma of a mean is the mean of the luma
        return (means @ (np.array(WEIGHTS, np.float32) / np.float32(255))).reshape(-1)
