"""Scalar quantisation of principal components, with bits where they help most."""

from __future__ import annotations

from functools import cache

import numpy as np

from bittern.checks import Float32Array, Float64Array
from bittern.quantise.components import ComponentQuantiser
from bittern.quantise.stored import Bytes

MOST_BITS = 8  # of a component
N_ROUNDS = 2000


class WaterFilled(ComponentQuantiser):
    """Codes each principal component by itself, with Lloyd–Max levels of a Gaussian.

    The number of bits of a component is set by reverse water-filling; some components have none.
    ``centres`` and ``correction`` as in :class:`~bittern.quantise.TCQ`.
    """

    name = "water-filled"

    @property
    def _distortions(self) -> Float64Array:
        return np.array([distortion for _, distortion in lloyd_max()])

    def _payload(self, residuals: Float32Array) -> Bytes:
        z = self._projected(residuals) / self.scales_
        bits = np.empty((len(z), int(self.n_bits_.sum())), bool)
        place = 0
        for j, b in enumerate(self.n_bits_):
            levels = lloyd_max()[b][0]
            number = np.searchsorted((levels[1:] + levels[:-1]) / 2, z[:, j])
            for shift in range(b - 1, -1, -1):
                bits[:, place] = (number >> shift) & 1
                place += 1
        return np.packbits(bits, axis=1)

    def _values(self, payload: Bytes) -> Float32Array:
        bits = np.unpackbits(payload, axis=1)
        out = np.empty((len(payload), len(self.n_bits_)), np.float32)
        place = 0
        for j, b in enumerate(self.n_bits_):
            number = np.zeros(len(payload), np.intp)
            for at in range(place, place + b):
                number = 2 * number + bits[:, at]
            out[:, j] = self.scales_[j] * lloyd_max()[b][0][number]
            place += b
        return out


@cache
def lloyd_max() -> list[tuple[Float64Array, float]]:
    """For 0 to 8 bits: the levels with the least distortion of a Gaussian, and that distortion.

    A level is the mean of the Gaussian between the borders of its cell, and a border is half-way
    between two levels [Lloyd-1982]; both rules are applied in turn until the levels stay.
    """
    from scipy.special import ndtr, ndtri

    out = []
    for b in range(MOST_BITS + 1):
        n = 1 << b
        levels = np.sqrt(3) * ndtri((np.arange(n) + 0.5) / n)  # right for many levels
        for _ in range(N_ROUNDS):
            borders = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
            densities = np.exp(-np.square(borders) / 2) / np.sqrt(2 * np.pi)
            masses = np.diff(ndtr(borders))
            levels, before = -np.diff(densities) / masses, levels
            if np.abs(levels - before).max() < 1e-12:
                break
        out.append((levels, float(1 - (masses * np.square(levels)).sum())))
    return out
