"""Paired tests of every method against a baseline, each family corrected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isnan, nan

import numpy as np
from numpy.typing import NDArray

from bittern.analysis.summary import check_metric, mean_of, mean_spread
from bittern.analysis.verdicts import Verdict, Verdicts
from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.experiments.record import Record
from bittern.experiments.records import Records
from bittern.metrics.significance import (
    Significance,
    holm,
    paired_t_test,
    randomisation_test,
    wilcoxon,
)

__all__ = ["compare_methods"]

Spread = tuple[float, float] | None
DRAWS = 10_000  # of the randomisation test, so that no p is below 1 in 10,001


@lru_cache(maxsize=32)  # a page asks for it in several places
def compare_methods(records: Records, metric: str, n_bits: int | None = None) -> Verdicts:
    r"""Compare every method at one length with the baseline, by the protocol's paired tests.

    The baseline is the protocol's; where it names none, or that one has no records at this length,
    the method with the highest mean, those without codes only if there are no others, bounds that
    have seen the judgements never.  Methods
    without codes are compared at every length.

    ``wilcoxon`` pairs the means of each run that both methods have; with n runs its smallest
    two-sided p is :math:`2^{1-n}`.  Runs that only repeat one another are one run.  ``t-test`` and
    ``randomisation`` pair the values of each query, averaged over the runs that ask it.  A metric
    with one value for all queries has the first test alone.  Each test is corrected by Holm over
    the methods compared.
    """
    check_metric(records, metric)
    methods = [method for method in records.methods if records.of(method, n_bits)]
    if not methods:
        known = ", ".join(map(str, records.lengths)) or "no codes"
        raise InputError(f"compare_methods: no records at {n_bits} bits; there are {known}.")
    rules = records.protocol.significance
    baseline = _baseline(records, metric, n_bits, methods)
    others = [method for method in methods if method != baseline]
    pairs = [_side_by_side(records, metric, n_bits, method, baseline) for method in others]
    state = records.protocol.random_state
    families = {test: _family(test, pairs, rules.alpha, state) for test in rules.tests}
    return Verdicts(
        metric=metric,
        n_bits=n_bits,
        baseline=baseline,
        alpha=rules.alpha,
        tests=rules.tests,
        verdicts=tuple(
            _verdict(method, baseline, pairs[i], {t: family[i] for t, family in families.items()})
            for i, method in enumerate(others)
        ),
        baseline_asked=rules.baseline,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Values of a method and of the baseline, side by side: run by run, and query by query."""

    runs: tuple[Float64Array, Float64Array]
    queries: tuple[Float64Array, Float64Array]
    spreads: tuple[Spread, Spread]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One test of one method, corrected."""

    p_value: float
    is_significant: bool
    is_unable: bool


@dataclass(frozen=True, slots=True)
class _Test:
    """A paired test, of runs or of queries, and the smallest p that n pairs can give."""

    run: Callable[[Float64Array, Float64Array, int], Significance]
    values: Callable[[_Pairs], tuple[Float64Array, Float64Array]]
    least_p: Callable[[int], float]


# Where signs are flipped, the most extreme of all 2^n ways and its opposite are counted.
TESTS = {
    "wilcoxon": _Test(
        lambda a, b, state: wilcoxon(a, b), lambda pairs: pairs.runs, lambda n: 2.0 ** (1 - n)
    ),
    "t-test": _Test(
        lambda a, b, state: paired_t_test(a, b), lambda pairs: pairs.queries, lambda n: 0.0
    ),
    "randomisation": _Test(
        lambda a, b, state: randomisation_test(a, b, n_draws=DRAWS, random_state=state),
        lambda pairs: pairs.queries,
        lambda n: max(2.0 ** (1 - n), 1 / (DRAWS + 1)),
    ),
}


def _baseline(records: Records, metric: str, n_bits: int | None, methods: list[str]) -> str:
    asked = records.protocol.significance.baseline
    if asked in methods:
        return asked
    fair = [m for m in methods if m not in records.bounds] or methods
    coded = [m for m in fair if records.of(m, n_bits)[0].n_bits is not None] or fair
    means = {method: mean_of(records.over_runs(method, n_bits, metric)) for method in coded}
    return max(coded, key=lambda method: -inf if isnan(means[method]) else means[method])


def _side_by_side(
    records: Records, metric: str, n_bits: int | None, method: str, baseline: str
) -> _Pairs:
    """The runs that both have."""
    other = {record.run: record for record in records.of(baseline, n_bits)}
    first = [record for record in records.of(method, n_bits) if record.run in other]
    second = [other[record.run] for record in first]
    aligned = [_aligned(a, b, metric) for a, b in zip(first, second, strict=True)]
    if records.protocol.paradigm == "evidence":  # whose positions only number a run's queries
        aligned = [(keys + (i << 32), a, b) for i, (keys, a, b) in enumerate(aligned)]
    return _Pairs(
        runs=_different_runs(_means(first, metric), _means(second, metric)),
        queries=_one_a_query(*(np.concatenate(part) for part in zip(*aligned, strict=True)))
        if aligned
        else (np.empty(0), np.empty(0)),
        spreads=(_spread(first, metric), _spread(second, metric)),
    )


def _different_runs(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """One run where all are the same: a split that does not change, and methods without chance."""
    is_one = len(a) > 1 and (a == a[0]).all() and (b == b[0]).all()
    return (a[:1], b[:1]) if is_one else (a, b)


def _one_a_query(
    keys: NDArray[np.int64], a: Float64Array, b: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The mean of each query over the runs in which both have a value; NaN if there is none."""
    both = ~(np.isnan(a) | np.isnan(b))
    _, query = np.unique(keys, return_inverse=True)
    n = query.max(initial=-1) + 1
    times = np.bincount(query[both], minlength=n)
    means = (
        np.bincount(query[both], values[both], minlength=n) / np.where(times, times, nan)
        for values in (a, b)
    )
    first, second = means
    return first, second


