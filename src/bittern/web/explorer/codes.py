"""The codes view: balance and correlation of bits, what turns a bit on, and buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.index.pairs import DistinctCodes
from bittern.progress import track
from bittern.web.asked import hex_of
from bittern.web.explorer.asking import image_vector
from bittern.web.explorer.contents import Contents, Ids

BLOCK = 1 << 16  # codes that are unpacked at a time
MOST_BITS = 512  # whose correlations are shown
MOST_VECTORS = 20_000  # stored vectors whose distance from the threshold is computed
MOST_IMAGES = 120  # images that are read again for it
EXAMPLES = 8  # items on either side of a threshold
LARGEST = 12  # buckets that are listed


def bits(contents: Contents) -> dict[str, Any]:
    """The share of ones of each bit, and the correlation of every two bits."""
    return contents.once("bits", lambda: _bits(contents))


def buckets(contents: Contents) -> dict[str, Any]:
    """How many items share a code: the sizes of buckets, and the largest ones."""
    return contents.once("buckets", lambda: _buckets(contents))


def bit(contents: Contents, number: int) -> dict[str, Any]:
    """What turns a bit on: its share in each class, and items near and far from its threshold.

    The distance from the threshold is that of stored vectors, or else of a few images, which are
    read again.  Without either, items are drawn at random.
    """
    if not 0 <= number < contents.source.n_bits:
        raise InputError(f"codes: bits are numbered 0 to {contents.source.n_bits - 1}.")
    is_on = _column(contents.codes, number)
    answer: dict[str, Any] = {"bit": number, "share": float(is_on.mean()) if len(is_on) else 0.0}
    answer["classes"] = _by_class(contents, is_on)
    try:
        ids, values, source = contents.once("logits", lambda: _logits(contents))
    except BitternError as error:
        return answer | {"note": str(error), **_drawn(contents, is_on)}
    return answer | {
        "source": source,
        "n_measured": len(ids),
        **_sides(contents, ids, values, number),
    }


def bit_moments(codes: Codes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of each bit, and covariance of every two, without holding all bits at once."""
    n, products = max(len(codes), 1), np.zeros((codes.n_bits, codes.n_bits))
    sums = np.zeros(codes.n_bits)
    for first in track(range(0, len(codes), BLOCK), "codes"):
        block = codes[first : first + BLOCK].to_bits().astype(np.float32)
        sums += block.sum(axis=0, dtype=np.float64)
        products += block.T @ block
    mean = sums / n
    return mean, products / n - np.outer(mean, mean)


def _bits(contents: Contents) -> dict[str, Any]:
    mean, covariance = bit_moments(contents.codes)
    shown = slice(0, MOST_BITS)
    scale = np.sqrt(np.diag(covariance).clip(0))
    whole = np.outer(scale, scale)
    correlation = np.divide(covariance, whole, out=np.zeros_like(whole), where=whole > 1e-12)
    off = np.abs(correlation[~np.eye(len(mean), dtype=bool)])
    return {
        "n_items": len(contents.ids),
        "n_bits": len(mean),
        "balance": np.round(mean, 5).tolist(),
        "correlation": np.round(correlation[shown, shown], 3).tolist(),
        "mean_correlation": float(off.mean()) if off.size else 0.0,
        "largest_correlation": float(off.max()) if off.size else 0.0,
    }


