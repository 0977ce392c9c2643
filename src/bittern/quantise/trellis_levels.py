"""The levels of the trellis: for each number of bits, the value of a component at each state.

They are learned once, for a Gaussian of variance 1, and come with the package as
``trellis_levels.npy``; ``benchmarks/learn_trellis.py`` learns them again.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array
from bittern.io.npz import stored_array
from bittern.kernels.trellis import STATES, decode_trellis, encode_trellis

MOST_BITS = 5  # of a component
LENGTH = 512  # components of a training row


@cache
def trellis_levels() -> tuple[Float32Array, Float64Array]:
    """Levels ``(6, 256)``, and the distortion of a Gaussian at 0 to 5 bits a component."""
    with as_file(files("bittern.quantise") / "trellis_levels.npy") as path:
        stored = stored_array(path, "").load()
    return stored[:, :STATES].astype(np.float32), stored[:, STATES].astype(np.float64)


def learn_levels(
    n_bits: int, n_rounds: int, n_rows: int, seed: int = 0
) -> tuple[Float32Array, float]:
    """Levels of all states at ``n_bits`` bits a component, and their distortion.

    Lloyd's algorithm: each round codes new rows, and moves each level to the mean of the components
    that were coded at its state.  It begins with the quantiles of the Gaussian in random order.
    """
    from scipy.special import ndtri

    draw = np.random.default_rng([seed, n_bits])
    levels = np.zeros((MOST_BITS + 1, STATES), np.float32)
    levels[n_bits] = ndtri((draw.permutation(STATES) + 0.5) / STATES)
    for _ in range(n_rounds):
        z = draw.standard_normal((n_rows, LENGTH), np.float32)
        states = _states(z, n_bits, levels)
        counts = np.bincount(states, minlength=STATES)
        sums = np.bincount(states, z.ravel(), STATES)
        used = counts > 0
        levels[n_bits, used] = (sums[used] / counts[used]).astype(np.float32)
    z = draw.standard_normal((n_rows, LENGTH), np.float32)
    gaps = z.ravel() - levels[n_bits, _states(z, n_bits, levels)]
    return levels[n_bits], float(np.square(gaps).mean(dtype=np.float64))


def _states(z: Float32Array, n_bits: int, levels: Float32Array) -> NDArray[np.intp]:
    """The state at each component of the rows, flat."""
    every = np.full(z.shape[1], n_bits)
    ones = np.ones(z.shape[1], np.float32)
    codes = np.zeros((len(z), z.shape[1] * n_bits // 8), np.uint8)
    encode_trellis(z, every, ones, levels, codes)
    states = np.empty_like(z)
    numbers = np.tile(np.arange(STATES, dtype=np.float32), (len(levels), 1))
    decode_trellis(codes, every, ones, numbers, states)
    return states.astype(np.intp).ravel()
