"""Metrics from sums over all queries, and bootstrap intervals of such values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bittern.checks import Float64Array
from bittern.metrics.curves import pr_curve
from bittern.metrics.precision import precision, ratio, recall, retrieved_at
from bittern.profile import TieProfile

RESAMPLES = 1000
AT_ONCE = 1 << 22  # draws in memory at a time
PARTS = 1 << 23  # numbers to be summed, in memory at a time
KEPT = 1 << 20  # draws of a few queries, kept in memory


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """A value computed from sums over queries.

    ``parts`` is ``(n_queries, n_sums)``.  ``value`` turns rows of sums ``(m, n_sums)`` into m
    values, so that queries can be resampled.
    """

    parts: Float64Array
    value: Callable[[Float64Array], Float64Array]

    def __call__(self) -> float:
        """The value over all queries."""
        return float(self.value(self.parts.sum(axis=0)[None])[0])


def micro_precision(profile: TieProfile, cutoff: int | None, radius: int | None) -> Pooled:
    """Precision of all queries together; NaN if nothing is retrieved (eq. 3.8 of [Moran-2016])."""
    at = retrieved_at(profile, cutoff, radius)
    return Pooled(np.stack([at.found, at.retrieved], axis=1), lambda s: ratio(s[:, 0], s[:, 1]))


def micro_recall(profile: TieProfile, cutoff: int | None, radius: int | None) -> Pooled:
    """Recall of all queries together; NaN if nothing is relevant (eq. 3.9 of [Moran-2016])."""
    at = retrieved_at(profile, cutoff, radius)
    return Pooled(np.stack([at.found, at.relevant], axis=1), lambda s: ratio(s[:, 0], s[:, 1]))


def micro_fbeta(
    profile: TieProfile, cutoff: int | None, radius: int | None, beta: float = 1.0
) -> Pooled:
    """Weighted harmonic mean of micro precision and micro recall (eq. 3.10 of [Moran-2016])."""
    at = retrieved_at(profile, cutoff, radius)

    def value(sums: Float64Array) -> Float64Array:
        found, retrieved, relevant = sums.T
        whole = np.where(relevant > 0, retrieved + beta**2 * relevant, 0.0)
        return ratio((1 + beta**2) * found, whole)

    return Pooled(np.stack([at.found, at.retrieved, at.relevant], axis=1), value)


def macro_fbeta(
    profile: TieProfile,
    cutoff: int | None,
    radius: int | None,
    beta: float = 1.0,
    empty_is_zero: bool = False,
) -> Pooled:
    r"""Weighted harmonic mean of macro precision and macro recall.

    .. math:: F_\beta = \frac{(1 + \beta^2)\,\bar P \bar R}{\beta^2 \bar P + \bar R}

    where :math:`\bar P` is the mean of precision over queries and :math:`\bar R` that of recall,
    each in expectation over ties: exactly the means of ``precision`` and ``recall``.  So a query
    with nothing relevant is left out of both; and a query that retrieves nothing has recall 0, and
    is left out of :math:`\bar P`, or counts as 0 there if ``empty_is_zero``.  0 if nothing relevant
    is retrieved; NaN if nothing is relevant.

    The mean of F over queries, ``fbeta``, is another number.  Reference: eq. 3.10 of [Moran-2016]
    and the sentence after it, which allows macro averages.
    """
    sides = (
        precision(profile, cutoff, radius, empty_is_zero=empty_is_zero),
        recall(profile, cutoff, radius),
    )
    defined = [~np.isnan(side) for side in sides]
    sums = [np.where(known, side, 0.0) for known, side in zip(defined, sides, strict=True)]

    def value(sums: Float64Array) -> Float64Array:
        p, r = ratio(sums[:, 0], sums[:, 2]), ratio(sums[:, 1], sums[:, 3])
        return np.where(r > 0, ratio((1 + beta**2) * p * r, beta**2 * p + r), r)

    return Pooled(np.stack([*sums, *defined], axis=1).astype(np.float64), value)


def auprc(profile: TieProfile, trapezoid: bool = False) -> Pooled:
    r"""Area under the micro precision-recall curve over radius.

    .. math:: \mathrm{AUPRC} = \sum_{d=0}^{b} P(d)\,[R(d) - R(d-1)], \qquad R(-1) = 0,

    where :math:`P(d)` and :math:`R(d)` are micro precision and recall within distance :math:`d`.  A
    perfect ranking has 1.  ``trapezoid`` replaces :math:`P(d)` by the mean of :math:`P(d)` and
    :math:`P(d-1)`; before the first point with a relevant item, the precision is that of this
    point.  No point is invented.  Recall that is never reached adds nothing.  NaN if nothing is
    relevant.

    Reference: eq. 3.11 of [Moran-2016] and its note on trapezoids.
    """
    if profile.distances is not None:
        curve = pr_curve(profile)
        area = _area(curve.precision[None], curve.recall[None], trapezoid)[0]
        if not profile.n_relevant.any():
            area = np.nan
        share = np.full((profile.n_queries, 1), area / profile.n_queries)
        return Pooled(share, lambda sums: sums[:, 0])
    n_columns = profile.counts.shape[1]
    parts = np.concatenate(
        [
            np.cumsum(profile.relevant, axis=1),
            np.cumsum(profile.total, axis=1),
            profile.n_relevant[:, None],
        ],
        axis=1,
    ).astype(np.float64)

    def value(sums: Float64Array) -> Float64Array:
        found, retrieved = sums[:, :n_columns], sums[:, n_columns:-1]
        precision = ratio(found, retrieved)
        recall = ratio(found, np.broadcast_to(sums[:, -1:], found.shape))
        return _area(precision, recall, trapezoid)

    return Pooled(parts, value)


def mean_of(values: Float64Array) -> Pooled:
    """The mean of the defined values; NaN if there are none."""
    defined = ~np.isnan(values)
    parts = np.stack([np.where(defined, values, 0.0), defined], axis=1)
    return Pooled(parts, lambda sums: ratio(sums[:, 0], sums[:, 1]))


def interval(
    pooled: Pooled, random_state: int = 0, confidence: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval: queries are resampled with replacement, 1,000 times.

    Reference: [Efron-Tibshirani-1993].
    """
    return next(intervals([pooled], random_state, confidence))