def _aligned(
    one: Record, two: Record, metric: str
) -> tuple[NDArray[np.int64], Float64Array, Float64Array]:
    """The queries that both have, and their values; none if one has no value a query."""
    a, b = (r.per_query(metric) if metric in r.values else None for r in (one, two))
    if a is None or b is None:
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    asked, left, right = np.intersect1d(
        one.query_positions, two.query_positions, assume_unique=True, return_indices=True
    )
    return asked.astype(np.int64), a[left], b[right]


def _family(
    name: str, all_pairs: Sequence[_Pairs], alpha: float, random_state: int
) -> list[_Outcome]:
    """One test of every method, corrected over all of them."""
    test = TESTS[name]
    sides = [test.values(pairs) for pairs in all_pairs]
    sizes = [_n_defined(*two) for two in sides]
    p_values = [
        test.run(*two, random_state).p_value if n > 1 else nan
        for n, two in zip(sizes, sides, strict=True)
    ]
    correction = holm(np.array(p_values, dtype=np.float64), alpha)
    return [
        _Outcome(float(p), bool(found), n < 2 or correction.n * test.least_p(n) > alpha)
        for p, found, n in zip(correction.adjusted, correction.significant, sizes, strict=True)
    ]


def _verdict(method: str, baseline: str, pairs: _Pairs, tests: dict[str, _Outcome]) -> Verdict:
    n_queries = _n_defined(*pairs.queries)
    return Verdict(
        method=method,
        baseline=baseline,
        difference=mean_of(pairs.runs[0] - pairs.runs[1]),
        p_values={name: test.p_value for name, test in tests.items()},
        is_significant={name: test.is_significant for name, test in tests.items()},
        within_tie_spread=_is_inside(pairs),
        n_runs=_n_defined(*pairs.runs),
        n_queries=n_queries,
        left_out=len(pairs.queries[0]) - n_queries,
        unable=tuple(name for name, test in tests.items() if test.is_unable),
    )


def _is_inside(pairs: _Pairs) -> bool:
    """Whether the mean of one lies inside the spread of the other."""
    of_other = [mean_of(side) for side in reversed(pairs.runs)]
    return any(
        spread is not None and spread[0] < mean < spread[1]
        for spread, mean in zip(pairs.spreads, of_other, strict=True)
    )


def _means(found: list[Record], metric: str) -> Float64Array:
    return np.array([r.values[metric].mean if metric in r.values else nan for r in found], float)


def _spread(found: list[Record], metric: str) -> Spread:
    return mean_spread([record.values.get(metric) for record in found])


def _n_defined(a: Float64Array, b: Float64Array) -> int:
    return int((~(np.isnan(a) | np.isnan(b))).sum())
