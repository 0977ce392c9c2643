"""How much grey values vary near each pixel, by the parts of a image."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.errors import InputError
from bittern.features.base import ImageFeature
from bittern.features.grey import to_grey
from bittern.features.images import ImageArray

__all__ = ["Variance"]

N_TILES = 3  # in each direction


class Variance(ImageFeature):
    r"""Histograms of the grey values' standard deviation in a sliding window, for 3 × 3 tiles.

    At each position of a ``window`` × ``window`` window inside the image, with :math:`n` grey
    values :math:`z` (octets, the luma of ITU-R BT.601) in it, the deviation is

    .. math:: s = \tfrac1n \sqrt{n \sum z^2 - \left(\sum z\right)^2}.

    [0, ``largest``) is divided evenly into ``n_bins`` bins; the last also has what lies beyond.
    The positions are divided into tiles as ``bittern.features.tiles`` divides pixels, and each
    tile's histogram sums to one.  A side shorter than the window cuts it to its length.

    The scheme is [Yavlinsky-2004]'s; window, bins and range, which are not printed there, are
    ours (no deviation of octets exceeds 127.5, and few in photographs exceed 64).
    """

    name = "variance"

    def __init__(self, *, window: int = 5, n_bins: int = 16, largest: float = 64.0) -> None:
        self.window = window
        self.n_bins = n_bins
        self.largest = largest

    def _check(self) -> None:
        check_count(self.window, f"{self._title}: window", least=2, most=255)
        check_count(self.n_bins, f"{self._title}: n_bins", least=2, most=1024)
        if not _is_number(self.largest) or not 0 < self.largest <= 127.5:
            raise InputError(
                f"{self._title}: largest must be a number above 0 and at most 127.5, "
                f"got {self.largest!r}."
            )

    def _describe(self, image: ImageArray) -> Float32Array:
        from bittern.kernels.areas import count_deviations

        grey = to_grey(image)
        sides = [min(self.window, length) for length in grey.shape]
        positions = [length - side + 1 for length, side in zip(grey.shape, sides, strict=True)]
        starts = [np.arange(N_TILES + 1) * length // N_TILES for length in positions]
        counts = np.empty((N_TILES, N_TILES, self.n_bins), np.int64)
        count_deviations(grey, *sides, self.largest / self.n_bins, *starts, counts)
        return (counts / counts.sum(axis=2, keepdims=True)).reshape(-1).astype(np.float32)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
