"""Scores of several sources and their weights, checked once at the door."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_array, check_same_length
from bittern.errors import InputError
from bittern.relevance import Relevance

__all__ = [
    "Float64Array",
    "Fusion",
    "Scores",
    "check_judgements",
    "check_scores",
    "check_weights",
    "retrieved",
]

Scores: TypeAlias = NDArray[np.floating[Any]]  # (sources, queries, items) or (sources, items)


class Fusion(Protocol):
    """Turns scores of several sources into one score for each item; larger is better."""

    def __call__(
        self, scores: ArrayLike, *, normalise: str = ..., weights: ArrayLike | None = ...
    ) -> Float64Array:
        """``(sources, queries, items)`` to ``(queries, items)``, ``(sources, items)`` to items."""
        ...


def check_scores(scores: ArrayLike, owner: str, *, complete: bool = False) -> Scores:
    """``scores`` as floats of 2 or 3 dimensions, finite or NaN; if ``complete``, 3 and no NaN."""
    s = check_array(scores, f"{owner}: scores")
    if s.ndim not in ((3,) if complete else (2, 3)):
        shapes = "(sources, queries, items)" + ("" if complete else " or (sources, items)")
        raise InputError(f"{owner}: scores must be {shapes}, got shape {s.shape}.")
    if s.dtype.kind not in "fiub":
        raise InputError(f"{owner}: scores must be numbers, got dtype {s.dtype}.")
    if 0 in s.shape:
        raise InputError(f"{owner}: scores must hold something, got shape {s.shape}.")
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
    """A weight for each source that broadcasts over its items; ones if there are none.

    Weights are ``(sources,)``, or ``(queries, sources)`` for weights of each query's own.
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
    """``(queries, items)`` of 1 for relevant, 0 for not, -1 for what is not to be retrieved."""
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
