"""Smoothness and uniformity of the tiles of a image."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_count
from bittern.features.base import ImageFeature
from bittern.features.grey import to_grey
from bittern.features.images import ImageArray

__all__ = ["Smoothness", "Uniformity", "tile_slices"]


class TileFeature(ImageFeature):
    """One value for each of ``n_tiles`` × ``n_tiles`` tiles, row after row, from its grey values.

    Tile i of n over a side of L pixels has those from ⌊iL/n⌋ to ⌊(i + 1)L/n⌋ - 1, and always the
    first of these: where there are fewer pixels than tiles, neighbouring tiles share them.
    """

    def __init__(self, *, n_tiles: int = 8) -> None:
        self.n_tiles = n_tiles

    def _check(self) -> None:
        check_count(self.n_tiles, f"{self._title}: n_tiles", most=256)

    def _describe(self, image: ImageArray) -> Float32Array:
        grey = to_grey(image)
        rows, columns = (tile_slices(length, self.n_tiles) for length in grey.shape)
        counts = [np.bincount(grey[r, c].reshape(-1), minlength=256) for r in rows for c in columns]
        return self._of_tiles(np.stack(counts)).astype(np.float32)

    @abstractmethod
    def _of_tiles(self, counts: NDArray[np.intp]) -> NDArray[Any]:
        """The value of each tile from its histogram, ``(n, 256)``."""


class Smoothness(TileFeature):
    r"""Relative smoothness of each of 8 × 8 tiles.

    .. math:: R = 1 - \frac{1}{1 + \sigma^2}

    with :math:`\sigma^2` the variance of the tile's grey values in [0, 1]: 0 where all are the
    same, at most 1/5.  Tiles as in ``TileFeature``.

    References: [Yavlinsky-2004] for the tiles; [Gonzalez-Woods-2002] for the measure.
    """

    name = "smoothness"

    def _of_tiles(self, counts: NDArray[np.intp]) -> NDArray[Any]:
        z, n = np.arange(256), counts.sum(axis=1)
        total, square = counts @ z, counts @ z**2
        variance = (n * square - total**2) / (255 * n) ** 2  # whole numbers: nothing cancels
        return 1 - 1 / (1 + variance)


class Uniformity(TileFeature):
    r"""Uniformity, also called energy, of each of 8 × 8 tiles.

    .. math:: U = \sum_z p(z)^2

    with :math:`p` the histogram of the tile's 256 grey values: 1 where all are the same.  Tiles
    as in ``TileFeature``.

    References: [Yavlinsky-2004] for the tiles; [Gonzalez-Woods-2002] for the measure.
    """

    name = "uniformity"

    def _of_tiles(self, counts: NDArray[np.intp]) -> NDArray[Any]:
        return (counts**2).sum(axis=1) / counts.sum(axis=1) ** 2


def tile_slices(length: int, n_tiles: int) -> list[slice]:
    """The tiles of a side, each of at least one pixel."""
    starts = [i * length // n_tiles for i in range(n_tiles + 1)]
    return [slice(starts[i], max(starts[i + 1], starts[i] + 1)) for i in range(n_tiles)]
