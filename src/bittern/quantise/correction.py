r"""One or two bytes more for each item: the length of its residual, and how well its code fits.

Let r be the residual of an item (its vector minus its centre), r̂ what its code says, n = |r| and
f = ⟨r, r̂⟩ / (n |r̂|).  The residual is taken as s r̂ with

.. math:: s = \frac{n}{|\hat r|} f^{\gamma},

the least-squares scale for γ = 1, and the one of RaBitQ, unbiased if the error has a random
direction, for γ = −1.  The squared length of the residual is taken as

.. math:: n^2 f^2 + \beta \, n^2 (1 - f^2),

its true length for β = 1, and for β = 0 only what the code can say of it.  γ and β are those with
the best recall on training rows, where some rows are queries and others the database.

The bytes say n / |r̂|, which varies less than n, and f: a byte each, or half a byte each, which is
better if there are few bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array
from bittern.quantise.stored import Bytes

N_BYTES = 2  # or 1, of four bits each
LEVELS = {1: 15, 2: 255}  # the largest value of each number, by bytes
RARE = 0.005  # of the rows beyond either end of the range of four bits
POWERS = (-1.0, -0.5, 0.0, 0.5, 1.0)  # of γ
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of β
RANKS = 10  # recall of the ten nearest is what counts
FIRST = (10, 40)  # among so many


class Measured(NamedTuple):
    """Of each item: its residual compared with what its code says."""

    ratios: Float32Array  # of the lengths; the length itself if the code says nothing
    cosines: Float32Array


def measure(residuals: Float32Array, projected: Float32Array, values: Float32Array) -> Measured:
    """Ratios and cosines of residuals, given their projections and the values of their codes."""
    lengths = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
    products = np.einsum("ij,ij->i", projected, values)
    own = np.einsum("ij,ij->i", values, values)
    both = lengths * np.sqrt(own)
    cosines = np.divide(products, both, out=np.ones_like(both), where=both > 0)
    return Measured(lengths / np.sqrt(_not_zero(own)), np.clip(cosines, 0, 1))


def ranges(found: Measured, n_bytes: int = N_BYTES) -> Float64Array:
    """The least and the largest log-ratio and cosine that the bytes can say, ``(2, 2)``.

    Two bytes have room for more than was seen; one byte leaves out the rarest.
    """
    logs = np.log(found.ratios[found.ratios > 0]) if found.ratios.any() else np.zeros(1)
    rare = 0.0 if n_bytes == N_BYTES else RARE
    ends = [np.quantile(values, [rare, 1 - rare]) for values in (logs, found.cosines)]
    bounds = np.array(ends, np.float64)
    margin = (0.0 if rare else 0.1) * (bounds[:, 1] - bounds[:, 0]) + 1e-3
    bounds += np.stack([-margin, margin], axis=1)
    bounds[1] = np.clip(bounds[1], 0.01, 1.0)
    return bounds


def to_bytes(found: Measured, bounds: Float64Array, n_bytes: int = N_BYTES) -> Bytes:
    """The bytes of each item; the first number is 0 for a residual of length 0."""
    most = LEVELS[n_bytes]
    with np.errstate(divide="ignore"):
        logs = np.log(found.ratios)
    low, high = bounds[0]
    steps = np.rint((logs - low) / (high - low) * (most - 1))
    ratios = np.where(found.ratios > 0, 1 + np.clip(steps, 0, most - 1), 0)
    low, high = bounds[1]
    cosines = np.rint(np.clip((found.cosines - low) / (high - low), 0, 1) * most)
    numbers = np.stack([ratios, cosines], axis=1).astype(np.uint8)
    if n_bytes == 1:
        numbers = (numbers[:, :1] << np.uint8(4)) | numbers[:, 1:]
    return np.asarray(numbers, np.uint8)


def from_bytes(rows: Bytes, bounds: Float64Array) -> Measured:
    """Ratios and cosines that one or two bytes say."""
    n_bytes = rows.shape[1]
    first, second = (
        (rows[:, 0], rows[:, 1]) if n_bytes == N_BYTES else (rows[:, 0] >> 4, rows[:, 0] & 15)
    )
    (low, high), (least, most) = bounds
    ratios = np.exp(low + (first - 1.0) / (LEVELS[n_bytes] - 1) * (high - low))
    ratios[first == 0] = 0
    cosines = least + second / LEVELS[n_bytes] * (most - least)
    return Measured(ratios.astype(np.float32), cosines.astype(np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Corrections:
    """The bytes of correction of items whose bits are kept elsewhere, and how to read them."""

    bytes: Bytes  # (n, 1 or 2)
    bounds: Float64Array
    power: float
    share: float

    def __len__(self) -> int:
        return len(self.bytes)

    def of(self, rows: NDArray[np.intp], n_bits: int) -> tuple[Float32Array, Float32Array]:
        """The scale of each code of ±1, and the squared length of each residual."""
        found = from_bytes(self.bytes[rows], self.bounds)
        own = np.full(len(rows), n_bits, np.float32)
        return scales(found, self.power), squared_residuals(found, own, self.share)


def scales(found: Measured, power: float) -> Float32Array:
    """The scale s of each code."""
    return np.asarray(found.ratios * found.cosines**power, np.float32)


def squared_residuals(found: Measured, own: Float32Array, share: float) -> Float32Array:
    """The squared length of each residual, as estimated; ``own`` are those of the codes."""
    squares = np.square(found.cosines)
    lengths = np.square(found.ratios) * _not_zero(own)
    return np.asarray(lengths * (squares + share * (1 - squares)), np.float32)


def _not_zero(own: Float32Array) -> Float32Array:
    return np.where(own > 0, own, np.float32(1))


def recall(distances: Float32Array, true: NDArray[np.intp]) -> float:
    """The share of the true nearest among the first 10 and the first 40 by estimated distance.

    The mean of both: forty candidates are usual if full vectors sort them again.
    """
    n = distances.shape[1]
    ends = [min(first, n) for first in FIRST]
    order = np.argpartition(distances, [end - 1 for end in ends], axis=1)[:, : ends[-1]]
    hits = (order[:, :, None] == true[:, None, :]).any(axis=2)
    return float(np.mean([hits[:, :end].sum() / true.size for end in ends]))
