"""Means over runs of each method at each length: of a metric, class by class, and of the costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, isfinite, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from bittern.experiments.record import Record, Value
from bittern.experiments.records import Records
from bittern.metrics import parse, pooled
from bittern.metrics.names import compute
from bittern.metrics.pooled import Pooled
from bittern.registry import Registry

Interval = tuple[float, float]

ROUNDING = 1e-12  # means this close differ only by the order of summation
STAGES = ("tune", "fit", "encode", "evaluate")


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric of a method at a length, over the ``n_runs`` runs that were measured.

    ``mean`` and ``deviation`` are over the runs where the metric is defined; the deviation is the
    sample's, NaN for one run.  ``interval`` is the 95 % interval of the mean: Student's over runs,
    or, for one run (or copies of it), a bootstrap over its queries; NaN if neither is possible.
    ``undefined`` of ``n_queries`` queries have no value, both added up over runs; for a metric
    with one value for all queries, runs are counted instead.  ``spread`` is the mean pessimistic
    and the mean optimistic value, None for metrics that do not depend on the order of ties.
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


@dataclass(frozen=True, slots=True)
class Leader:
    """The best method of a length, or all that share the highest mean.

    ``margin`` is the mean minus that of ``followers``, the next best (all that share the place);
    NaN if there is none.  ``from_ceiling`` is the mean minus that of ``ceiling``, the best method
    without codes; NaN if there is none, or if no method has codes.
    """

    n_bits: int | None  # None if no method has codes
    methods: tuple[str, ...]
    mean: float
    followers: tuple[str, ...]
    margin: float
    ceiling: str | None
    ceiling_mean: float
    from_ceiling: float


@dataclass(frozen=True, slots=True)
class ClassMeans:
    """Mean of a metric for each class of queries and each method.

    ``means`` has a value for each of ``classes``, NaN if none is defined; ``n_queries`` counts
    each class's queries over all runs.  Empty without class labels, and for a metric with one
    value for all queries.
    """

    metric: str
    n_bits: int | None
    classes: tuple[int, ...] = ()
    n_queries: tuple[int, ...] = ()
    means: dict[str, tuple[float, ...]] | None = None

    def of(self, method: str) -> tuple[float, ...]:
        """A method's means, in the order of the classes."""
        return (self.means or {})[method]

    @property
    def easiest_first(self) -> list[int]:
        """Classes by their mean over methods, the highest first; undefined ones last."""

        def rank(place: int) -> tuple[bool, float]:
            values = [of[place] for of in (self.means or {}).values() if isfinite(of[place])]
            return not values, -sum(values) / max(len(values), 1)

        return [self.classes[place] for place in sorted(range(len(self.classes)), key=rank)]


@dataclass(frozen=True, slots=True)
class Cost:
    """Time and memory of a method at a length, and its quality.

    ``seconds`` has the mean over runs of each stage, NaN for stages that a method does not have;
    ``peak_memory`` is the largest of all runs, in bytes; ``mean`` is that of the main metric.
    ``stored_bits`` is the mean length of the codes, which is above ``n_bits`` if they are
    thermometers.
    """

    method: str
    n_bits: int | None  # None without codes
    stored_bits: float | None
    seconds: dict[str, float]
    peak_memory: int
    mean: float


def summarise(records: Records, metric: str) -> tuple[Summary, ...]:
    """A summary of each method at each length that has records, in the protocol's order.

    A method without codes has one summary, without a length; its mean is NaN for a metric that
    it lacks.
    """
    check_metric(records, metric)
    keys = keys_of(records)
    intervals = _intervals([records.of(*key) for key in keys], metric)
    return tuple(
        _summary(records, metric, *key, interval)
        for key, interval in zip(keys, intervals, strict=True)
    )


def best_by_length(records: Records, metric: str) -> dict[int | None, tuple[str, ...]]:
    """The methods with the highest mean at each length; empty if every mean is NaN.

    Methods without codes count only if no method has codes: then the length is None.  Bounds,
    which have seen the judgements, never count.
    """
    return best_of(records, summarise(records, metric))


