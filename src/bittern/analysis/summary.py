"""Mean, deviation and interval of each method at each length, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from bittern.experiments.record import Record, Value
from bittern.experiments.records import Records
from bittern.metrics import bootstrap, evaluate
from bittern.metrics.micro import Pooled
from bittern.metrics.ranks import ratio
from bittern.registry import Registry

__all__ = [
    "Summary",
    "best_by_length",
    "check_metric",
    "highest",
    "keys_of",
    "mean_of",
    "mean_spread",
    "n_values",
    "student_interval",
    "summarise",
]

ROUNDING = 1e-12  # means this close are the same number added up in another order


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric of a method at a length, over the ``n_runs`` runs that were measured.

    ``mean`` and ``deviation`` are of the runs' means, those undefined left out; the deviation is
    the sample's, NaN for one run.  ``interval`` is the 95 % interval of the mean: Student's over
    runs, or for one run (or copies of it) a bootstrap over its queries; NaN where neither can be
    had.  ``undefined``
    of ``n_queries`` queries (or of the runs, where a metric has one value for all queries), both
    added up over runs, have no value.  ``spread`` is the mean
    pessimistic and the mean optimistic value, None where ties have no order.
    """

    method: str
    n_bits: int | None  # None without codes
    metric: str
    mean: float
    deviation: float
    interval: tuple[float, float]
    n_runs: int
    undefined: int
    n_queries: int
    spread: tuple[float, float] | None


def summarise(records: Records, metric: str) -> tuple[Summary, ...]:
    """A summary of each method at each length that has records, in the protocol's order.

    A method without codes has one, with no length; one that lacks the metric has NaN.
    """
    check_metric(records, metric)
    return tuple(_summary(records, metric, *key) for key in keys_of(records))


def best_by_length(records: Records, metric: str) -> dict[int | None, tuple[str, ...]]:
    """The method with the highest mean at each length, or all that share it; none if all are NaN.

    Methods without codes take no part, unless there are no others: then the length is None.  Nor
    do bounds, which have seen the judgements.
    """
    means: dict[int | None, dict[str, float]] = {n: {} for n in records.lengths or (None,)}
    bounds = records.bounds
    for one in summarise(records, metric):
        if one.n_bits in means and one.mean == one.mean and one.method not in bounds:
            means[one.n_bits][one.method] = one.mean
    return {n: highest(of_methods) for n, of_methods in means.items()}


def keys_of(records: Records) -> list[tuple[str, int | None]]:
    """Method and length of all records: methods in the protocol's order, lengths ascending."""
    lengths: dict[str, set[int | None]] = {method: set() for method in records.methods}
    for record in records:
        lengths[record.method].add(record.n_bits)
    return [
        (method, n_bits)
        for method, found in lengths.items()
        for n_bits in sorted(found, key=lambda n: n or 0)
    ]


def check_metric(records: Records, metric: str) -> None:
    """Refuse a metric that neither the protocol nor any record has."""
    known = dict.fromkeys(records.protocol.metrics)
    for record in records:
        known |= dict.fromkeys(record.values)
    Registry("metric of these records", known)[metric]


def mean_of(values: ArrayLike) -> float:
    """The mean of what is defined; NaN if nothing is."""
    found = _defined(values)
    return float(found.mean()) if len(found) else nan


def mean_spread(values: Sequence[Value | None]) -> tuple[float, float] | None:
    """Mean pessimistic and mean optimistic value of runs; None where there are none."""
    spreads = [v.spread for v in values if v is not None and v.spread is not None]
    if not spreads:
        return None
    worst, best = zip(*spreads, strict=True)
    return mean_of(worst), mean_of(best)


def highest(means: dict[str, float]) -> tuple[str, ...]:
    """The names that share the highest value, none of them NaN."""
    best = max(means.values(), default=nan)
    return tuple(method for method, mean in means.items() if isclose(mean, best, rel_tol=ROUNDING))


def _summary(records: Records, metric: str, method: str, n_bits: int | None) -> Summary:
    found = records.of(method, n_bits)
    values = [record.values.get(metric) for record in found]
    means = _defined(records.over_runs(method, n_bits, metric))
    return Summary(
        method=method,
        n_bits=n_bits,
        metric=metric,
        mean=mean_of(means),
        deviation=float(means.std(ddof=1)) if len(means) > 1 else nan,
        interval=_interval(found, metric),
        n_runs=len(found),
        undefined=sum(value.undefined for value in values if value is not None),
        n_queries=sum(n_values(r, v) for r, v in zip(found, values, strict=True)),
        spread=mean_spread(values),
    )


def n_values(record: Record, value: Value | None) -> int:
    """How many values a metric has in a run: one a query, or one for all of them."""
    is_one = value is not None and value.per_query is None
    return 1 if is_one else len(record.query_positions)


def _interval(found: Sequence[Record], metric: str) -> tuple[float, float]:
    """95 % interval of the mean over runs; of one run, over its queries."""
    defined = [r for r in found if metric in r.values and not np.isnan(r.values[metric].mean)]
    if not defined:
        return nan, nan
    means = [record.values[metric].mean for record in defined]
    if len(set(means)) == 1:  # one run, or copies of it
        return _over_queries(defined[0], metric)
    return student_interval(means)


def student_interval(values: Sequence[float]) -> tuple[float, float]:
    r"""Student's interval :math:`\bar x \pm t_{0.975,\,n-1} \; s / \sqrt n`, [Student-1908].

    NaN for fewer than two values.
    """
    from scipy.special import stdtrit

    if len(values) < 2:
        return nan, nan
    n, mean = len(values), float(np.mean(values))
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) / sqrt(n)
    return mean - half, mean + half


def _over_queries(record: Record, metric: str) -> tuple[float, float]:
    """Bootstrap interval; of a metric with one value for all queries, by way of the profile."""
    values = record.per_query(metric)
    if values is not None:
        defined = ~np.isnan(values)
        if defined.sum() < 2:
            return nan, nan
        parts = np.stack([np.where(defined, values, 0.0), defined], axis=1)
        return bootstrap.interval(Pooled(parts, lambda sums: ratio(sums[:, 0], sums[:, 1])))
    if record.profile is None:
        return nan, nan
    return evaluate(record.profile, [metric])[metric].interval


def _defined(values: ArrayLike) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    return array[~np.isnan(array)]
