"""Areas against means: whether AUPRC and mAP rank methods alike, and why not.

Kendall's tau is computed here because SciPy's divides by two roots, so equal orders may not give 1.
"""

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

AREA, MEAN = "auprc", "ap"
NEGLIGIBLE = 0.001  # difference between AUPRC and mAP
EVEN = 0.1  # coefficient of variation below which queries have about equally many relevant items


@dataclass(frozen=True, slots=True)
class AreaAndMean:
    """Area under the micro curve and mean average precision of a method, each a mean over runs."""

    method: str
    n_bits: int | None  # None without codes
    auprc: float
    ap: float

    @property
    def gap(self) -> float:
        """AUPRC minus mAP; NaN if either is."""
        return self.auprc - self.ap


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly relevant items are spread over the queries of all runs.

    ``variation`` is the deviation divided by the mean, ``skewness`` the third standardised
    moment, both of the population of queries; NaN if the divisor is zero.  ``without`` is the
    share of queries without relevant items.
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
    """Both values of each method and length, and how well the two rankings agree.

    ``tau`` has Kendall's rank correlation of the methods at each length, methods without codes
    included; 1 if AUPRC and mAP rank them alike.
    """

    rows: tuple[AreaAndMean, ...]
    tau: dict[int | None, float]
    skew: Skew

    @property
    def widest(self) -> AreaAndMean | None:
        """The method and length with the largest gap, up or down; None if none has both values."""
        known = [row for row in self.rows if row.gap == row.gap]
        return max(known, key=lambda row: abs(row.gap)) if known else None

    @property
    def sentence(self) -> str:
        """The agreement and the skew, in words."""
        known = {n: tau for n, tau in self.tau.items() if tau == tau}
        if not known:
            return "AUPRC and mAP cannot be compared: fewer than two methods have both."
        differ = [n for n, tau in known.items() if tau < 1]
        agree = "rank the methods alike at every length"
        if differ:
            taus = ", ".join(f"{_at(n)}τ = {known[n]:.2f}" for n in differ)
            agree = f"rank the methods differently ({taus})"
        return f"AUPRC and mAP {agree}. {self._gap()}{self._skew()}{self._cause()}"

    def _gap(self) -> str:
        """How far apart the two values are."""
        widest = self.widest
        if widest is None:
            return ""
        if abs(widest.gap) < NEGLIGIBLE:
            return f"Their values differ by less than {NEGLIGIBLE:g}. "
        way = "above" if widest.gap > 0 else "below"
        bits = "" if widest.n_bits is None else f" at {widest.n_bits} bits"
        return (
            f"Their values differ most for {widest.method}{bits}: "
            f"AUPRC is {abs(widest.gap):.4f} {way} mAP. "
        )

    def _skew(self) -> str:
        skew = self.skew
        if not skew.n_queries:
            return "The number of relevant items per query is unknown."
        if skew.least == skew.most:
            return f"Every query has {skew.most:,.0f} relevant item{'s' * (skew.most != 1)}."
        return (
            f"Queries have {skew.least:,.0f} to {skew.most:,.0f} relevant items, "
            f"median {skew.median:,.0f}, coefficient of variation {skew.variation:.2f}."
        )

    def _cause(self) -> str:
        """Whether skew can be why the values differ, as 3.6.5 of [Moran-2016] says."""
        skew, widest = self.skew, self.widest
        is_even = skew.least == skew.most or skew.variation < EVEN
        if not skew.n_queries or widest is None or abs(widest.gap) < NEGLIGIBLE or not is_even:
            return ""
        return (
            " So skew, the only reason that section 3.6.5 of [Moran-2016] gives, is not the reason "
            "here: AUPRC pools all queries at each distance, and their relevant items lie at "
            "different distances."
        )


def areas_against_means(records: Records) -> AreasAgainstMeans:
    """Compare AUPRC, a micro-average, with mAP, where each query has the same weight.

    According to 3.6.5 of [Moran-2016] the two differ only if the number of relevant items is
    skewed over queries, so the skew is measured too.  They also differ without skew: a threshold on
    the distance cuts the ranking of each query at another place.

    A metric that the protocol does not list is computed from the profiles; NaN for rankings by real
    distances, which have no profile.
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
    """Each run counts once: its methods share the queries."""
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
