"""Texture: a grey thumbnail, local deviations, smoothness and uniformity of tiles, filters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_count, is_number
from bittern.errors import InputError
from bittern.features.base import ImageArray, ImageFeature

LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in ITU-R BT.601
N_VARIANCE_TILES = 3  # in each direction
# Laws' level, edge, spot, wave and ripple, each of unit length.
KERNELS = np.array(
    [[1, 4, 6, 4, 1], [-1, -2, 0, 2, 1], [-1, 0, 2, 0, -1], [-1, 2, 0, -2, 1], [1, -4, 6, -4, 1]],
    np.float32,
)
KERNELS /= np.sqrt((KERNELS**2).sum(axis=1, keepdims=True))


class Thumbnail(ImageFeature):
    """Grey values (0 … 1) of a small copy of the image, row by row.

    The copy has ``width`` × ``height`` pixels.  A pixel of it is the mean luma (ITU-R BT.601) over
    its share of the image's area, whether the image is larger or smaller than the copy.  The aspect
    ratio may change.

    The feature is from [Yavlinsky-2004], which does not state the size; we chose it.
    """

    name = "thumbnail"

    def __init__(self, *, width: int = 24, height: int = 16) -> None:
        self.width = width
        self.height = height

    def _check(self) -> None:
        check_count(self.width, f"{self._title}: width", most=4096)
        check_count(self.height, f"{self._title}: height", most=4096)

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.images import shrink

        means = np.empty((self.height, self.width, 3), np.float32)
        shrink(image, means)  # before grey, because the luma of a mean is the mean of the luma
        return (means @ (np.array(LUMA, np.float32) / np.float32(255))).reshape(-1)


class Convolution(ImageFeature):
    r"""Mean response to every sequence of three out of 25 filters, for each colour channel.

    The channels :math:`I_c` have intensities in [0, 1] and are scaled to ``size`` × ``size``
    pixels by means over areas.  The 46,875 values are

    .. math::

        g_{ijkc} = \operatorname{mean} X_{ijkc}, \qquad
        X_{ijkc} = {\downarrow_2} |f_k * X_{ijc}|, \quad
        X_{ijc} = {\downarrow_2} |f_j * X_{ic}|, \quad
        X_{ic} = {\downarrow_2} |f_i * I_c|

    where :math:`f` are the filters and :math:`\downarrow_2` keeps every other pixel in both
    directions, starting with the first.  Beyond an edge the edge pixel is repeated.  A row
    reshaped to ``(25, 25, 25, 3)`` has the third, the second and the first filter and the channel
    as its axes.

    The scheme is that of [Tieu-Viola-2000], who sum where we take means, so that ``size`` does not
    change the scale.  We did not have the coefficients of their 25 filters; ours are the products
    of Laws' five kernels along y (slower) and x [Laws-1980], scaled to unit length, so that all
    respond alike to noise.  We chose the working size too.
    """

    name = "convolution"

    def __init__(self, *, size: int = 48) -> None:
        self.size = size

    def _check(self) -> None:
        check_count(self.size, f"{self._title}: size", least=8, most=1024)

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.images import rectify, shrink, sum_rectified

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


class Variance(ImageFeature):
    r"""Histograms of the local standard deviation of grey values, for 3 × 3 tiles.

    At each position of a ``window`` × ``window`` window inside the image, with :math:`n` grey
    values :math:`z` (0 … 255, the luma of ITU-R BT.601) in it, the deviation is

    .. math:: s = \tfrac1n \sqrt{n \sum z^2 - \left(\sum z\right)^2}.

    [0, ``largest``) is divided evenly into ``n_bins`` bins; larger deviations count in the last.
    The positions are divided into tiles as ``TileFeature`` divides pixels, and each tile's
    histogram sums to one.  If a side is shorter than the window, so is the window.

    The scheme is from [Yavlinsky-2004], which does not state window, bins and range; we chose them
    (no deviation of grey values exceeds 127.5, and few in photographs exceed 64).
    """

    name = "variance"

    def __init__(self, *, window: int = 5, n_bins: int = 16, largest: float = 64.0) -> None:
        self.window = window
        self.n_bins = n_bins
        self.largest = largest

    def _check(self) -> None:
        check_count(self.window, f"{self._title}: window", least=2, most=255)
        check_count(self.n_bins, f"{self._title}: n_bins", least=2, most=1024)
        if not is_number(self.largest) or not 0 < self.largest <= 127.5:
            raise InputError(
                f"{self._title}: largest must be a number above 0 and at most 127.5, "
                f"got {self.largest!r}."
            )

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.images import count_deviations

        n = N_VARIANCE_TILES
        grey = _to_grey(image)
        sides = [min(self.window, length) for length in grey.shape]
        positions = [length - side + 1 for length, side in zip(grey.shape, sides, strict=True)]
        starts = [np.arange(n + 1) * length // n for length in positions]
        counts = np.empty((n, n, self.n_bins), np.int64)
        count_deviations(grey, *sides, self.largest / self.n_bins, *starts, counts)
        return (counts / counts.sum(axis=2, keepdims=True)).reshape(-1).astype(np.float32)


class TileFeature(ImageFeature):
    """One value for the grey values of each of ``n_tiles`` × ``n_tiles`` tiles, row by row.

    Tile i of n over a side of L pixels has the pixels from ⌊iL/n⌋ to ⌊(i + 1)L/n⌋ - 1, and always
    the first of these: if there are fewer pixels than tiles, neighbouring tiles share them.
    """

    def __init__(self, *, n_tiles: int = 8) -> None:
        self.n_tiles = n_tiles

    def _check(self) -> None:
        check_count(self.n_tiles, f"{self._title}: n_tiles", most=256)

    def _describe(self, image: ImageArray) -> Float32Array:
        grey = _to_grey(image)
        rows, columns = (tile_slices(length, self.n_tiles) for length in grey.shape)
        counts = [np.bincount(grey[r, c].reshape(-1), minlength=256) for r in rows for c in columns]
        return self._of_tiles(np.stack(counts)).astype(np.float32)

    @abstractmethod
    def _of_tiles(self, counts: NDArray[np.intp]) -> NDArray[Any]:
        """The value of each tile from its histogram, ``(n, 256)``."""


class Smoothness(TileFeature):
    r"""Relative smoothness of each of 8 × 8 tiles.

    .. math:: R = 1 - \frac{1}{1 + \sigma^2}

    with :math:`\sigma^2` the variance of the tile's grey values in [0, 1].  It is 0 where all grey
    values are equal, and at most 1/5.  ``TileFeature`` defines the tiles.

    References: [Yavlinsky-2004] for the tiles; [Gonzalez-Woods-2002] for the measure.
    """

    name = "smoothness"

    def _of_tiles(self, counts: NDArray[np.intp]) -> NDArray[Any]:
        z, n = np.arange(256), counts.sum(axis=1)
        total, square = counts @ z, counts @ z**2
        variance = (n * square - total**2) / (255 * n) ** 2  # integers, so nothing cancels
        return 1 - 1 / (1 + variance)


class Uniformity(TileFeature):
    r"""Uniformity, also called energy, of each of 8 × 8 tiles.

    .. math:: U = \sum_z p(z)^2

    with :math:`p` the histogram of the tile's 256 grey values.  It is 1 where all grey values are
    equal.  ``TileFeature`` defines the tiles.

    References: [Yavlinsky-2004] for the tiles; [Gonzalez-Woods-2002] for the measure.
    """

    name = "uniformity"

    def _of_tiles(self, counts: NDArray[np.intp]) -> NDArray[Any]:
        return (counts**2).sum(axis=1) / counts.sum(axis=1) ** 2


def tile_slices(length: int, n_tiles: int) -> list[slice]:
    """The tiles of a side, each of at least one pixel."""
    starts = [i * length // n_tiles for i in range(n_tiles + 1)]
    return [slice(starts[i], max(starts[i + 1], starts[i] + 1)) for i in range(n_tiles)]


def _to_grey(image: ImageArray) -> NDArray[np.uint8]:
    """The luma of each pixel (ITU-R BT.601), ``(h, w)``, rounded as Pillow does."""
    from PIL import Image

    return np.array(Image.fromarray(image).convert("L"))
