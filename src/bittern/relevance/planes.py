"""Word planes of a part of the database, as the counting kernels want them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["counting_kernels", "word_planes"]


def word_planes(words: NDArray[np.uint64], rows: Any) -> NDArray[np.uint64]:
    """``(n_words, n_rows)``: word w of the chosen rows; a view where one word makes a code."""
    chosen = words[rows]
    if chosen.shape[1] == 1:
        return chosen.reshape(1, -1)
    return np.ascontiguousarray(chosen.T)


def counting_kernels(words: NDArray[np.uint64]) -> ModuleType:
    """The kernels for codes of this width; imported here, because compiled code loads slowly."""
    from bittern.kernels import long, short

    return short if words.shape[1] == 1 else long
