"""Names of metrics, and the metric behind each name.

A name can be converted to text and back: ``str(parse(name)) == name``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.errors import InputError, shown
from bittern.metrics import curves, gain, pooled, precision
from bittern.profile import TieProfile
from bittern.registry import OpenRegistry

DATABASE_ORDER = "database-order"
TIE_RULES = ("optimistic", "pessimistic", DATABASE_ORDER, "trec")
MOST = 2**62  # largest cut-off or radius
LARGEST_BETA = 1e100

_PATTERN = re.compile(
    r"(?P<metric>[a-z]+(?:-[a-z]+)*(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?)?"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)"  # a path, like package.module:name
    r"(?:@(?P<radius>r)?(?P<number>0|[1-9][0-9]{0,18}))?"
    r"(?P<options>(?::[a-z]+(?:-[a-z]+)*)*)"
)


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric, its cut-off or radius, and its options.

    For example ``ap``, ``ap@1000`` (the first 1000 items), ``precision@r2`` (the items within
    Hamming radius 2), ``ndcg@100:linear:optimistic`` (the cut-off comes before the options, and the
    rule for ties comes last).

    >>> MetricName.parse("ap@5000:retrieved")
    MetricName(metric='ap', cutoff=5000, radius=None, options=('retrieved',))
    """

    metric: str
    cutoff: int | None = None
    radius: int | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        texts = (self.metric, *self.options) if isinstance(self.options, tuple) else (None,)
        if not all(isinstance(text, str) for text in texts):
            raise InputError("MetricName: the metric must be text, and the options a tuple of it.")
        if self.cutoff is not None:
            check_count(self.cutoff, f"{self.metric!r}: the cut-off", most=MOST)
        if self.radius is not None:
            check_count(self.radius, f"{self.metric!r}: the radius", least=0, most=MOST)
        if self.cutoff is not None and self.radius is not None:
            raise InputError(f"'{self}': a metric has a cut-off or a radius, not both.")

    @classmethod
    def parse(cls, text: str) -> MetricName:
        """Parse exactly what ``str()`` writes."""
        match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
        number = int(match["number"]) if match and match["number"] else None
        if match is None or (number == 0 and not match["radius"]):
            raise InputError(
                "a metric is written like 'ap', 'ap@1000', 'precision@r2' or "
                f"'ndcg@100:linear', got {shown(text)}."
            )
        return cls(
            match["metric"],
            cutoff=None if match["radius"] else number,
            radius=number if match["radius"] else None,
            options=tuple(match["options"].split(":")[1:]),
        )

    @property
    def tie_rule(self) -> str | None:
        """How ties are broken; None for the expectation over all orders."""
        return self.options[-1] if self.options and self.options[-1] in TIE_RULES else None

    def has(self, option: str) -> bool:
        """Whether the name has an option."""
        return option in self.options

    def __str__(self) -> str:
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        at += "" if self.radius is None else f"@r{self.radius}"
        return "".join((self.metric, at, *(f":{option}" for option in self.options)))


Values = Float64Array | pooled.Pooled
Compute = Callable[[TieProfile, MetricName], Values]


@dataclass(frozen=True, slots=True)
class Metric:
    """How a metric is computed, and what may follow in its name."""

    compute: Compute
    title: str
    cutoff: bool = False  # whether "@100" may follow
    radius: bool = False  # whether "@r2" may follow
    needs_place: bool = False  # whether one of the two must follow
    options: tuple[str, ...] = ()
    ranked: bool = True  # whether ties can be broken


def _at(function: Callable[..., Values], **options: float) -> Compute:
    """A metric at the name's cut-off or radius."""
    return lambda profile, name: function(profile, name.cutoff, name.radius, **options)


def _ap(profile: TieProfile, name: MetricName) -> Values:
    if not name.has("retrieved"):
        return precision.average_precision(break_ties(profile, name.tie_rule), name.cutoff)
    if name.tie_rule in ("optimistic", "pessimistic"):
        best = name.tie_rule == "optimistic"
        return precision.extreme_average_precision_of_retrieved(profile, name.cutoff, best)
    return precision.average_precision_of_retrieved(break_ties(profile, name.tie_rule), name.cutoff)


def _precision(profile: TieProfile, name: MetricName) -> Values:
    zero = name.has("empty-zero")
    return precision.precision(profile, name.cutoff, name.radius, empty_is_zero=zero)


def _macro_f(beta: float = 1.0) -> Compute:
    return lambda profile, name: pooled.macro_fbeta(
        profile, name.cutoff, name.radius, beta, name.has("empty-zero")
    )


def _placed(compute: Compute, title: str, *options: str) -> Metric:
    """A metric of the items that a cut-off or a radius retrieves."""
    return Metric(compute, title, cutoff=True, radius=True, needs_place=True, options=options)


def _accept(value: Any, title: str) -> Metric:
    """A Metric, or a function of a profile, and of a cut-off if it has that argument."""
    if isinstance(value, Metric):
        return replace(value, compute=_checked(value.compute, title))
    if not inspect.isfunction(value):
        raise InputError(f"{title}: must be a Metric or a function of a TieProfile, got {value!r}.")
    cutoff = inspect.signature(value).parameters.get("cutoff")
    summary = (value.__doc__ or value.__name__).strip().splitlines()[0].rstrip(".")
    if cutoff is None:
        return Metric(_checked(lambda profile, name: value(profile), title), summary)
    return Metric(
        _checked(lambda profile, name: value(profile, cutoff=name.cutoff), title),
        summary,
        cutoff=True,
        needs_place=cutoff.default is cutoff.empty,
    )


