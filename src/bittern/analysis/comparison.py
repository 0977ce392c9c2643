"""Paired tests of every method against a baseline, and the verdicts they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan

import numpy as np
from numpy.typing import NDArray

from bittern.analysis.summary import check_metric, mean_of, mean_spread
from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.experiments.record import Record
from bittern.experiments.records import Records
from bittern.metrics.significance import (
    Significance,
    holm,
    paired_t_test,
    randomisation_tests,
    wilcoxon,
)

Spread = tuple[float, float] | None
_Sides = tuple[Float64Array, Float64Array]
DRAWS = 10_000  # of the randomisation test, so that no p is below 1 in 10,001
NAMES = {
    "wilcoxon": "Wilcoxon over runs",
    "t-test": "t over queries",
    "randomisation": "randomisation over queries",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A method against the baseline, over the ``n_runs`` runs that both have.

    ``difference`` is the mean over these runs of the method's value minus the baseline's.
    ``p_values`` has the two-sided p of each test, Holm-corrected over the methods compared; NaN
    if a test was impossible.  Of the queries of all runs, ``n_queries`` pairs were tested and
    ``left_out`` more were undefined for one of the two.  ``unable`` names the tests with too few
    pairs to be significant, whatever the values.

    ``within_tie_spread`` is True if the mean of one of the two lies between the pessimistic and
    the optimistic mean of the other: another order of tied items, in that method alone, could
    reverse the difference.
    """

    method: str
    baseline: str
    difference: float
    p_values: dict[str, float]
    is_significant: dict[str, bool]
    within_tie_spread: bool
    n_runs: int = 0
    n_queries: int = 0
    left_out: int = 0
    unable: tuple[str, ...] = ()

    @property
    def is_different(self) -> bool:
        """Whether every test with enough pairs is significant, and there is such a test."""
        able = [self.is_significant[test] for test in self.p_values if test not in self.unable]
        return bool(able) and all(able)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if isnan(self.difference):
            return f"{self.method} and {self.baseline} cannot be compared: no run has both values."
        way = "above" if self.difference > 0 else "below"
        apart = f"{abs(self.difference):.4f} {way}" if self.difference else "level with"
        sentence = f"{self.method} is {apart} {self.baseline}: {self._tests()}"
        if self.within_tie_spread:
            sentence += "; another order of tied items could reverse it"
        return f"{sentence}."

    def _tests(self) -> str:
        """Which tests are significant, which are not, and which have too few pairs."""
        with_p = {test: p for test, p in self.p_values.items() if not isnan(p)}
        by_outcome = {
            "significant by": [t for t in with_p if self.is_significant[t]],
            "not significant by": [
                t for t in with_p if not self.is_significant[t] and t not in self.unable
            ],
        }
        parts = [
            f"{how} {_listed([f'{NAMES[t]} ({_p(with_p[t])})' for t in tests])}"
            for how, tests in by_outcome.items()
            if tests
        ]
        if few := [NAMES[test] for test in with_p if test in self.unable]:
            parts.append(f"too few pairs for {_listed(few)}")
        return "; ".join(parts) or "nothing to test"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdict on every method but the baseline at one length, in the protocol's order."""

    metric: str
    n_bits: int | None
    baseline: str
    alpha: float
    tests: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()
    baseline_asked: str | None = None  # the protocol's

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def of(self, method: str) -> Verdict | None:
        """The verdict on a method; None for the baseline and for unknown methods."""
        return next((one for one in self.verdicts if one.method == method), None)

    @property
    def note(self) -> str:
        """The baseline, the correction and the level, in a sentence or two."""
        if not self.verdicts:
            return f"{self.baseline} has nothing to be compared with."
        n = len(self.verdicts)
        whose = "the protocol's baseline" if self._has_asked else f"the best by {self.metric}"
        over = f", Holm-corrected over {n} comparisons" if n > 1 else ""
        note = f"Compared with {self.baseline}, {whose}; two-sided{over}, α = {self.alpha:g}."
        return " ".join([note, *self.cautions])

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the tests cannot do that the protocol asks for; usually empty."""
        cautions = []
        if self.baseline_asked is not None and not self._has_asked:
            cautions.append(
                f"The protocol's baseline, {self.baseline_asked}, has no records at this length."
            )
        if self.verdicts and all("wilcoxon" in one.unable for one in self.verdicts):
            n_runs = max(one.n_runs for one in self.verdicts)
            cautions.append(_too_few_runs(n_runs, len(self.verdicts)))
        return tuple(cautions)

    @property
    def _has_asked(self) -> bool:
        return self.baseline == self.baseline_asked


def compare_methods(records: Records, metric: str, n_bits: int | None = None) -> Verdicts:
    r"""Compare every method at one length with the baseline, by the protocol's paired tests.

    The baseline is the protocol's.  If the protocol names none, or it has no records at this
    length, the baseline is the method with the highest mean; a method without codes only if no
    method has codes, and never a bound that has seen the judgements.  Methods without codes are
    compared at every length.

    ``wilcoxon`` pairs the means of each run that both methods have; with n runs its smallest
    two-sided p is :math:`2^{1-n}`.  Identical runs count as one.  ``t-test`` and
    ``randomisation`` pair the values of each query, averaged over the runs that contain it.  A
    metric with one value for all queries has only the first test.  Each test is Holm-corrected
    over the methods compared.
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
    """Paired values of a method and the baseline: by run, and by query."""

    runs: tuple[Float64Array, Float64Array]
    queries: tuple[Float64Array, Float64Array]
    spreads: tuple[Spread, Spread]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The corrected outcome of one test of one method."""

    p_value: float
    is_significant: bool
    is_unable: bool


@dataclass(frozen=True, slots=True)
class _Test:
    """A paired test of several methods, the values it pairs, and the smallest p of n pairs."""

    run: Callable[[Sequence[_Sides], int], list[Significance]]
    values: Callable[[_Pairs], _Sides]
    least_p: Callable[[int], float]


# Of all 2^n flips of signs, the most extreme and its opposite always count: p >= 2^(1 - n).
TESTS = {
    "wilcoxon": _Test(
        lambda sides, state: [wilcoxon(a, b) for a, b in sides],
        lambda pairs: pairs.runs,
        lambda n: 2.0 ** (1 - n),
    ),
    "t-test": _Test(
        lambda sides, state: [paired_t_test(a, b) for a, b in sides],
        lambda pairs: pairs.queries,
        lambda n: 0.0,
    ),
    "randomisation": _Test(
        lambda sides, state: randomisation_tests(sides, n_draws=DRAWS, random_state=state),
        lambda pairs: pairs.queries,
        lambda n: max(2.0 ** (1 - n), 1 / (DRAWS + 1)),
    ),
}


def _baseline(records: Records, metric: str, n_bits: int | None, methods: list[str]) -> str:
    wanted = records.protocol.significance.baseline
    if wanted in methods:
        return wanted
    fair = [m for m in methods if m not in records.bounds] or methods
    coded = [m for m in fair if records.of(m, n_bits)[0].n_bits is not None] or fair
    means = {method: mean_of(records.over_runs(method, n_bits, metric)) for method in coded}
    return max(coded, key=lambda method: -inf if isnan(means[method]) else means[method])


def _side_by_side(
    records: Records, metric: str, n_bits: int | None, method: str, baseline: str
) -> _Pairs:
    """The runs that both have, paired."""
    other = {record.run: record for record in records.of(baseline, n_bits)}
    first = [record for record in records.of(method, n_bits) if record.run in other]
    second = [other[record.run] for record in first]
    aligned = [_aligned(a, b, metric) for a, b in zip(first, second, strict=True)]
    if not records.protocol.kind.queries_are_items:  # each run numbers its own queries
        aligned = [(keys + (i << 32), a, b) for i, (keys, a, b) in enumerate(aligned)]
    return _Pairs(
        runs=_different_runs(_means(first, metric), _means(second, metric)),
        queries=_one_a_query(*(np.concatenate(part) for part in zip(*aligned, strict=True)))
        if aligned
        else (np.empty(0), np.empty(0)),
        spreads=(_spread(first, metric), _spread(second, metric)),
    )


def _different_runs(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Only the first run if all are equal: a fixed split and deterministic methods."""
    is_one = len(a) > 1 and (a == a[0]).all() and (b == b[0]).all()
    return (a[:1], b[:1]) if is_one else (a, b)


