"""Colour: histograms in HSV, MPEG-7's colour structure, and moments of the channels."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_count, check_type
from bittern.errors import InputError
from bittern.features.base import ImageArray, ImageFeature

# MPEG-7's colour structure.
SIDE = 8  # of the structuring element, in pixels
# For each number of cells: the least difference of each subspace, and its cells by hue and by sum.
SPACES: dict[int, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    256: ((0, 6, 20, 60, 110), (1, 4, 16, 16, 16), (32, 8, 4, 4, 4)),
    128: ((0, 6, 20, 60, 110), (1, 4, 8, 8, 8), (16, 4, 4, 4, 4)),
    64: ((0, 6, 20, 60, 110), (1, 4, 4, 8, 8), (8, 4, 4, 2, 1)),
    32: ((0, 6, 60, 110), (1, 4, 4, 4), (8, 4, 1, 1)),
}
# The standard's 8-bit quantisation: level 0 means that a colour is missing; the shares between two
# bounds are divided evenly into the number of levels below.
BOUNDS = (0.0, 0.037, 0.08, 0.195, 0.32, 1.0)
LEVELS = (25, 20, 35, 35, 140)

ORDERS = (2, 3, 4)  # of the central moments


class HSVGlobal(ImageFeature):
    r"""Histogram of the colours of all pixels; it sums to one.

    With :math:`M` the greatest and :math:`m` the least of red, green and blue, the value is
    :math:`M`, the saturation :math:`(M - m) / M` and the hue the angle around the grey axis.
    Each is divided into equal intervals, and bin :math:`(v\,n_s + s)\,n_h + h` counts the pixels
    in interval :math:`h` of the hue, :math:`s` of the saturation and :math:`v` of the value.
    Black has no saturation and grey no hue; both count as zero.

    [Yavlinsky-2004] takes the colour space from [Travis-1991] and does not state the number of
    bins.  Ours are those of MPEG-7's scalable colour descriptor, 16 × 4 × 4
    [Manjunath-Ohm-Vasudevan-Yamada-2001].
    """

    name = "hsv-global"

    def __init__(self, *, n_hues: int = 16, n_saturations: int = 4, n_values: int = 4) -> None:
        self.n_hues = n_hues
        self.n_saturations = n_saturations
        self.n_values = n_values

    def _check(self) -> None:
        check_count(self.n_hues, f"{self._title}: n_hues", most=360)
        check_count(self.n_saturations, f"{self._title}: n_saturations", most=256)
        check_count(self.n_values, f"{self._title}: n_values", most=256)

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.images import hsv_cells

        cells = np.empty(image.shape[:2], np.intp)
        hsv_cells(image, self.n_hues, self.n_saturations, self.n_values, cells)
        n_bins = self.n_hues * self.n_saturations * self.n_values
        counts = np.bincount(cells.reshape(-1), minlength=n_bins)
        return (counts / cells.size).astype(np.float32)


class HSVFocus(HSVGlobal):
    """Histogram of the colours in the middle of the image; it sums to one.

    It is the histogram of ``HSVGlobal`` over the middle half in each direction, which is a quarter
    of the area: a quarter of each side, rounded down, is left out at both ends.

    Reference: [Yavlinsky-2004].
    """

    name = "hsv-focus"

    def _describe(self, image: ImageArray) -> Float32Array:
        height, width = image.shape[:2]
        top, left = height // 4, width // 4
        middle = image[top : height - top, left : width - left]
        return super()._describe(np.ascontiguousarray(middle))


class ColourStructure(ImageFeature):
    r"""For each colour, the share of 8 × 8 windows that contain it (MPEG-7).

    The colour space is HMMD: hue, the maximum and the minimum of the three channels, and the
    difference and half the sum of these two.  It is divided by difference into subspaces, and each
    subspace evenly by hue and sum (greys by sum alone), into ``n_bins`` cells: 256, 128, 64 or 32.
    Value c is

    .. math:: h(c) = \frac{\text{windows with a pixel of colour } c}{\text{windows}}

    so that colour in one patch and the same colour scattered differ; the values need not sum to
    one.  A large image is first subsampled, to every K-th pixel of every K-th row with
    :math:`K = 2^p` and :math:`p = \max(0, \lfloor \log_2 \sqrt{wh} - 7.5 \rfloor)`.  If a side is
    shorter than 8 pixels, so is the window.

    With ``quantise`` the values are the standard's 8-bit levels, 0 … 255, which are finer for
    small shares; without it they are the shares in [0, 1].

    Tables, order of the cells and rounding are those of MPEG-7's reference software.  For fewer
    than 256 cells that software counts 256 and adds them up (at most to 1); here the requested
    cells are counted directly, as defined above.

    References: [Manjunath-Ohm-Vasudevan-Yamada-2001]; [Messing-vanBeek-Errico-2001];
    [Yavlinsky-2004] uses it without giving the number of bins.
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
        from bittern.kernels.images import count_seen, hmmd_cells

        image = _subsample(image)
        height, width = image.shape[:2]
        side_y, side_x = min(SIDE, height), min(SIDE, width)
        cells = np.empty((height, width), np.uint8)
        counts = np.empty(self.n_bins, np.int64)
        hmmd_cells(image, *_hmmd_tables(self.n_bins), cells)
        count_seen(cells, side_y, side_x, counts)
        shares = counts / ((height - side_y + 1) * (width - side_x + 1))
        return (_quantise(shares) if self.quantise else shares).astype(np.float32)


