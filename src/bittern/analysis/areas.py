"""Areas against means: whether AUPRC and mAP order methods alike, and what sets them apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from bittern.analysis.summary import keys_of, mean_of
from bittern.experiments.record import Record
from bittern.experiments.records import Records
from bittern.metrics import evaluate

__all__ = ["AreaAndMean", "AreasAgainstMeans", "Skew", "areas_against_means", "kendall_tau"]

AREA, MEAN = "auprc", "ap"


@dataclass(frozen=True, slots=True)
class AreaAndMean:
    """Area under the micro curve and mean average precision of a method, each a mean over runs."""

    method: str
    n_bits: int | None  # None without codes
    auprc: float
    ap: float


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly relevant items are spread over the queries of all runs.

    ``variation`` is the deviation over the mean and ``skewness`` the third moment of what is left
    when mean and deviation are taken away, both of the population of queries; NaN where there is
    no deviation to divide by, or no mean.  ``without`` is the share of queries that have none.
    """

    n_queries: int
    mean: float
    variation: float
    skewness: float
    least: float
    median: float
    most: float
    without: float


@dataclass(frozen=True, slots=True)
class AreasAgainstMeans:
    """Both values of each method and length, with the agreement of the two orders.

    ``tau`` has Kendall's rank correlation of the methods at each length, methods without codes
    among them at every one; 1 if AUPRC and mAP order them alike.
    """

    rows: tuple[AreaAndMean, ...]
    tau: dict[int | None, float]
    skew: Skew

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        known = {n: tau for n, tau in self.tau.items() if tau == tau}
        if not known:
            return "AUPRC and mAP cannot be compared: there are fewer than two methods with both."
        differ = [n for n, tau in known.items() if tau < 1]
        agree = "order the methods alike at every length"
        if differ:
            told = ", ".join(f"{_at(n)}τ = {known[n]:.2f}" for n in differ)
            agree = f"order the methods differently ({told})"
        return f"AUPRC and mAP {agree}. {self._skew()}"

    def _skew(self) -> str:
        skew = self.skew
        if not skew.n_queries:
            return "The number of relevant items a query is not known."
        return (
            f"Queries have {skew.least:,.0f} to {skew.most:,.0f} relevant items, "
            f"{skew.median:,.0f} in the median, with a coefficient of variation of "
            f"{skew.variation:.2f}; the two measures part where this is large."
        )


def areas_against_means(records: Records) -> AreasAgainstMeans:
    """Set AUPRC, a micro-average, beside mAP, where each query counts the same.

    The two differ only where the number of relevant items is skewed over queries (3.6.5 of
    [Moran-2016]), so that is measured too.  What the protocol did not list follows from the
    profiles; a ranking by real distances has none, and then NaN.
    """
    rows = tuple(
        AreaAndMean(method, n_bits, *(_mean(records.of(method, n_bits), m) for m in (AREA, MEAN)))
        for method, n_bits in keys_of(records)
    )
    lengths: tuple[int | None, ...] = records.lengths or (None,)
    return AreasAgainstMeans(rows, {n: _tau_at(rows, n) for n in lengths}, _skew_of(records))


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    r"""Kendall's rank correlation :math:`\tau_b`, pairs with a NaN left out.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(P - T_a)(P - T_b)}}

    for C pairs in the same order and D in the opposite one, of P pairs, of which :math:`T_a` and
    :math:`T_b` are tied in a and in b.  NaN if all are tied in one.  Reference: [Kendall-1945].
    """
    x, y = np.asarray(a, float), np.asarray(b, float)
    defined = ~(np.isnan(x) | np.isnan(y))
    points = list(zip(x[defined].tolist(), y[defined].tolist(), strict=True))
    signs = [(_sign(p[0] - q[0]), _sign(p[1] - q[1])) for p, q in combinations(points, 2)]
    untied_a, untied_b = (sum(s[side] != 0 for s in signs) for side in (0, 1))
    if not untied_a or not untied_b:
        return nan
    return sum(one * two for one, two in signs) / sqrt(untied_a * untied_b)


def _mean(found: tuple[Record, ...], metric: str) -> float:
    return mean_of([_value(record, metric) for record in found])


def _value(record: Record, metric: str) -> float:
    if metric in record.values:
        return record.values[metric].mean
    if record.profile is None:
        return nan
    return evaluate(record.profile, [metric])[metric].mean


def _tau_at(rows: tuple[AreaAndMean, ...], n_bits: int | None) -> float:
    here = [row for row in rows if row.n_bits in (n_bits, None)]
    return kendall_tau([row.auprc for row in here], [row.ap for row in here])


def _skew_of(records: Records) -> Skew:
    """Of each run once: methods share its queries."""
    runs = {record.run: record.n_relevant for record in records}
    counts = np.array([n for of_run in runs.values() for n in of_run], dtype=np.float64)
    if not len(counts):
        return Skew(0, nan, nan, nan, nan, nan, nan, nan)
    mean, deviation = float(counts.mean()), float(counts.std())
    return Skew(
        n_queries=len(counts),
        mean=mean,
        variation=deviation / mean if mean else nan,
        skewness=float((((counts - mean) / deviation) ** 3).mean()) if deviation else nan,
        least=float(counts.min()),
        median=float(np.median(counts)),
        most=float(counts.max()),
        without=float((counts == 0).mean()),
    )


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _at(n_bits: int | None) -> str:
    return "" if n_bits is None else f"{n_bits} bits: "
