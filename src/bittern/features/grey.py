"""Grey values of a image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.features.images import ImageArray

__all__ = ["WEIGHTS", "to_grey"]

WEIGHTS = (0.299, 0.587, 0.114)  # of red, green and blue in the luma of ITU-R BT.601


def to_grey(image: ImageArray) -> NDArray[np.uint8]:
    """The luma of each pixel after ITU-R BT.601, ``(h, w)``, rounded to octets as Pillow does."""
    from PIL import Image

    return np.array(Image.fromarray(image).convert("L"))
