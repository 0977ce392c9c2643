"""Keys of a join: which bits two codes must share to be compared, chosen for the codes at hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.codes import WORD_BITS

Words = NDArray[np.uint64]

# Costs in nanoseconds, measured on one machine; only their ratios matter.
PLACE = 25.0  # put a code into its bucket
COMPARE, COMPARE_LONG = 0.8, 2.0  # two codes of a bucket, of one word and of several
MOST_SHARED, MOST_KEYS = 6, 4096
SAMPLE = 1 << 13  # codes whose collisions are counted
TRIED = 8  # keys of each number of segments that the sample is tried on


class JoinKeys(NamedTuple):
    """Masks of bits; any two codes within the radius agree in all bits of one of them."""

    masks: Words  # (n_keys, n_words)
    n_bits: int  # in the shortest key; 0 if there is one key, which compares everything


def choose_keys(words: Words, n_bits: int, radius: int, since: int, is_among: bool) -> JoinKeys:
    """The keys that promise the least work for these codes.

    Keys of more segments have smaller buckets, but there are more of them.  How many codes share a
    key is counted in a sample; without keys, every pair is compared.
    """
    n = len(words)
    n_pairs = _count_pairs(n, since, is_among)
    sample = words[np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))]
    bits = _informative_first(sample, n_bits)
    each = COMPARE if words.shape[1] == 1 else COMPARE_LONG
    best, least = JoinKeys(np.zeros((1, words.shape[1]), np.uint64), 0), each * n_pairs
    for masks in _families(bits, radius, words.shape[1]):
        share = _share_of_collisions(sample, masks)
        cost = len(masks) * (PLACE * n + each * share * n_pairs)
        if cost < least:
            shortest = int(np.bitwise_count(masks).sum(axis=1).min())
            best, least = JoinKeys(masks, shortest), cost
    return best


def _count_pairs(n: int, since: int, is_among: bool) -> int:
    n_new = n - since
    return n_new * since + (n_new * (n_new - 1) // 2 if is_among else 0)


def _families(bits: NDArray[np.int64], radius: int, n_words: int) -> Iterator[Words]:
    """Masks of all keys of one segment, of two, and so on."""
    for n_shared in range(1, MOST_SHARED + 1):
        n_segments = radius + n_shared
        n_keys = math.comb(n_segments, n_shared)
        if n_segments > len(bits) or n_keys > MOST_KEYS:
            return
        segments = np.zeros((n_segments, n_words), np.uint64)
        for place, bit in enumerate(bits.tolist()):
            word = np.uint64(1 << bit % WORD_BITS)
            segments[_dealt(place, n_segments), bit // WORD_BITS] |= word
        chosen = np.array(list(combinations(range(n_segments), n_shared)))
        yield np.bitwise_or.reduce(segments[chosen], axis=1)


def _dealt(place: int, n: int) -> int:
    """The segment of a bit: 0 … n - 1, then back from n - 1 to 0, and again."""
    turn, seat = divmod(place, n)
    return seat if turn % 2 == 0 else n - 1 - seat


def _informative_first(sample: Words, n_bits: int) -> NDArray[np.int64]:
    """Bits, the evenly spread ones first, so that every segment gets its share of them."""
    bits = np.arange(n_bits)
    set_ = [
        np.count_nonzero(sample[:, b // WORD_BITS] & np.uint64(1 << b % WORD_BITS))
        for b in bits.tolist()
    ]
    return bits[np.argsort(np.abs(np.array(set_) / len(sample) - 0.5), kind="stable")]


def _share_of_collisions(sample: Words, masks: Words) -> float:
    """Mean share of the pairs that agree in a key, over some keys."""
    n = len(sample)
    tried = masks[np.unique(np.linspace(0, len(masks) - 1, TRIED).astype(np.int64))]
    odd = np.uint64(0x9E3779B97F4A7C15)
    total = 0
    for mask in tried:
        mixed = np.zeros(n, np.uint64)
        for w in range(sample.shape[1]):
            mixed = (mixed ^ (sample[:, w] & mask[w])) * odd
        sizes = np.unique(mixed, return_counts=True)[1]
        total += int((sizes * (sizes - 1) // 2).sum())
    return total / max(len(tried) * n * (n - 1) // 2, 1)
