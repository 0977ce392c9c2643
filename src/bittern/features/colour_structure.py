"""The colour structure descriptor of MPEG-7."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_count, check_type
from bittern.errors import InputError
from bittern.features.base import ImageFeature
from bittern.features.images import ImageArray

__all__ = ["ColourStructure"]

SIDE = 8  # of the structuring element, in pixels

# Number of cells: least difference of each subspace, its cells along hue, its cells along sum.
SPACES: dict[int, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    256: ((0, 6, 20, 60, 110), (1, 4, 16, 16, 16), (32, 8, 4, 4, 4)),
    128: ((0, 6, 20, 60, 110), (1, 4, 8, 8, 8), (16, 4, 4, 4, 4)),
    64: ((0, 6, 20, 60, 110), (1, 4, 4, 8, 8), (8, 4, 4, 2, 1)),
    32: ((0, 6, 60, 110), (1, 4, 4, 4), (8, 4, 1, 1)),
}

# The standard's 8 bits for an amplitude: level 0 is for none at all; the range above is divided
# at these bounds, and each part evenly into so many levels.
BOUNDS = (0.0, 0.037, 0.08, 0.195, 0.32, 1.0)
LEVELS = (25, 20, 35, 35, 140)


class ColourStructure(ImageFeature):
    r"""For each colour, the share of positions of an 8 × 8 element that see it.

    The colour space is HMMD: hue, and of the three channels the greatest, the least, their
    difference and half their sum.  It is divided by difference into subspaces and each of them
    evenly by hue and sum (greys by sum alone), into ``n_bins`` cells: 256, 128, 64 or 32.  Value
    c is

    .. math:: h(c) = \frac{\text{positions of the element with a pixel of colour } c
        \text{ in it}}{\text{positions of the element}}

    so that colour in one patch and the same colour scattered differ; the values need not sum to
    one.  Of a large image every K-th pixel of every K-th row is taken first,
    :math:`K = 2^p` with :math:`p = \max(0, \lfloor \log_2 \sqrt{wh} - 7.5 \rfloor)`.  A side
    shorter than 8 pixels cuts the element to its length.

    With ``quantise`` the values are the standard's 8-bit levels, 0 … 255, which are finer for
    small shares; without, shares in [0, 1].

    Tables, order of the cells and rounding are those of MPEG-7's reference software, which counts
    256 cells and adds them up (at most to 1) for fewer; here cells of the asked number are
    counted themselves, which is the definition above and the same for 256.

    References: [Manjunath-Ohm-Vasudevan-Yamada-2001]; [Messing-vanBeek-Errico-2001];
    [Yavlinsky-2004] uses it and does not say with how many bins.
    """

    name = "colour-structure"

    def __init__(self, *, n_bins: int = 64, quantise: bool = True) -> None:
        self.n_bins = n_bins
        self.quantise = quantise

    def _check(self) -> None:
        name = f"{self._title}: n_bins"
        if check_count(self.n_bins, name, least=32, most=256) not in SPACES:
            raise InputError(f"{name} must be 32, 64, 128 or 256, got {self.n_bins}.")
        check_type(self.quantise, bool, f"{self._title}: quantise")

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.colours import count_seen, hmmd_cells

        image = _subsample(image)
        height, width = image.shape[:2]
        side_y, side_x = min(SIDE, height), min(SIDE, width)
        cells = np.empty((height, width), np.uint8)
        counts = np.empty(self.n_bins, np.int64)
        hmmd_cells(image, *_tables(self.n_bins), cells)
        count_seen(cells, side_y, side_x, counts)
        shares = counts / ((height - side_y + 1) * (width - side_x + 1))
        return (_quantise(shares) if self.quantise else shares).astype(np.float32)


def _subsample(image: ImageArray) -> ImageArray:
    height, width = image.shape[:2]
    step = 1 << max(0, math.floor(math.log2(height * width) / 2 - 7.5))
    rows, columns = max(height // step, 1), max(width // step, 1)
    return np.ascontiguousarray(image[: rows * step : step, : columns * step : step])


@lru_cache
def _tables(n_bins: int) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint8]]:
    """Subspace of each difference; what hue and sum add to the number of the cell, by subspace."""
    lows, n_hues, n_sums = (np.array(column)[:, None] for column in SPACES[n_bins])
    subspaces = np.searchsorted(lows[:, 0], np.arange(256), side="right") - 1
    sizes = n_hues * n_sums
    starts = sizes[::-1].cumsum()[::-1, None] - sizes  # most colourful subspace first
    hues = np.arange(361) * n_hues // 360 % n_hues
    # In a subspace the sum runs from half the least difference to as far below 255.
    sums = (2 * np.arange(256) - lows) * n_sums // (2 * (255 - lows))
    sums = np.clip(sums, 0, n_sums - 1)
    return subspaces, (starts + hues * n_sums).astype(np.uint8), sums.astype(np.uint8)


def _quantise(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    part = np.clip(np.searchsorted(BOUNDS, shares, side="right") - 1, 0, len(LEVELS) - 1)
    low, high = np.array(BOUNDS)[part], np.array(BOUNDS)[part + 1]
    before = np.cumsum(LEVELS) - LEVELS
    levels = 1 + before[part] + np.floor((shares - low) * np.array(LEVELS)[part] / (high - low))
    return np.where(shares > 0, np.minimum(levels, 255), 0)
