"""Rankings of methods: whether two experiments put the methods in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import isnan

from bittern.analysis.areas import kendall_tau
from bittern.analysis.differences import check_both
from bittern.analysis.summary import keys_of, mean_of
from bittern.errors import InputError
from bittern.experiments.records import Records


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """How alike two experiments rank the methods that both have, at one length.

    ``tau`` is Kendall's rank correlation of the means over runs, ``tau_of_runs`` that of each run;
    1 is the same order and -1 the opposite one.  ``swapped`` are the pairs of methods whose order
    differs, the first experiment's better one first.
    """

    n_bits: int | None
    methods: tuple[str, ...]
    tau: float
    tau_of_runs: tuple[float, ...]
    swapped: tuple[tuple[str, str], ...]


def rank_agreement(
    first: Records, second: Records, metric: str | None = None
) -> tuple[RankAgreement, ...]:
    """Compare the orders of the methods by a metric (the first's main one), length by length."""
    metric = metric or first.protocol.main_metric
    check_both(first, second, metric)
    shared = set(keys_of(first)) & set(keys_of(second))
    if len({method for method, _ in shared}) < 2:
        raise InputError("rank_agreement: the experiments share fewer than two methods.")
    lengths: list[int | None] = [*sorted({n for _, n in shared if n is not None})] or [None]
    return tuple(_agreement(first, second, metric, n_bits) for n_bits in lengths)


def _agreement(first: Records, second: Records, metric: str, n_bits: int | None) -> RankAgreement:
    methods = tuple(
        method for method in first.methods if first.of(method, n_bits) and second.of(method, n_bits)
    )
    runs = [
        {method: _runs(records, method, n_bits, metric) for method in methods}
        for records in (first, second)
    ]
    one, two = ({m: mean_of(list(of.values())) for m, of in side.items()} for side in runs)
    kept = sorted(set.intersection(*(set(of) for side in runs for of in side.values())))
    taus = [kendall_tau(*([side[m][run] for m in methods] for side in runs)) for run in kept]
    tau = kendall_tau(list(one.values()), list(two.values()))
    return RankAgreement(n_bits, methods, tau, tuple(taus), _swapped(one, two))


def _runs(records: Records, method: str, n_bits: int | None, metric: str) -> dict[int, float]:
    """The mean of a metric in each run that has one."""
    found = records.of(method, n_bits)
    return {one.run: one.values[metric].mean for one in found if metric in one.values}


def _swapped(one: dict[str, float], two: dict[str, float]) -> tuple[tuple[str, str], ...]:
    ordered = sorted((m for m in one if not isnan(one[m])), key=lambda m: -one[m])
    return tuple(
        (better, worse)
        for better, worse in combinations(ordered, 2)
        if one[better] > one[worse] and two[better] < two[worse]
    )