def intervals(
    many: Iterable[Pooled], random_state: int = 0, confidence: float = 0.95
) -> Iterator[tuple[float, float]]:
    """The :func:`interval` of each value; several at a time share their draws."""
    tail = 100 * (1 - confidence) / 2
    for group in _groups(many):
        for values in _resampled(group, random_state, RESAMPLES):
            if np.isnan(values).all():
                yield np.nan, np.nan
            else:
                low, high = np.nanpercentile(values, [tail, 100 - tail])
                yield float(low), float(high)


def resampled(pooled: Pooled, random_state: int = 0, n_resamples: int = RESAMPLES) -> Float64Array:
    """The values of ``n_resamples`` samples of the queries, drawn with replacement."""
    return _resampled([pooled], random_state, n_resamples)[0]


def _resampled(group: Sequence[Pooled], random_state: int, n_resamples: int) -> list[Float64Array]:
    """The values of each of them under the same samples; all have the same number of queries."""
    parts = np.concatenate([one.parts for one in group], axis=1)
    ends = np.cumsum([one.parts.shape[1] for one in group])[:-1]
    n = len(parts)
    samples = _samples if n * n_resamples > KEPT else _kept_samples
    sums = np.concatenate([weights @ parts for weights in samples(random_state, n, n_resamples)])
    return [one.value(own) for one, own in zip(group, np.split(sums, ends, axis=1), strict=True)]


def _groups(many: Iterable[Pooled]) -> Iterator[list[Pooled]]:
    """Successive values over the same number of queries, within bounds of memory."""
    group: list[Pooled] = []
    for one in many:
        n_values = sum(known.parts.size for known in group) + one.parts.size
        if group and (len(group[0].parts) != len(one.parts) or n_values > PARTS):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _area(precision: Float64Array, recall: Float64Array, trapezoid: bool) -> Float64Array:
    """Area under each row's curve."""
    step = np.diff(recall, axis=1, prepend=0.0)  # NaN, like the area, if nothing is relevant
    height = np.where(recall > 0, precision, 0.0)
    if trapezoid and recall.shape[1]:
        before = np.empty_like(height)
        before[:, 1:] = np.where(recall[:, :-1] > 0, height[:, :-1], height[:, 1:])
        before[:, 0] = height[:, 0]
        height = (height + before) / 2
    return (height * step).sum(axis=1)


def _samples(random_state: int, n: int, n_resamples: int) -> Iterator[Float64Array]:
    """How often each query is drawn in each sample, in batches of samples."""
    rng = np.random.default_rng(random_state)
    return (_weights(rng, rows, n) for rows in _batches(n, n_resamples))


@lru_cache(maxsize=1)
def _kept_samples(random_state: int, n: int, n_resamples: int) -> list[Float64Array]:
    """The same, kept for the next metric of the same queries."""
    return list(_samples(random_state, n, n_resamples))


def _batches(n: int, n_resamples: int) -> list[int]:
    """Numbers of resamples to draw at a time."""
    step = max(1, min(n_resamples, AT_ONCE // max(n, 1)))
    return [min(step, n_resamples - start) for start in range(0, n_resamples, step)]


def _weights(rng: np.random.Generator, rows: int, n: int) -> Float64Array:
    """How often each query is drawn, ``(rows, n)``."""
    drawn = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