def _buckets(contents: Contents) -> dict[str, Any]:
    codes = contents.codes
    numbers = DistinctCodes.of(codes.words).numbers()
    sizes = np.bincount(numbers) if len(numbers) else np.zeros(0, np.int64)
    largest = np.argsort(-sizes, kind="stable")[:LARGEST]
    first = np.full(len(sizes), -1)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    edges = 2 ** np.arange(int(sizes.max(initial=1)).bit_length() + 1)
    counts, _ = np.histogram(sizes, bins=edges) if len(sizes) else (np.zeros(0, np.int64), None)
    shares = sizes / max(len(numbers), 1)
    return {
        "n_items": len(numbers),
        "n_buckets": len(sizes),
        "n_alone": int((sizes == 1).sum()),
        "entropy": float(-(shares * np.log2(shares)).sum()) if len(sizes) else 0.0,
        "sizes": [
            {"from": int(low), "to": int(2 * low - 1), "count": int(count)}
            for low, count in zip(edges, counts, strict=False)
        ],
        "largest": [
            {"count": int(sizes[i]), "code": hex_of(codes[first[i] : first[i] + 1])[0], "item": one}
            for i, one in zip(largest, contents.tiles(contents.ids[first[largest]]), strict=True)
        ],
    }


def _column(codes: Codes, number: int) -> NDArray[np.bool_]:
    word = codes.words[:, number // 64]
    return (word >> np.uint64(number % 64)) & np.uint64(1) == 1


def _by_class(contents: Contents, is_on: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """The share of ones in each class, the largest first."""
    if contents.labels is None:
        return []
    there = contents.labels.numbers >= 0
    numbers = contents.labels.numbers[there]
    n = np.bincount(numbers, minlength=len(contents.labels.names))
    on = np.bincount(numbers, is_on[there], minlength=len(n))
    shares = on / np.maximum(n, 1)
    return [
        {"name": contents.labels.names[i], "share": float(shares[i]), "n": int(n[i])}
        for i in np.argsort(-shares, kind="stable")
    ]


def _logits(contents: Contents) -> tuple[Ids, NDArray[np.float32], str]:
    """The numbers whose signs are the bits, of items whose vectors are known."""
    hasher: Any = contents.source.recipe.hasher
    if not hasattr(hasher, "logits") or contents.source.is_crossmodal:
        raise InputError(
            "The hasher of this collection does not tell how narrowly bits are decided."
        )
    rng = np.random.default_rng(0)
    stored = contents.source.vectors_of(contents.ids[:1])
    if stored is not None:
        chosen = np.sort(rng.permutation(len(contents.ids))[:MOST_VECTORS])
        ids = contents.ids[chosen]
        vectors, there = contents.source.vectors_of(ids) or stored
        return ids[there], hasher.logits(vectors[there]), "stored vectors"
    chosen = np.sort(rng.permutation(contents.comparable)[:MOST_IMAGES])
    found = {
        id_: image_vector(contents, id_) for id_ in track(contents.ids[chosen].tolist(), "images")
    }
    read = {id_: vector for id_, vector in found.items() if vector is not None}
    if not read:
        raise InputError("No vectors are stored and no images can be read; items drawn at random.")
    vectors = np.concatenate(list(read.values()))
    return np.array(list(read), np.int64), hasher.logits(vectors), "images, read again"


def _sides(
    contents: Contents, ids: Ids, values: NDArray[Any], number: int
) -> dict[str, list[dict[str, Any]]]:
    column = np.asarray(values[:, number], np.float64)
    order = np.argsort(column, kind="stable")
    zero = int((column <= 0).sum())
    chosen = {
        "off_far": order[:zero][:EXAMPLES],
        "off_near": order[:zero][::-1][:EXAMPLES],
        "on_near": order[zero:][:EXAMPLES],
        "on_far": order[zero:][::-1][:EXAMPLES],
    }
    return {
        name: contents.tiles(ids[rows], value=column[rows].round(4).tolist())
        for name, rows in chosen.items()
    }


def _drawn(contents: Contents, is_on: NDArray[np.bool_]) -> dict[str, list[dict[str, Any]]]:
    rng = np.random.default_rng(0)
    sides = {"on_far": np.flatnonzero(is_on), "off_far": np.flatnonzero(~is_on)}
    return {
        name: contents.tiles(contents.ids[np.sort(rng.permutation(rows)[:EXAMPLES])])
        for name, rows in sides.items()
    }
