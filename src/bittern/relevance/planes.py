"""Word planes of a part of the database, as the counting kernels want them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["category_kernels", "range_kernels", "word_planes"]


def word_planes(words: NDArray[np.uint64], rows: Any) -> NDArray[np.uint64]:
    """``(n_words, n_rows)``: word w of the chosen rows; a view where one word makes a code."""
    if words.shape[1] == 1:
        return words.reshape(-1)[rows][None]
    return np.ascontiguousarray(words[rows].T)


def range_kernels(words: NDArray[np.uint64]) -> ModuleType:
    """The kernels that count by ranges, for codes of this width on this processor.

    Imported here, because compiled code loads slowly.
    """
    from bittern.kernels import long, short, vectors

    if vectors.available() and words.shape[1] == 1:
        from bittern.kernels import triples

        return triples
    if vectors.available() and words.shape[1] <= 4:
        from bittern.kernels import twos

        return twos
    return short if words.shape[1] == 1 else long


def category_kernels(words: NDArray[np.uint64]) -> ModuleType:
    """The kernels that count by category, for codes of this width on this processor."""
    from bittern.kernels import long, short, vectors

    if vectors.available() and words.shape[1] == 1:
        from bittern.kernels import kinds

        return kinds
    return short if words.shape[1] == 1 else long
