"""Similar and dissimilar pairs of an image and a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, row_blocks
from bittern.hashing.base import Bits
from bittern.hashing.targets import Targets


@dataclass(frozen=True, eq=False)
class Pairs:
    """Images, texts, and whether they are similar, pair by pair."""

    images: NDArray[np.intp]
    texts: NDArray[np.intp]
    similar: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.similar)


def draw_pairs(targets: Targets, n_pairs: int, rng: np.random.Generator) -> Pairs:
    """About ``n_pairs`` random pairs; each image has as many similar as dissimilar texts, if any.

    An image and a text are similar if the affinity of their training pairs is above 0, or if they
    are the same pair.
    """
    n = targets.n
    quota = max(1, round(n_pairs / 2 / n))  # of each kind, for each image
    rows = np.sort(rng.permutation(n)[: max(1, n_pairs // (2 * quota))])
    images, texts, similar = [], [], []
    for some in row_blocks(len(rows), 24 * n):
        affine = targets.affinity(rows[some]) > 0
        affine[np.arange(len(affine)), rows[some]] = True
        keys = rng.random(affine.shape)
        for wanted, allowed in ((True, affine), (False, ~affine)):
            row, text = _first(np.where(allowed, keys, 2.0), quota)
            images.append(rows[some][row])
            texts.append(text)
            similar.append(np.full(len(row), wanted))
    return Pairs(np.concatenate(images), np.concatenate(texts), np.concatenate(similar))


class Boosting:
    """Pairs with weights, larger where the bits so far err; they sum to 1.

    A bit that errs on half of the weight, or never, would leave the weights as they are, and all
    later bits would repeat it.  After such a bit, boosting begins anew with other random pairs.
    """

    pairs: Pairs
    weights: Float64Array

    def __init__(self, targets: Targets, n_pairs: int, rng: np.random.Generator) -> None:
        self._targets, self._n_pairs, self._rng = targets, n_pairs, rng
        self._begin()

    def _begin(self) -> None:
        self.pairs = draw_pairs(self._targets, self._n_pairs, self._rng)
        self.weights = np.full(len(self.pairs), 1 / len(self.pairs))

    def after(self, images: Bits, texts: Bits) -> None:
        """Weigh the pairs anew after a bit."""
        weights = boosted(self.weights, self.pairs, images, texts)
        if weights is self.weights:
            self._begin()
        else:
            self.weights = weights


def boosted(weights: Float64Array, pairs: Pairs, images: Bits, texts: Bits) -> Float64Array:
    """The weights of the pairs after a bit, larger where it errs, as in AdaBoost.

    A bit is right if similar rows have the same and dissimilar ones different bits.  One that errs
    on half of the weight, or never, changes nothing.
    """
    right = (images[pairs.images] == texts[pairs.texts]) == pairs.similar
    error = float(weights @ ~right)
    if not 0 < error < 0.5:
        return weights
    weights = weights * np.where(right, error / (1 - error), 1.0)
    return weights / weights.sum()


def _first(keys: NDArray[np.float64], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the k smallest keys of each row, among those below 1."""
    k = min(k, keys.shape[1])
    columns = np.argpartition(keys, k - 1, axis=1)[:, :k]
    row, place = np.nonzero(np.take_along_axis(keys, columns, axis=1) < 1)
    return row, columns[row, place]
