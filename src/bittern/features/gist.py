"""The gist of a image: how much structure of each scale and direction there is, and where."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_count
from bittern.features.base import ImageFeature
from bittern.features.images import ImageArray

__all__ = ["Gist"]

LARGEST = 128  # pixels of a side, if the caller names no size
MARGIN = 32  # pixels by which a image is mirrored beyond its edges, against wrapping around
CUTOFF, EDGE = 4, 5  # of the prefilter: cycles a image, and pixels mirrored beyond its edges
TOP_FREQUENCY, RATIO = 0.3, 1.85  # cycles a pixel of the finest scale; from scale to scale
SHARPNESS, FLOOR = 3.5, 0.2  # of the filters along the radius; of the local deviation
NEGLIGIBLE = 1e-7  # gains this small are below the rounding of float32
FLAT = 1e-3  # grey levels: what varies less is rounding


class Gist(ImageFeature):
    r"""Mean strength of edges by scale, direction and place: 4 × 8 × 4 × 4 = 512 numbers.

    The image is made grey (the mean of red, green and blue), cropped to its central square,
    brought to ``size`` pixels a side, and stretched to 0 … 255.  Then its contrast is evened out,

    .. math:: u = \log(1 + x), \qquad v = u - g * u, \qquad
        p = \frac{v}{0.2 + \sqrt{g * v^2}},

    with g the low-pass filter of gain :math:`\exp(-|k|^2 \ln 2 / 4^2)` at k cycles a image
    (mirrored by 5 pixels at each edge).  Filter (s, o) has the gain, at a frequency of f cycles a
    pixel in direction φ,

    .. math:: G_{so}(f, \varphi) = \exp\left(-3.5 \left(\frac{f}{f_s} - 1\right)^2
        - 2\pi \left(\frac{O}{8}\right)^2 (\varphi + \pi o / O)^2\right),
        \qquad f_s = \frac{0.3}{1.85^s},

    for scales s = 0 … S - 1 and orientations o = 0 … O - 1, the angle taken in [-π, π].  A value of
    the row is the mean of :math:`|G_{so} * p|` (p mirrored by 32 pixels at each edge) over a block
    of ``n_blocks`` × ``n_blocks``; rows run by scale, orientation, column of blocks and row of
    blocks, the last fastest.  A image that is all of one grey has only zeros.

    ``size=None`` keeps the shorter side of each image, but for at most 128 pixels: filters are
    measured in pixels, so for a collection of small images of many sizes name one.  Sides are at
    least ``n_blocks``.

    References: [Oliva-Torralba-2001]; the constants are those of the authors' published program,
    and images of CIFAR-10 have the rows that are in use for it.
    """

    name = "gist"

    def __init__(
        self,
        size: int | None = None,
        *,
        n_scales: int = 4,
        n_orientations: int = 8,
        n_blocks: int = 4,
    ):
        self.size = size
        self.n_scales = n_scales
        self.n_orientations = n_orientations
        self.n_blocks = n_blocks

    def _check(self) -> None:
        for name, most in (("n_scales", 16), ("n_orientations", 64), ("n_blocks", 64)):
            check_count(getattr(self, name), f"{self._title}: {name}", 1, most)
        if self.size is not None:
            check_count(self.size, f"{self._title}: size", self.n_blocks, 1024)

    def _describe(self, image: ImageArray) -> Float32Array:
        side = self.size or max(self.n_blocks, min(*image.shape[:2], LARGEST))
        even = _prefiltered(_stretched(_grey_square(image, side)))
        means = _block_means(side, self.n_blocks)
        # The means are transposed, as the columns of blocks come before their rows.
        found = [
            np.matmul(means, np.matmul(strength, means.T)).transpose(0, 2, 1)
            for strength in _strengths(even, self.n_scales, self.n_orientations)
        ]
        return np.concatenate(found).ravel()


def _grey_square(image: ImageArray, side: int) -> Float32Array:
    """The central square in grey, ``(side, side)``; averaged over pixels if it shrinks."""
    from PIL import Image

    shorter = min(image.shape[:2])
    top, left = ((length - shorter) // 2 for length in image.shape[:2])
    square = image[top : top + shorter, left : left + shorter]
    total = square[:, :, 0].astype(np.uint16) + square[:, :, 1] + square[:, :, 2]
    grey: Float32Array = total.astype(np.float32) / np.float32(3)
    if shorter == side:
        return grey
    return np.asarray(Image.fromarray(grey).resize((side, side), Image.Resampling.BILINEAR))


def _stretched(grey: Float32Array) -> Float32Array:
    """From 0 to 255; all 0 if there is but one grey."""
    lowest, highest = grey.min(), grey.max()
    if highest - lowest < FLAT:
        return np.zeros_like(grey)
    return (grey - lowest) * np.float32(255 / (highest - lowest))


def _prefiltered(grey: Float32Array) -> Float32Array:
    """Without slow changes of brightness, and with about the same contrast everywhere."""
    u = np.pad(np.log1p(grey), EDGE, mode="symmetric")
    gain = _low_pass(len(u))
    v = u - _smoothed(u, gain)
    deviation = np.sqrt(np.abs(_smoothed(v * v, gain)))
    return np.divide(v, FLOOR + deviation)[EDGE:-EDGE, EDGE:-EDGE]


def _smoothed(values: Float32Array, gain: Float32Array) -> Float32Array:
    from scipy.fft import irfft2, rfft2

    return irfft2(rfft2(values) * gain, s=values.shape)


@lru_cache(maxsize=8)
def _low_pass(n: int) -> Float32Array:
    """Gain of the Gaussian at the frequencies of ``rfft2``."""
    rows, columns = np.fft.fftfreq(n, 1 / n)[:, None], np.fft.rfftfreq(n, 1 / n)
    return _frozen(np.exp(-(rows**2 + columns**2) * np.log(2) / CUTOFF**2))


def _strengths(values: Float32Array, n_scales: int, n_orientations: int) -> Iterator[Float32Array]:
    """For each scale the moduli of the filtered image, ``(n_orientations, side, side)``.

    A filter's gain is nothing outside a band of low frequencies.  So only these are transformed
    back, first along rows and then, of the columns within the image, along columns.  The band is
    moved to begin at frequency 0, which turns the phase of the result but not its modulus.
    """
    from scipy.fft import fft2, ifft

    n, within = len(values) + 2 * MARGIN, slice(MARGIN, MARGIN + len(values))
    spectrum = fft2(np.pad(values, MARGIN, mode="symmetric"))
    for band, gains in _filters(n, n_scales, n_orientations):
        part = spectrum[np.ix_(band, band)] * gains
        part = ifft(part, n=n, axis=2, overwrite_x=True)[:, :, within]
        part = ifft(part, n=n, axis=1)[:, within]
        yield np.abs(part)


class _Scale(NamedTuple):
    """The filters of a scale."""

    band: NDArray[np.intp]  # (n_band,) neighbouring frequencies where a gain is above nothing
    gains: Float32Array  # (n_orientations, n_band, n_band)


@lru_cache(maxsize=8)
def _filters(n: int, n_scales: int, n_orientations: int) -> tuple[_Scale, ...]:
    """The filters for padded images of n × n, scale by scale."""
    centres = TOP_FREQUENCY / RATIO ** np.arange(n_scales)
    return tuple(_scale(n, centre, n_orientations) for centre in centres)


def _scale(n: int, centre: float, n_orientations: int) -> _Scale:
    reach = n * centre * (1 + np.sqrt(-np.log(NEGLIGIBLE) / SHARPNESS))
    whole = np.arange(n) - n // 2
    k = whole[np.abs(whole) <= reach]
    radius = np.hypot(k[:, None], k) / n
    turn = np.pi / n_orientations * np.arange(n_orientations)[:, None, None]
    angle = np.arctan2(k[:, None], k) + turn
    angle = np.where(angle > np.pi, angle - 2 * np.pi, angle)
    along = SHARPNESS * (radius / centre - 1) ** 2
    across = 2 * np.pi * (n_orientations / 8 * angle) ** 2
    return _Scale(band=k % n, gains=_frozen(np.exp(-along - across)))


@lru_cache(maxsize=8)
def _block_means(side: int, n_blocks: int) -> Float32Array:
    """``(n_blocks, side)``: times a vector, its means over blocks of about the same length."""
    edges = np.arange(n_blocks + 1) * side // n_blocks
    at, starts, ends = np.arange(side), edges[:-1, None], edges[1:, None]
    inside = (at >= starts) & (at < ends)
    return _frozen(inside / (ends - starts))


def _frozen(values: NDArray[np.floating]) -> Float32Array:
    """As float32 that nobody can change, for what is kept."""
    frozen = values.astype(np.float32)
    frozen.flags.writeable = False
    return frozen
