"""Histograms of quantised hue, saturation and value."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.features.base import ImageFeature
from bittern.features.images import ImageArray

__all__ = ["HSVFocus", "HSVGlobal"]


class HSVGlobal(ImageFeature):
    r"""Histogram of the colours of all pixels; it sums to one.

    With :math:`M` the greatest and :math:`m` the least of red, green and blue, the value is
    :math:`M`, the saturation :math:`(M - m) / M` and the hue the angle around the grey axis.
    Each is divided evenly, and bin :math:`(v\,n_s + s)\,n_h + h` counts the pixels in interval
    :math:`h` of the hue, :math:`s` of the saturation and :math:`v` of the value.  Black has no
    saturation and grey no hue; both count as zero.

    [Yavlinsky-2004] takes the space from [Travis-1991] and does not print the number of bins.
    Ours are those of MPEG-7's scalable colour descriptor, 16 × 4 × 4 evenly spaced
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
        from bittern.kernels.colours import hsv_cells

        cells = np.empty(image.shape[:2], np.intp)
        hsv_cells(image, self.n_hues, self.n_saturations, self.n_values, cells)
        n_bins = self.n_hues * self.n_saturations * self.n_values
        counts = np.bincount(cells.reshape(-1), minlength=n_bins)
        return (counts / cells.size).astype(np.float32)


class HSVFocus(HSVGlobal):
    """The histogram of ``HSVGlobal`` over the middle quarter of the image's area.

    That is the middle half in each direction: a quarter of the side is left out at either end,
    rounded down.

    Reference: [Yavlinsky-2004].
    """

    name = "hsv-focus"

    def _describe(self, image: ImageArray) -> Float32Array:
        height, width = image.shape[:2]
        top, left = height // 4, width // 4
        middle = image[top : height - top, left : width - left]
        return super()._describe(np.ascontiguousarray(middle))