def best_of(records: Records, summaries: Sequence[Summary]) -> dict[int | None, tuple[str, ...]]:
    """As :func:`best_by_length`, from the summaries of the records."""
    means: dict[int | None, dict[str, float]] = {n: {} for n in records.lengths or (None,)}
    for one in _ranked(records, summaries):
        if one.n_bits in means:
            means[one.n_bits][one.method] = one.mean
    return {n: _highest(of_methods) for n, of_methods in means.items()}


def leaders(records: Records, metric: str) -> tuple[Leader, ...]:
    """The leader of each length, ascending; lengths where nothing is defined are left out."""
    return leaders_of(records, summarise(records, metric))


def leaders_of(records: Records, summaries: Sequence[Summary]) -> tuple[Leader, ...]:
    """As :func:`leaders`, from the summaries of the records."""
    ranked = _ranked(records, summaries)
    ceiling = max(
        (one for one in ranked if one.n_bits is None and records.lengths),
        key=lambda one: one.mean,
        default=None,
    )
    return tuple(
        _leader(n_bits, methods, [one for one in ranked if one.n_bits == n_bits], ceiling)
        for n_bits, methods in best_of(records, summaries).items()
        if methods
    )


def per_class(records: Records, metric: str, n_bits: int | None = None) -> ClassMeans:
    """Mean of a metric over the queries of each class in all runs, for each method at a length.

    Methods without codes are included at every length.
    """
    check_metric(records, metric)
    found = {
        method: [record for record in records.of(method, n_bits) if _has_classes(record, metric)]
        for method in records.methods
    }
    found = {method: usable for method, usable in found.items() if usable}
    of_run = {record.run: record.query_labels for usable in found.values() for record in usable}
    labels = np.concatenate([np.empty(0, int), *(of_run[run] for run in sorted(of_run))])
    classes, counts = np.unique(labels, return_counts=True)
    return ClassMeans(
        metric=metric,
        n_bits=n_bits,
        classes=tuple(classes.tolist()),
        n_queries=tuple(counts.tolist()),
        means={method: _class_means(usable, metric, classes) for method, usable in found.items()},
    )


def costs(records: Records) -> tuple[Cost, ...]:
    """The cost of each method at each length, in the protocol's order."""
    return tuple(_cost(records, *key) for key in keys_of(records))


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
    """Raise an error if neither the protocol nor any record has the metric."""
    known = dict.fromkeys(records.protocol.metrics)
    for record in records:
        known |= dict.fromkeys(record.values)
    Registry("metric of these records", known)[metric]


def mean_of(values: ArrayLike) -> float:
    """The mean of the defined values; NaN if there are none."""
    found = _defined(values)
    return float(found.mean()) if len(found) else nan


def mean_spread(values: Sequence[Value | None]) -> tuple[float, float] | None:
    """Mean pessimistic and mean optimistic value over runs; None if no run has them."""
    spreads = [v.spread for v in values if v is not None and v.spread is not None]
    if not spreads:
        return None
    worst, best = zip(*spreads, strict=True)
    return mean_of(worst), mean_of(best)


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


def n_values(record: Record, value: Value | None) -> int:
    """How many values a metric has in a run: one per query, or one for all queries."""
    is_one = value is not None and value.per_query is None
    return 1 if is_one else len(record.query_positions)


def _summary(
    records: Records, metric: str, method: str, n_bits: int | None, interval: Interval
) -> Summary:
    found = records.of(method, n_bits)
    values = [record.values.get(metric) for record in found]
    means = _defined(records.over_runs(method, n_bits, metric))
    return Summary(
        method=method,
        n_bits=n_bits,
        metric=metric,
        mean=mean_of(means),
        deviation=float(means.std(ddof=1)) if len(means) > 1 else nan,
        interval=interval,
        n_runs=len(found),
        undefined=sum(value.undefined for value in values if value is not None),
        n_queries=sum(n_values(r, v) for r, v in zip(found, values, strict=True)),
        spread=mean_spread(values),
    )


