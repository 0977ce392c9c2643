"""Every metric by its name, and what a name may carry."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.metrics import average_precision as ap
from bittern.metrics import curves, gain, micro, precision
from bittern.metrics.names import TIE_RULES, MetricName
from bittern.metrics.ranks import break_ties
from bittern.profile import TieProfile
from bittern.registry import Registry

__all__ = ["METRICS", "Metric", "can_break_ties", "compute", "parse"]

Values = NDArray[np.float64] | micro.Pooled
LARGEST_BETA = 1e100
Compute = Callable[[TieProfile, MetricName], Values]


@dataclass(frozen=True, slots=True)
class Metric:
    """How a metric is computed, and what its name may carry."""

    compute: Compute
    title: str
    cutoff: bool = False  # whether "@100" may follow
    radius: bool = False  # whether "@r2" may follow
    needs_place: bool = False  # whether one of the two must
    options: tuple[str, ...] = ()
    ranked: bool = True  # whether ties can be broken


def _at(function: Callable[..., Values], **options: float) -> Compute:
    """A metric at a cut-off or a radius."""
    return lambda profile, name: function(profile, name.cutoff, name.radius, **options)


def _ap(profile: TieProfile, name: MetricName) -> Values:
    if not name.has("retrieved"):
        return ap.average_precision(break_ties(profile, name.tie_rule), name.cutoff)
    if name.tie_rule in ("optimistic", "pessimistic"):
        best = name.tie_rule == "optimistic"
        return ap.extreme_average_precision_of_retrieved(profile, name.cutoff, best)
    return ap.average_precision_of_retrieved(break_ties(profile, name.tie_rule), name.cutoff)


def _precision(profile: TieProfile, name: MetricName) -> Values:
    zero = name.has("empty-zero")
    return precision.precision(profile, name.cutoff, name.radius, empty_is_zero=zero)


def _placed(compute: Compute, title: str, *options: str) -> Metric:
    """A metric of what a cut-off or a radius retrieves."""
    return Metric(compute, title, cutoff=True, radius=True, needs_place=True, options=options)


METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "ap": Metric(_ap, "average precision", cutoff=True, options=("retrieved",)),
        "ndcg": Metric(
            lambda p, m: gain.ndcg(p, m.cutoff, m.has("linear")),
            "normalised discounted cumulative gain",
            cutoff=True,
            options=("linear",),
        ),
        "dcg": Metric(
            lambda p, m: gain.dcg(p, m.cutoff, m.has("linear")),
            "discounted cumulative gain",
            cutoff=True,
            options=("linear",),
        ),
        "rr": Metric(
            lambda p, m: precision.reciprocal_rank(p, m.cutoff), "reciprocal rank", cutoff=True
        ),
        "r-precision": Metric(lambda p, m: precision.r_precision(p), "precision at R"),
        "precision": _placed(_precision, "precision", "empty-zero"),
        "recall": _placed(_at(precision.recall), "recall"),
        "f1": _placed(_at(precision.fbeta), "F-measure"),
        "hit-rate": _placed(_at(precision.hit_rate), "at least one relevant item"),
        "micro-precision": _placed(_at(micro.micro_precision), "micro precision"),
        "micro-recall": _placed(_at(micro.micro_recall), "micro recall"),
        "micro-f1": _placed(_at(micro.micro_fbeta), "micro F-measure"),
        "auprc": Metric(
            lambda p, m: micro.auprc(p, m.has("trapezoid")),
            "area under the micro precision-recall curve",
            options=("trapezoid",),
            ranked=False,
        ),
        "interpolated-ap": Metric(
            lambda p, m: curves.interpolated_ap(p),
            "mean interpolated precision at eleven recalls",
            ranked=False,
        ),
    },
)


def parse(name: str | MetricName) -> MetricName:
    """The name as a value, refused if there is no such metric or it cannot carry what it says."""
    parsed = name if isinstance(name, MetricName) else MetricName.parse(name)
    metric = _metric(parsed.metric)
    if parsed.cutoff is not None and not metric.cutoff:
        raise InputError(f"'{parsed}': {parsed.metric} takes no cut-off.")
    if parsed.radius is not None and not metric.radius:
        raise InputError(f"'{parsed}': {parsed.metric} takes no radius.")
    if metric.needs_place and parsed.cutoff is None and parsed.radius is None:
        raise InputError(
            f"'{parsed}': {parsed.metric} needs a cut-off or a radius, like "
            f"'{parsed.metric}@100' or '{parsed.metric}@r2'."
        )
    _check_options(parsed, metric)
    return parsed


def compute(profile: TieProfile, name: MetricName) -> Values:
    """The metric of a parsed name: a value for each query, or a pooled one."""
    metric = _metric(name.metric)
    if name.metric != "ap":  # which breaks its ties itself
        profile = break_ties(profile, name.tie_rule)
    return metric.compute(profile, name)


def can_break_ties(name: MetricName) -> bool:
    """Whether the value of this metric depends on the order of tied items."""
    return _metric(name.metric).ranked and name.radius is None


def _metric(base: str) -> Metric:
    """The table's entry, or an F-measure of another β."""
    match = re.fullmatch(r"(micro-)?f([0-9.]+)", base)
    if match is None or base in METRICS:
        return METRICS[base]
    beta = float(match[2])
    if not 0 < beta <= LARGEST_BETA:
        raise InputError(f"'{base}': β must be above 0 and at most {LARGEST_BETA:g}.")
    plain = METRICS[f"{match[1] or ''}f1"]
    function = micro.micro_fbeta if match[1] else precision.fbeta
    return replace(plain, compute=_at(partial(function, beta=beta)))


def _check_options(name: MetricName, metric: Metric) -> None:
    if name.has("empty-zero") and name.radius is None:
        raise InputError(f"'{name}': only a radius can hold nothing; 'empty-zero' goes with '@r2'.")
    if name.tie_rule and not can_break_ties(name):
        raise InputError(
            f"'{name}': whole ties are retrieved here, so there is no order to break them by; "
            f"leave out ':{name.tie_rule}'."
        )
    allowed = (*metric.options, *(TIE_RULES if can_break_ties(name) else ()))
    places = [allowed.index(option) if option in allowed else -1 for option in name.options]
    if -1 in places:
        unknown = name.options[places.index(-1)]
        known = ", ".join(allowed) or "none"
        raise InputError(f"'{name}': {name.metric} has no option '{unknown}'; it has {known}.")
    rules = [option for option in name.options if option in TIE_RULES]
    if places != sorted(set(places)) or len(rules) > 1:
        raise InputError(f"'{name}': options come once each, the rule for ties last.")