def _checked(compute: Compute, title: str) -> Compute:
    """The same, with one value for each query, or an error."""

    def checked(profile: TieProfile, name: MetricName) -> Values:
        found = compute(profile, name)
        if isinstance(found, pooled.Pooled):
            return found
        values = np.asarray(found)
        if values.shape != (profile.n_queries,) or values.dtype.kind not in "fiub":
            raise InputError(
                f"{title}: must return one number for each of {profile.n_queries} queries, "
                f"got {values.dtype} of shape {values.shape}."
            )
        return values.astype(np.float64)

    return checked


#: Every metric by its name; installed packages may add to it.
METRICS: OpenRegistry[Metric] = OpenRegistry(
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
        "micro-precision": _placed(_at(pooled.micro_precision), "micro precision"),
        "micro-recall": _placed(_at(pooled.micro_recall), "micro recall"),
        "micro-f1": _placed(_at(pooled.micro_fbeta), "micro F-measure"),
        "macro-f1": _placed(_macro_f(), "macro F-measure", "empty-zero"),
        "auprc": Metric(
            lambda p, m: pooled.auprc(p, m.has("trapezoid")),
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
    group="bittern.metrics",
    accept=_accept,
    pattern=r"[a-z]+(-[a-z]+)*",
)


def parse(name: str | MetricName) -> MetricName:
    """Parse a name and check it: the metric exists, and takes this cut-off, radius and options."""
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
    """The metric of a parsed name: one value per query, or a pooled one."""
    metric = _metric(name.metric)
    if name.tie_rule == DATABASE_ORDER:
        plain = replace(name, options=name.options[:-1])
        return _joined(metric.compute(part, plain) for part in profile.in_database_order())
    if name.metric != "ap":  # ap breaks ties itself
        profile = break_ties(profile, name.tie_rule)
    return metric.compute(profile, name)


def _joined(blocks: Iterable[Values]) -> Values:
    """The values of successive blocks of queries as those of all queries."""
    values: list[Float64Array] = []
    value_of_sums = None
    for block in blocks:
        if isinstance(block, pooled.Pooled):
            value_of_sums = block.value
            values.append(block.parts)
        else:
            values.append(block)
    joined = np.concatenate(values)
    return joined if value_of_sums is None else pooled.Pooled(joined, value_of_sums)


def can_break_ties(name: MetricName) -> bool:
    """Whether the value of this metric depends on the order of tied items."""
    return _metric(name.metric).ranked and name.radius is None


def break_ties(profile: TieProfile, rule: str | None) -> TieProfile:
    """The profile with its ties broken by a rule; unchanged if there is none.

    ``optimistic`` puts the larger gains of a tie first, ``pessimistic`` last: every column becomes
    one column per gain.  ``trec`` is the order of trec_eval, which profiles of TREC runs have.
    """
    if rule is None:
        return profile
    if rule == "trec":
        if profile.trec is None:
            raise InputError(
                "metrics: ':trec' needs document ids to break ties; it works on profiles made "
                "by TieProfile.from_trec()."
            )
        return profile.trec
    n_queries, n_columns, n_levels = profile.counts.shape
    order = range(n_levels - 1, -1, -1) if rule == "optimistic" else range(n_levels)
    split = np.zeros((n_queries, n_columns, n_levels, n_levels), profile.counts.dtype)
    for place, level in enumerate(order):
        split[:, :, place, level] = profile.counts[:, :, level]
    distances = profile.distances
    return replace(
        profile,
        counts=split.reshape(n_queries, n_columns * n_levels, n_levels),
        distances=None if distances is None else np.repeat(distances, n_levels, axis=1),
        trec=None,
        searched=None,
    )


def _metric(base: str) -> Metric:
    """The entry of the table, or an F-measure with another β."""
    match = re.fullmatch(r"(micro-|macro-)?f([0-9.]+)", base)
    if match is None or base in METRICS:
        return METRICS.find(base)
    beta = float(match[2])
    if not 0 < beta <= LARGEST_BETA:
        raise InputError(f"'{base}': β must be above 0 and at most {LARGEST_BETA:g}.")
    computes: dict[str | None, Compute] = {
        None: _at(precision.fbeta, beta=beta),
        "micro-": _at(pooled.micro_fbeta, beta=beta),
        "macro-": _macro_f(beta),
    }
    return replace(METRICS[f"{match[1] or ''}f1"], compute=computes[match[1]])


def _check_options(name: MetricName, metric: Metric) -> None:
    if name.has("empty-zero") and name.radius is None:
        raise InputError(f"'{name}': only a radius can be empty; 'empty-zero' goes with '@r2'.")
    if name.tie_rule and not can_break_ties(name):
        raise InputError(
            f"'{name}': whole ties are retrieved here, so their order does not matter; "
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
        raise InputError(f"'{name}': each option may come once, the rule for ties last.")