def _intervals(cells: Sequence[Sequence[Record]], metric: str) -> list[Interval]:
    """95 % interval of the mean over the runs of each cell; for one run, over its queries."""
    found: list[Interval] = [(nan, nan)] * len(cells)
    single: dict[int, Record] = {}
    for i, runs in enumerate(cells):
        defined = [r for r in runs if metric in r.values and not np.isnan(r.values[metric].mean)]
        means = [record.values[metric].mean for record in defined]
        if len(set(means)) == 1:  # one run, or copies of it
            if _can_resample(defined[0], metric):
                single[i] = defined[0]
        else:
            found[i] = student_interval(means)
    bootstrapped = pooled.intervals(_over_queries(record, metric) for record in single.values())
    for i, interval in zip(single, bootstrapped, strict=True):
        found[i] = interval
    return found


def _can_resample(record: Record, metric: str) -> bool:
    """Whether at least two queries have values, or there is a profile to compute others from."""
    value = record.values[metric]
    if value.per_query is None:
        return record.profile is not None
    return len(value.per_query) - value.undefined > 1


def _over_queries(record: Record, metric: str) -> Pooled:
    """The metric as sums over queries; from the profile if it has one value for all queries."""
    values = record.per_query(metric)
    if values is not None:
        return pooled.mean_of(values)
    assert record.profile is not None
    computed = compute(record.profile, parse(metric))
    assert isinstance(computed, Pooled)
    return computed


def _ranked(records: Records, summaries: Sequence[Summary]) -> list[Summary]:
    """Those with a mean, without bounds."""
    bounds = records.bounds
    return [one for one in summaries if one.mean == one.mean and one.method not in bounds]


def _highest(means: dict[str, float]) -> tuple[str, ...]:
    """The names that share the highest value; no value is NaN."""
    best = max(means.values(), default=nan)
    return tuple(method for method, mean in means.items() if isclose(mean, best, rel_tol=ROUNDING))


def _leader(
    n_bits: int | None, methods: tuple[str, ...], here: list[Summary], ceiling: Summary | None
) -> Leader:
    means = {one.method: one.mean for one in here}
    followers = _highest({name: mean for name, mean in means.items() if name not in methods})
    mean = means[methods[0]]
    ceiling_mean = nan if ceiling is None else ceiling.mean
    return Leader(
        n_bits=n_bits,
        methods=methods,
        mean=mean,
        followers=followers,
        margin=mean - means[followers[0]] if followers else nan,
        ceiling=None if ceiling is None else ceiling.method,
        ceiling_mean=ceiling_mean,
        from_ceiling=mean - ceiling_mean,
    )


def _has_classes(record: Record, metric: str) -> bool:
    value = record.values.get(metric)
    return record.query_labels is not None and value is not None and value.per_query is not None


def _class_means(usable: list[Record], metric: str, classes: np.ndarray) -> tuple[float, ...]:
    labels = np.concatenate([np.array(record.query_labels) for record in usable])
    values = np.concatenate([np.array(record.values[metric].per_query) for record in usable])
    return tuple(mean_of(values[labels == one]) for one in classes)


def _cost(records: Records, method: str, n_bits: int | None) -> Cost:
    found = records.of(method, n_bits)
    return Cost(
        method=method,
        n_bits=n_bits,
        stored_bits=None if n_bits is None else _stored_bits(found),
        seconds={
            stage: mean_of([r.seconds[stage] for r in found if stage in r.seconds])
            for stage in STAGES
        },
        peak_memory=max(record.peak_memory for record in found),
        mean=mean_of(records.over_runs(method, n_bits, records.protocol.main_metric)),
    )


def _stored_bits(found: Sequence[Record]) -> float | None:
    """A profile has a column for each distance between codes, from 0 to their length."""
    lengths = [r.profile.counts.shape[1] - 1 for r in found if r.profile is not None]
    return mean_of(lengths) if lengths else None


def _defined(values: ArrayLike) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    return array[~np.isnan(array)]