def _one_a_query(
    keys: NDArray[np.int64], a: Float64Array, b: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The mean of each query over the runs where both are defined; NaN if there are none."""
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
    """The queries that both have, and their values; empty without values per query."""
    a, b = (r.per_query(metric) if metric in r.values else None for r in (one, two))
    if a is None or b is None:
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    if one.query_positions == two.query_positions:
        return np.array(one.query_positions, np.int64), a, b
    positions, left, right = np.intersect1d(
        one.query_positions, two.query_positions, assume_unique=True, return_indices=True
    )
    return positions.astype(np.int64), a[left], b[right]


def _family(
    name: str, all_pairs: Sequence[_Pairs], alpha: float, random_state: int
) -> list[_Outcome]:
    """One test of every method, Holm-corrected over all of them."""
    test = TESTS[name]
    sides = [test.values(pairs) for pairs in all_pairs]
    sizes = [_n_defined(*pair) for pair in sides]
    tested = [i for i, n in enumerate(sizes) if n > 1]
    p_values = np.full(len(sides), nan)
    p_values[tested] = [one.p_value for one in test.run([sides[i] for i in tested], random_state)]
    correction = holm(p_values, alpha)
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


def _too_few_runs(n_runs: int, n_comparisons: int) -> str:
    if n_runs < 2:
        return "Wilcoxon's test needs at least two runs with different values."
    least = 2.0 ** (1 - n_runs)
    corrected = f", {min(1, n_comparisons * least):.3g} corrected" if n_comparisons > 1 else ""
    return (
        f"{n_runs} runs are too few for Wilcoxon's test: its smallest p is {least:.3g}{corrected}."
    )


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
