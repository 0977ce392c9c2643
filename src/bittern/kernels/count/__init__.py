"""Count the items at each distance from each query, by relevance.

The database comes as *planes*: ``planes[w, i]`` is word w of item i.  A kernel adds to
``counts[q, v, d]``, the items at distance d from query q whose relevance has level v.

``bittern.profile`` guarantees, and nothing here checks: arrays are C-contiguous, ``counts`` is
``(n_queries, n_levels, n_bits + 1)`` uint32, and no count exceeds 32 bits.  Each kernel has a NumPy
twin in ``tests/kernels/twins``; ``docs/maths/counting.md`` explains the method.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

AVX2_WORDS = 4  # longest codes whose distances can be summed in bytes


def count_ranges(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    starts: NDArray[Any],
    stops: NDArray[Any],
    counts: NDArray[np.uint32],
    tiles: NDArray[np.uint8] | None = None,
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d; v is 1 in ``starts[q]:stops[q]``, else 0."""
    kernels = range_kernels_for(len(planes))
    more = () if tiles is None else (tiles,)
    kernels.count_ranges(queries, planes, starts, stops, counts, *more)


def count_categories(
    queries: NDArray[np.uint64],
    planes: NDArray[np.uint64],
    categories: NDArray[np.uint32],
    starts: NDArray[Any],
    query_masks: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    graded: bool,
    counts: NDArray[np.uint32],
    tiles: NDArray[np.uint8] | None = None,
) -> None:
    """Add to ``counts[q, v, d]``: items at distance d that share v tags with q.

    Without ``graded``, v is at most 1.  Items with the same tags are a *category*:
    ``categories[i]`` is the category of item i, ascending; ``starts[c]`` is where category c
    begins; ``masks[w, c]`` is word w of its tags.
    """
    kernels = kernels_for(len(planes), most_words=1)
    more = () if tiles is None else (tiles,)
    kernels.count_categories(
        queries, planes, categories, starts, query_masks, masks, graded, counts, *more
    )


def tiles_for(planes: NDArray[np.uint64], *, by_category: bool = False) -> Any:
    """What the kernels make of the planes, for all calls with them to share; None if nothing."""
    n_words = len(planes)
    kernels = kernels_for(n_words, most_words=1) if by_category else range_kernels_for(n_words)
    tiles_of = getattr(kernels, "tiles_of", None)
    return None if tiles_of is None else tiles_of(planes)


def range_kernels_for(n_words: int) -> ModuleType:
    """The kernels that count by ranges: for codes of one word, those for AVX-512 if there is it."""
    from bittern.kernels.registers import counts_bits_of_registers

    if n_words == 1 and counts_bits_of_registers():
        from bittern.kernels.count import avx512

        return avx512
    return kernels_for(n_words, most_words=AVX2_WORDS)


def kernels_for(n_words: int, most_words: int) -> ModuleType:
    """The AVX2 kernels, if they support this code length and this processor has AVX2.

    They are imported here, because compiled code loads slowly.
    """
    from bittern.kernels.count import avx2, portable
    from bittern.kernels.registers import has_avx2

    return avx2 if n_words <= most_words and has_avx2() else portable
