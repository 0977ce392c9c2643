"""Gist: strength of edges in an image by scale, direction and position."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_count
from bittern.features.base import ImageArray, ImageFeature

LARGEST = 128  # pixels of a side, by default
MARGIN = 32  # pixels mirrored beyond each edge before filtering, which wraps around
CUTOFF, EDGE = 4, 5  # of the prefilter: cycles per image, and pixels mirrored beyond each edge
TOP_FREQUENCY, RATIO = 0.3, 1.85  # cycles per pixel at the finest scale; ratio between scales
SHARPNESS, FLOOR = 3.5, 0.2  # of the filters along the radius; least local deviation
NEGLIGIBLE = 1e-7  # gains below the rounding of float32
FLAT = 1e-3  # grey levels; smaller variation is rounding


class Gist(ImageFeature):
    r"""Mean strength of edges by scale, direction and position: 4 × 8 × 4 × 4 = 512 numbers.

    The image is made grey (the mean of red, green and blue), cropped to its central square, resized
    to ``size`` × ``size`` pixels, and stretched to 0 … 255.  Then its contrast is equalised,

    .. math:: u = \log(1 + x), \qquad v = u - g * u, \qquad
        p = \frac{v}{0.2 + \sqrt{g * v^2}},

    with g the low-pass filter of gain :math:`\exp(-|k|^2 \ln 2 / 4^2)` at k cycles per image
    (mirrored by 5 pixels at each edge).  Filter (s, o) has, at a frequency of f cycles per pixel
    in direction φ, the gain

    .. math:: G_{so}(f, \varphi) = \exp\left(-3.5 \left(\frac{f}{f_s} - 1\right)^2
        - 2\pi \left(\frac{O}{8}\right)^2 (\varphi + \pi o / O)^2\right),
        \qquad f_s = \frac{0.3}{1.85^s},

    for scales s = 0 … S - 1 and orientations o = 0 … O - 1, the angle taken in [-π, π].  The values
    are the means of :math:`|G_{so} * p|` (p mirrored by 32 pixels at each edge) over the blocks of
    an ``n_blocks`` × ``n_blocks`` grid, ordered by scale, orientation, column of blocks and row of
    blocks, the last fastest.  An image of a single grey value gives zeros.

    ``size=None`` keeps the shorter side of each image, up to 128 pixels.  The filters are measured
    in pixels, so set a size for a collection of small images of many sizes.  Sides are at least
    ``n_blocks``.

    References: [Oliva-Torralba-2001]; the constants come from the authors' published program, and
    for CIFAR-10 the rows equal the published ones.
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
        equalised = _prefiltered(_stretched(_grey_square(image, side)))
        means = _block_means(side, self.n_blocks)
        # Transposed, because the columns of blocks come before the rows.
        blocks = [
            np.matmul(means, np.matmul(strength, means.T)).transpose(0, 2, 1)
            for strength in _strengths(equalised, self.n_scales, self.n_orientations)
        ]
        return np.concatenate(blocks).ravel()


def _grey_square(image: ImageArray, side: int) -> Float32Array:
    """The central square in grey, ``(side, side)``; shrinking averages over pixels."""
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
    """Stretch to 0 … 255; all 0 if there is a single grey value."""
    lowest, highest = grey.min(), grey.max()
    if highest - lowest < FLAT:
        return np.zeros_like(grey)
    return (grey - lowest) * np.float32(255 / (highest - lowest))


def _prefiltered(grey: Float32Array) -> Float32Array:
    """Remove slow changes of brightness and equalise the local contrast."""
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

    A filter's gain is negligible outside a band of low frequencies.  So only the band is
    transformed back: first along the rows, then along those columns that lie within the image.
    Shifting the band to begin at frequency 0 changes the phase of the result, not its modulus.
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
    """The filters of one scale."""

    band: NDArray[np.intp]  # (n_band,) consecutive frequencies with a gain above NEGLIGIBLE
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
    """The matrix ``(n_blocks, side)`` that takes a vector to its means over blocks."""
    edges = np.arange(n_blocks + 1) * side // n_blocks
    at, starts, ends = np.arange(side), edges[:-1, None], edges[1:, None]
    inside = (at >= starts) & (at < ends)
    return _frozen(inside / (ends - starts))


def _frozen(values: NDArray[np.floating]) -> Float32Array:
    """The array as read-only float32, for the caches."""
    frozen = values.astype(np.float32)
    frozen.flags.writeable = False
    return frozen
