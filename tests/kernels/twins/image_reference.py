"""Twins of ``bittern.kernels.images``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[Any]


def hsv_cells(image: Array, n_hues: int, n_saturations: int, n_values: int, cells: Array) -> None:
    """Twin of ``images.hsv_cells``."""
    top, diff, sixths = _hue(image)
    hue = sixths * n_hues // np.maximum(6 * diff, 1)
    saturation = np.minimum(diff * n_saturations // np.maximum(top, 1), n_saturations - 1)
    cells[:] = (top * n_values // 256 * n_saturations + saturation) * n_hues + hue


def hmmd_cells(image: Array, subspaces: Array, hues: Array, sums: Array, cells: Array) -> None:
    """Twin of ``images.hmmd_cells``."""
    top, diff, sixths = _hue(image)
    degrees = (120 * sixths + diff) // np.maximum(2 * diff, 1)
    subspace = subspaces[diff]
    cells[:] = hues[subspace, degrees] + sums[subspace, (2 * top - diff + 1) // 2]


def count_seen(cells: Array, side_y: int, side_x: int, counts: Array) -> None:
    """Twin of ``images.count_seen``."""
    seen = sliding_window_view(cells, (side_y, side_x))
    for c in range(len(counts)):
        counts[c] = (seen == c).any(axis=(2, 3)).sum()


def shrink(image: Array, out: Array) -> None:
    """Twin of ``images.shrink``."""
    height, width, depth = image.shape
    m, n = out.shape[:2]
    fine = np.repeat(np.repeat(image, m, axis=0), n, axis=1)  # a share is height × width of it
    out[:] = fine.reshape(m, height, n, width, depth).mean(axis=(1, 3))


def count_deviations(
    grey: Array,
    side_y: int,
    side_x: int,
    bin_width: float,
    row_starts: Array,
    column_starts: Array,
    counts: Array,
) -> None:
    """Twin of ``images.count_deviations``."""
    deviations = sliding_window_view(grey.astype(float), (side_y, side_x)).std(axis=(2, 3))
    bins = np.minimum((deviations.round(9) // bin_width).astype(int), counts.shape[2] - 1)
    for i, top in enumerate(row_starts[:-1]):
        for j, left in enumerate(column_starts[:-1]):
            bottom, right = max(row_starts[i + 1], top + 1), max(column_starts[j + 1], left + 1)
            tile = bins[top:bottom, left:right]
            counts[i, j] = np.bincount(tile.reshape(-1), minlength=counts.shape[2])


def rectify(maps: Array, kernels: Array, out: Array) -> None:
    """Twin of ``images.rectify``."""
    padded = np.pad(maps.astype(float), ((2, 2), (2, 2), (0, 0)), mode="edge")
    patches = sliding_window_view(padded, (5, 5), axis=(0, 1))[::2, ::2]
    responses = np.einsum("yxmts,at,bs->yxabm", patches, kernels, kernels)
    out[:] = np.abs(responses).reshape(out.shape)


def sum_rectified(maps: Array, kernels: Array, out: Array) -> None:
    """Twin of ``images.sum_rectified``."""
    height, width, n_maps = maps.shape
    all_responses = np.empty(((height + 1) // 2, (width + 1) // 2, len(kernels) ** 2, n_maps))
    rectify(maps, kernels, all_responses)
    out[:] = all_responses.sum(axis=(0, 1))


def _hue(image: Array) -> tuple[Array, Array, Array]:
    """Greatest channel, its distance to the least, and hue in sixths of a turn times that."""
    r, g, b = np.moveaxis(image.astype(np.int64), 2, 0)
    top = image.max(axis=2).astype(np.int64)
    diff = top - image.min(axis=2)
    sixths = np.select(
        [top == r, top == g],
        [(g - b) % np.maximum(6 * diff, 1), 2 * diff + b - r],
        4 * diff + r - g,
    )
    return top, diff, sixths
