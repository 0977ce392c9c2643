"""Scores of several sources: check, normalise and rank them; and the base of learned fusions.

A normalisation takes scores with items along the last axis and treats every row, the scores of one
source for one query, by itself.  NaN, an item that was not retrieved, stays NaN and is ignored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from bittern.checks import Float64Array, check_array, check_count, check_same_length, row_blocks
from bittern.errors import InputError, NotFittedError
from bittern.registry import Registry
from bittern.relevance import Relevance

Scores: TypeAlias = NDArray[np.floating[Any]]  # (sources, queries, items) or (sources, items)
BLOCK = 1 << 26  # bytes of sorted scores and places held at once


class Fusion(Protocol):
    """Turns the scores of several sources into one score for each item; larger is better."""

    def __call__(
        self, scores: ArrayLike, *, normalise: str = ..., weights: ArrayLike | None = ...
    ) -> Float64Array:
        """``(sources, queries, items)`` to ``(queries, items)``, ``(sources, items)`` to items."""
        ...


class FittedFusion(BaseEstimator, ABC):
    """Learns from the scores of training queries; :meth:`combine` fuses those of other queries.

    Scores are ``(sources, queries, items)``, larger is better, and every source scores every item.
    """

    normalise: str
    random_state: int | None
    n_sources_: int

    @abstractmethod
    def combine(self, scores: ArrayLike) -> Float64Array:
        """One score for each item of each query, ``(queries, items)``; larger is better."""

    @property
    def _title(self) -> str:
        return type(self).__name__

    def _fitted_scores(self, scores: ArrayLike) -> Scores:
        """Checked scores, from as many sources as in ``fit``."""
        if not hasattr(self, "n_sources_"):
            raise NotFittedError(f"{self._title}: call fit() before combine().")
        s = check_scores(scores, self._title, complete=True)
        if len(s) != self.n_sources_:
            raise InputError(
                f"{self._title}: was fitted on {self.n_sources_} sources, got {len(s)}."
            )
        return s

    def _generator(self) -> np.random.Generator:
        if self.random_state is not None:
            check_count(self.random_state, f"{self._title}: random_state", 0)
        return np.random.default_rng(self.random_state)


def check_scores(scores: ArrayLike, owner: str, *, complete: bool = False) -> Scores:
    """``scores`` as floats of 2 or 3 dimensions, finite or NaN; if ``complete``, 3 and no NaN."""
    s = check_array(scores, f"{owner}: scores")
    if s.ndim not in ((3,) if complete else (2, 3)):
        shapes = "(sources, queries, items)" + ("" if complete else " or (sources, items)")
        raise InputError(f"{owner}: scores must be {shapes}, got shape {s.shape}.")
    if s.dtype.kind not in "fiub":
        raise InputError(f"{owner}: scores must be numbers, got dtype {s.dtype}.")
    if 0 in s.shape:
        raise InputError(f"{owner}: scores must not be empty, got shape {s.shape}.")
    if s.dtype not in (np.float32, np.float64):
        s = s.astype(np.float64)
    for position, source in enumerate(s):
        if np.isinf(source).any():
            raise InputError(
                f"{owner}: scores must be finite, or NaN for an item that was not retrieved; "
                f"source {position} has infinite ones."
            )
        if complete and np.isnan(source).any():
            raise InputError(
                f"{owner}: every source must score every item, source {position} has NaN; "
                "give missing items a score first."
            )
    return s


def check_weights(weights: ArrayLike | None, scores: Scores, owner: str) -> Float64Array:
    """A weight for each source that broadcasts over its items; None means ones.

    Weights are ``(sources,)``, or ``(queries, sources)`` for separate weights of each query.
    """
    n_sources, one_each = len(scores), (1,) * (scores.ndim - 1)
    if weights is None:
        return np.ones((n_sources, *one_each))
    w = check_array(weights, f"{owner}: weights")
    if w.dtype.kind not in "fiub" or not np.isfinite(w).all():
        raise InputError(f"{owner}: weights must be finite numbers.")
    if w.shape == (n_sources,):
        return w.astype(np.float64).reshape(n_sources, *one_each)
    if scores.ndim == 3 and w.shape == (scores.shape[1], n_sources):
        return w.T.astype(np.float64)[:, :, None]
    raise InputError(
        f"{owner}: weights must be one for each of {n_sources} sources, or one row of them for "
        f"each query, got shape {w.shape}."
    )


def check_judgements(relevant: Relevance | ArrayLike, shape: tuple[int, ...], owner: str) -> Any:
    """``(queries, items)`` of 1 for relevant, 0 for not relevant, -1 for excluded items."""
    if isinstance(relevant, Relevance):
        check_same_length(relevant.n_queries, shape[0], f"{owner}: queries of scores and relevance")
        check_same_length(relevant.n_database, shape[1], f"{owner}: items of scores and relevance")
        judged = (relevant.block(slice(0, shape[0])) > 0).astype(np.int8)
        if relevant.excluded is not None:
            rows = np.flatnonzero(relevant.excluded >= 0)
            judged[rows, relevant.excluded[rows]] = -1
        return judged
    given = check_array(relevant, f"{owner}: relevant")
    if given.shape != shape or given.dtype != np.bool_:
        raise InputError(
            f"{owner}: relevant must be a Relevance or booleans {shape}, "
            f"got {given.dtype} of shape {given.shape}."
        )
    return given.astype(np.int8)


def retrieved(scores: Scores, fused: Float64Array) -> Float64Array:
    """The fused scores, NaN where no source has the item."""
    nowhere = np.isnan(scores[0])
    for source in scores[1:]:
        nowhere &= np.isnan(source)
    return np.where(nowhere, np.nan, fused)


def add_up(scores: Scores, normalise: str, weights: Float64Array) -> Float64Array:
    """The weighted sum of checked scores after normalisation, added in the order of the sources."""
    normalised = NORMALISATIONS[normalise]
    total = np.zeros(scores.shape[1:])
    for weight, source in zip(weights, scores, strict=True):
        total += weight * np.nan_to_num(normalised(source), nan=0.0)
    return retrieved(scores, total)


def zscore(scores: NDArray[np.floating[Any]]) -> Float64Array:
    r"""Scores of mean 0 and variance 1: :math:`(s - \bar s) / \sigma`.

    The variance is that of the retrieved items, divided by their number.  A row of equal scores
    becomes zeros.  Reference: 3.3 of [Yavlinsky-2004].
    """
    s = np.asarray(scores, np.float64)
    n = np.maximum(1, np.count_nonzero(~np.isnan(s), axis=-1, keepdims=True))
    centred = s - np.nansum(s, axis=-1, keepdims=True) / n
    deviation = np.sqrt(np.nansum(centred**2, axis=-1, keepdims=True) / n)
    return _divided(s, centred, deviation)


def minmax(scores: NDArray[np.floating[Any]]) -> Float64Array:
    r"""Scores from 0 to 1: :math:`(s - \min s) / (\max s - \min s)`.

    A row of equal scores becomes zeros.  Reference: [Lee-1997].
    """
    s = np.asarray(scores, np.float64)
    low, high = _extremes(s)
    return _divided(s, s - low, high - low)


def rank(scores: NDArray[np.floating[Any]]) -> Float64Array:
    r"""Ranks mapped to 1 … 1/n: :math:`1 - (\mathrm{rank} - 1) / n` of n retrieved items.

    Tied items share the mean of their ranks.
    """
    s = np.asarray(scores, np.float64)
    n = np.maximum(1, np.count_nonzero(~np.isnan(s), axis=-1, keepdims=True))
    return np.where(np.isnan(s), np.nan, 1 - (mean_ranks(s) - 1) / n)


def none(scores: NDArray[np.floating[Any]]) -> Float64Array:
    """The scores unchanged."""
    return np.asarray(scores, np.float64)


#: Every normalisation by its name.
NORMALISATIONS: Registry[Callable[[NDArray[np.floating[Any]]], Float64Array]] = Registry(
    "normalisation", {"zscore": zscore, "minmax": minmax, "rank": rank, "none": none}
)


def mean_ranks(scores: NDArray[np.floating[Any]]) -> Float64Array:
    """Rank of each item along the last axis, 1 for the largest; tied items share their mean rank.

    NaN, an item that was not retrieved, comes after all others, as one tie.
    """
    return mean_over_places(scores, np.arange(1.0, scores.shape[-1] + 1))


def mean_over_places(scores: NDArray[np.floating[Any]], values: Float64Array) -> Float64Array:
    """``values[t]`` for the item in place t of each ranking; tied items share their mean value.

    This is the expectation over all orders of the tied items.
    """
    n = scores.shape[-1]
    rows = scores.reshape(-1, n)
    out = np.empty(rows.shape)
    for some in row_blocks(len(rows), 64 * n, BLOCK):
        out[some] = _shared(rows[some], values)
    return out.reshape(scores.shape)


def _divided(scores: Float64Array, part: Float64Array, whole: Float64Array) -> Float64Array:
    """``part / whole``; zeros in rows of equal scores, where rounding may leave a deviation."""
    low, high = _extremes(scores)
    varies = (high > low) & (whole > 0)
    return np.where(varies, part / np.where(varies, whole, 1.0), part * 0.0)


def _extremes(scores: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Least and greatest of each row; NaN for rows of only NaN."""
    low = np.fmin.reduce(scores, axis=-1, keepdims=True)
    high = np.fmax.reduce(scores, axis=-1, keepdims=True)
    return low, high


def _shared(rows: NDArray[Any], values: Float64Array) -> Float64Array:
    negative = -rows
    order = np.argsort(negative, axis=1)  # NaN comes last
    ranked = np.take_along_axis(negative, order, axis=1)
    begins = np.ones(ranked.shape, np.bool_)  # where a tie begins
    both_nan = np.isnan(ranked[:, 1:]) & np.isnan(ranked[:, :-1])
    begins[:, 1:] = (ranked[:, 1:] != ranked[:, :-1]) & ~both_nan
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=begins.size)
    sums = np.add.reduceat(np.tile(values, len(rows)), starts)
    out = np.empty(rows.shape)
    shared = np.repeat(sums / sizes, sizes).reshape(rows.shape)
    np.put_along_axis(out, order, shared, axis=1)
    return out
