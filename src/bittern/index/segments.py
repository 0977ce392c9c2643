"""Segments of codes, and the tables from their keys to the codes that have them."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.index.base import Words
from bittern.kernels.shells import Buckets, fill, lay_codes
from bittern.parallel import run_blocks

__all__ = ["MOST_SEGMENTS", "arrays_of", "build", "restored"]

MOST_SEGMENTS, MOST_WIDTH = 16, 22
BUCKET_BITS = 4  # a bucket has some 2^4 codes: reading on is cheaper than looking up
LAID_WORDS = 2  # codes up to this long are kept in the order of every segment
MOST_RADIUS, MOST_KEYS = 8, 1 << 17  # that are looked up in one segment
MOST_CODES = (1 << 32) - 1


def build(
    words: Words, n_bits: int, n_segments: int | None = None, n_threads: int | None = None
) -> Buckets:
    """The tables of all rows."""
    n, n_words = words.shape
    if n > MOST_CODES:
        raise InputError(f"MultiIndex: holds at most {MOST_CODES} codes, got {n}; use FlatIndex.")
    lows, widths = segments_for(n_bits, n, n_segments)
    bases = _bases(widths)
    offsets = np.zeros(bases[-1], np.uint32)
    rows = np.empty((len(lows), n), np.uint32)
    is_laid = n_words <= LAID_WORDS
    codes = np.empty((len(lows), n, n_words), np.uint64) if is_laid else words[None]

    def work(j: int) -> None:
        fill(words, lows[j], widths[j], offsets[bases[j] : bases[j + 1]], rows[j])
        if is_laid:
            lay_codes(words, rows[j], codes[j])

    run_blocks(work, range(len(lows)), n_threads)
    return Buckets(lows, widths, bases, offsets, rows, codes, *_masks(widths))


def segments_for(
    n_bits: int, n: int, n_segments: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First bits and widths of segments for n codes.

    Keys of about ``log2(n) - BUCKET_BITS`` bits leave few codes in a bucket, and few buckets empty.
    Segments need not cover all bits: what differs little differs little in some of them.
    """
    suited = min(max(math.log2(n) - BUCKET_BITS, 4.0), MOST_WIDTH)
    m = n_segments or min(max(round(n_bits / suited), 1), MOST_SEGMENTS)
    m = min(m, n_bits)
    edges = np.arange(m + 1) * n_bits // m
    most = MOST_WIDTH if m < MOST_SEGMENTS else max(round(suited), 1)
    return edges[:-1], np.minimum(np.diff(edges), most)


def arrays_of(buckets: Buckets) -> dict[str, NDArray[Any]]:
    """What a file must keep of the tables."""
    names = ["lows", "widths", "offsets", "rows"]
    is_laid = len(buckets.codes) == len(buckets.rows)
    return {name: getattr(buckets, name) for name in [*names, *(["codes"] if is_laid else [])]}


def restored(arrays: dict[str, NDArray[Any]], words: Words, n_bits: int) -> Buckets:
    """The tables that :func:`arrays_of` took apart; a ValueError where they cannot be."""
    lows, widths, offsets, rows = (arrays[name] for name in ("lows", "widths", "offsets", "rows"))
    kinds = lows.dtype == widths.dtype == np.int64 and offsets.dtype == rows.dtype == np.uint32
    if not kinds or lows.ndim != 1 or not 0 < len(lows) == len(widths) <= MOST_SEGMENTS:
        raise ValueError("its segments are not those of an index")
    if (lows < 0).any() or (widths < 1).any() or (widths > MOST_WIDTH).any():
        raise ValueError("its segments are out of bounds")
    if (lows > n_bits - widths).any() or rows.shape != (len(lows), len(words)):
        raise ValueError("its tables are not those of its codes")
    bases, n = _bases(widths), len(words)
    if offsets.shape != (bases[-1],):
        raise ValueError("its tables are not those of its segments")
    for first, last in pairwise(bases):
        part = offsets[first:last]
        if part[0] != 0 or part[-1] != n or (part[1:] < part[:-1]).any():
            raise ValueError("its tables do not ascend")
    if rows.max(initial=0) >= n:
        raise ValueError("its tables name rows that are not there")
    codes = arrays.get("codes", words[None])
    if codes.dtype != np.uint64 or codes.shape not in (
        (1, *words.shape),
        (len(lows), *words.shape),
    ):
        raise ValueError("its tables do not hold its codes")
    return Buckets(lows, widths, bases, offsets, rows, codes, *_masks(widths))


def _bases(widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the offsets of each segment begin, and the end."""
    return np.concatenate([[0], np.cumsum((1 << widths) + 1)])


def _masks(widths: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Masks of all widths in turn, and of each segment where those of each distance begin."""
    kinds = np.unique(widths)
    masks = [_masks_by_size(int(width)) for width in kinds]
    firsts = np.concatenate([[0], np.cumsum([len(values) for values, _ in masks])])
    n_shells = max(len(starts) for _, starts in masks)
    shells = np.empty((len(widths), n_shells), np.int64)
    for j, width in enumerate(widths):
        kind = int(np.searchsorted(kinds, width))
        starts = masks[kind][1]
        shells[j, : len(starts)] = firsts[kind] + starts
        shells[j, len(starts) :] = firsts[kind] + starts[-1]
    return np.concatenate([values for values, _ in masks]), shells


@lru_cache(maxsize=8)
def _masks_by_size(width: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Numbers of ``width`` bits with few bits set, fewest first, and where each number begins."""
    sizes = np.array([math.comb(width, r) for r in range(min(width, MOST_RADIUS) + 1)])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    starts = starts[: np.searchsorted(starts, MOST_KEYS, side="right")]
    values = np.arange(1 << width, dtype=np.uint32)
    order = np.argsort(np.bitwise_count(values), kind="stable")
    return values[order[: starts[-1]]], starts
