"""Twin of ``bittern.kernels.flips``: a sum per draw, sign by sign."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def add_flipped(eights: Array, flips: Array, sums: Array) -> None:
    """Twin of ``flips.add_flipped``; adds in the same order, so that sums are equal to the bit."""
    for row, bytes_ in zip(eights, flips, strict=True):
        signs = np.unpackbits(bytes_[:, None], axis=1, bitorder="little") * 2.0 - 1.0
        sums += np.cumsum(signs * row, axis=1)[:, -1]
