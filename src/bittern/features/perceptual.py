"""Perceptual hashes: numbers of an image whose signs are bits that survive small changes.

Their bits equal those of the package ``imagehash``, given the same upright RGB image.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array
from bittern.codes import Codes
from bittern.features.base import ImageArray, ImageFeature

SIDE = 8  # a code has 8 × 8 bits
HALF = math.sqrt(0.5)  # Haar's filter, as PyWavelets rounds it


class PerceptualHash(ImageFeature):
    """A feature that is a hash: bit k of an image is 1 if its number k is above 0.

    ``radius`` is the distance up to which two images are taken for near-duplicates by default.
    """

    n_bits: ClassVar[int] = SIDE * SIDE
    radius: ClassVar[int] = 6

    def encode(self, X: Any) -> Codes:
        """The codes of images."""
        return Codes.from_bits(self.transform(X) > 0)


class PHash(PerceptualHash):
    """pHash: which of the 8 × 8 lowest frequencies are above their median.

    The frequencies are those of the discrete cosine transform of a grey copy of 32 × 32 pixels.

    Reference: [Krawetz-2011].
    """

    name = "phash"

    def _describe(self, image: ImageArray) -> Float32Array:
        from scipy.fft import dct

        pixels = _shrunk(image, 32, 32).astype(np.float64)
        low = dct(dct(pixels, axis=0), axis=1)[:SIDE, :SIDE]
        return _above_median(low)


class DHash(PerceptualHash):
    """dHash: which pixels are brighter than their left neighbour, in a grey copy of 9 × 8 pixels.

    Reference: [Krawetz-2013].
    """

    name = "dhash"

    def _describe(self, image: ImageArray) -> Float32Array:
        return np.diff(_shrunk(image, SIDE + 1, SIDE).astype(np.float32), axis=1).reshape(-1)


class AHash(PerceptualHash):
    """aHash: which pixels of a grey copy of 8 × 8 pixels are brighter than their mean.

    Reference: [Krawetz-2011].
    """

    name = "ahash"

    def _describe(self, image: ImageArray) -> Float32Array:
        pixels = _shrunk(image, SIDE, SIDE)
        return (pixels - pixels.mean()).reshape(-1).astype(np.float32)


class WHash(PerceptualHash):
    """wHash: which of 8 × 8 averages by Haar wavelets are above their median.

    The averages are those of a grey copy whose side is the largest power of two that is not above
    the image's shorter side, and at least 8; its mean is subtracted first.  Both go through the
    wavelet transform step by step, because where averages are equal, rounding decides the bits.

    Reference: [Petrov-2016].
    """

    name = "whash"

    def _describe(self, image: ImageArray) -> Float32Array:
        side = max(1 << (min(image.shape[:2]).bit_length() - 1), SIDE)
        pixels = _without_mean(_shrunk(image, side, side) / 255.0)
        while len(pixels) > SIDE:
            pixels = _split(pixels)[0][0]
        return _above_median(pixels)


def _shrunk(image: ImageArray, width: int, height: int) -> NDArray[np.uint8]:
    """A grey copy of that size, by Lanczos's filter."""
    from PIL import Image

    grey = Image.fromarray(image).convert("L")
    return np.asarray(grey.resize((width, height), Image.Resampling.LANCZOS))


def _above_median(numbers: Float64Array) -> Float32Array:
    """How far each number is above the median; the sign survives the rounding."""
    return (numbers - np.median(numbers)).reshape(-1).astype(np.float32)


def _without_mean(pixels: Float64Array) -> Float64Array:
    """A square image minus its mean, taken away as the last average of the wavelet transform."""
    steps = []
    while len(pixels) > 1:
        (pixels, right), lower = _split(pixels)
        steps.append((right, lower))
    pixels = np.zeros((1, 1))
    for right, lower in reversed(steps):
        pixels = _joined(((pixels, right), lower))
    return pixels


Quarters = tuple[tuple[Float64Array, Float64Array], tuple[Float64Array, Float64Array]]


def _split(image: Float64Array) -> Quarters:
    """Averages and differences along y, and of each of them along x."""
    scaled = HALF * image
    upper, lower = scaled[::2], scaled[1::2]
    return _split_rows(upper + lower), _split_rows(upper - lower)


def _split_rows(image: Float64Array) -> tuple[Float64Array, Float64Array]:
    scaled = HALF * image
    left, right = scaled[:, ::2], scaled[:, 1::2]
    return left + right, left - right


def _joined(quarters: Quarters) -> Float64Array:
    """The inverse of :func:`_split`."""
    upper, lower = (_joined_rows(*side) for side in quarters)
    out = np.empty((2 * len(upper), upper.shape[1]))
    out[::2], out[1::2] = HALF * upper + HALF * lower, HALF * upper - HALF * lower
    return out


def _joined_rows(averages: Float64Array, differences: Float64Array) -> Float64Array:
    out = np.empty((len(averages), 2 * averages.shape[1]))
    out[:, ::2] = HALF * averages + HALF * differences
    out[:, 1::2] = HALF * averages - HALF * differences
    return out
