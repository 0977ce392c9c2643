"""Arrays of images: checked, varied, and as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_array
from bittern.data.blocks import is_lazy
from bittern.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AT_ONCE", "check_images", "shifted_and_mirrored", "tensor"]

AT_ONCE = 8  # images through a network, when no gradient is wanted: what caches hold


def tensor(rows: NDArray[Any]) -> Tensor:
    """Rows, or images with their channels first, for a network."""
    import torch

    if rows.ndim == 3:
        rows = rows[..., None]
    if rows.ndim == 4:
        rows = rows.transpose(0, 3, 1, 2)
    kept = rows if rows.dtype == np.uint8 and rows.ndim == 4 else rows.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(kept))


def shifted_and_mirrored(images: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Each image moved by up to an eighth of its sides, reflected at the edges, and mirrored."""
    n, height, width = images.shape[:3]
    places = []
    for side in (height, width):
        most = side // 8
        place = np.arange(side) + rng.integers(-most, most + 1, size=(n, 1))
        place = np.abs(place)
        places.append(np.where(place >= side, 2 * side - 2 - place, place))
    rows, columns = places
    mirrored = rng.random((n, 1)) < 0.5
    columns = np.where(mirrored, columns[:, ::-1], columns)
    return images[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]


def check_images(X: Any, title: str, *, strictly: bool) -> NDArray[Any]:
    """An array of inputs for a network; if strictly, images."""
    array = check_array(X[:] if is_lazy(X) else X, f"{title}: X")
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool) or array.ndim < 2:
        raise InputError(f"{title}: needs an array of numbers for each row, got {array.dtype}.")
    if len(array) == 0:
        raise InputError(f"{title}: at least one row is needed, got none.")
    is_image = array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3))
    if strictly and not is_image:
        raise InputError(
            f"{title}: this network needs images (n, height, width[, channels]) of one size, "
            f"with 1 or 3 channels, got shape {array.shape}."
        )
    if array.dtype != np.uint8:
        if not np.isfinite(array).all():
            raise InputError(f"{title}: X contains NaN or infinity.")
        if strictly and (array.min() < 0 or array.max() > 255 or array.max() <= 1 < array.size):
            raise InputError(
                f"{title}: images have values 0 … 255, got {array.min():g} … {array.max():g}."
            )
    return array
