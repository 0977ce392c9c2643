"""Small copies of images: which modality of a dataset has images, and images as addresses."""

from __future__ import annotations

import base64
import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

    from bittern.data.dataset import Dataset

PIXELS = "pixels"  # a modality whose rows are grey levels of a square
SIDE = 96  # pixels


def image_modality(dataset: Dataset) -> str | None:
    """The modality whose rows are images; None if there is none."""
    for name, rows in dataset.modalities.items():
        present = np.flatnonzero(dataset.has(name))
        if not len(present):
            continue
        row = rows[present[0]]
        shape: tuple[int, ...] = (
            () if hasattr(row, "toarray") else np.shape(row)
        )  # a sparse row is no image
        if len(shape) in (2, 3) or (
            name == PIXELS and len(shape) == 1 and math.isqrt(shape[0]) ** 2 == shape[0]
        ):
            return name
    return None


def small_image(pixels: NDArray[Any], side: int = SIDE) -> Image:
    """An image of at most ``side`` pixels in each direction.

    A row of grey levels becomes a square, dark on light like ink.
    """
    from PIL import Image

    image = Image.fromarray(_grey_levels(pixels))
    image.thumbnail((side, side))
    return image


def image_address(pixels: NDArray[Any], side: int = SIDE) -> str:
    """An address that holds a small copy of the image itself.

    An image of few pixels is enlarged, so that each pixel becomes a square that can be seen.
    """
    from PIL.Image import Resampling

    image, content = small_image(pixels, side), io.BytesIO()
    if (factor := side // (2 * max(image.size))) > 1:
        image = image.resize((factor * image.width, factor * image.height), Resampling.NEAREST)
    image.save(content, "jpeg", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(content.getvalue()).decode()


def _grey_levels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8 and pixels.ndim > 1:
        return pixels.squeeze()
    side = math.isqrt(pixels.size)
    square = pixels.reshape(side, side) if pixels.ndim == 1 else pixels
    return np.round(255 * (1 - square / max(float(square.max()), 1.0))).astype(np.uint8)