class RGBMoments(ImageFeature):
    r"""Mean and second, third and fourth central moment of red, green and blue: 12 values.

    For a channel with intensities :math:`z \in [0, 1]` and their histogram :math:`p`,

    .. math:: \mu = \sum_z z\,p(z), \qquad \mu_k = \sum_z (z - \mu)^k\,p(z).

    With ``roots``, the default, :math:`\operatorname{sign}(\mu_k)\,|\mu_k|^{1/k}` replaces
    :math:`\mu_k`, so that all values are intensities and all of them matter in an L1 distance.
    Without it they are the plain moments: the fourth is at most 1/12, while the mean goes up to 1.

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


def _subsample(image: ImageArray) -> ImageArray:
    height, width = image.shape[:2]
    step = 1 << max(0, math.floor(math.log2(height * width) / 2 - 7.5))
    rows, columns = max(height // step, 1), max(width // step, 1)
    return np.ascontiguousarray(image[: rows * step : step, : columns * step : step])


@lru_cache
def _hmmd_tables(n_bins: int) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint8]]:
    """Subspace of each difference; and per subspace, what hue and sum add to the cell number."""
    lows, n_hues, n_sums = (np.array(column)[:, None] for column in SPACES[n_bins])
    subspaces = np.searchsorted(lows[:, 0], np.arange(256), side="right") - 1
    sizes = n_hues * n_sums
    starts = sizes[::-1].cumsum()[::-1, None] - sizes  # most colourful subspace first
    hues = np.arange(361) * n_hues // 360 % n_hues
    # In a subspace the sum runs from half its least difference to 255 minus that.
    sums = (2 * np.arange(256) - lows) * n_sums // (2 * (255 - lows))
    sums = np.clip(sums, 0, n_sums - 1)
    return subspaces, (starts + hues * n_sums).astype(np.uint8), sums.astype(np.uint8)


def _quantise(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    part = np.clip(np.searchsorted(BOUNDS, shares, side="right") - 1, 0, len(LEVELS) - 1)
    low, high = np.array(BOUNDS)[part], np.array(BOUNDS)[part + 1]
    before = np.cumsum(LEVELS) - LEVELS
    levels = 1 + before[part] + np.floor((shares - low) * np.array(LEVELS)[part] / (high - low))
    return np.where(shares > 0, np.minimum(levels, 255), 0)


def _moments(counts: NDArray[np.intp]) -> NDArray[np.float64]:
    z, p = np.arange(256) / 255, counts / counts.sum()
    mean = z @ p
    return np.array([mean, *((z - mean) ** k @ p for k in ORDERS)])
