"""Two experiments compared: what changes with the split, the features or the ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from bittern.analysis.analysis import Analysis, analyse
from bittern.analysis.summary import (
    check_metric,
    keys_of,
    mean_of,
    student_interval,
)
from bittern.errors import InputError, UnknownNameError
from bittern.experiments.records import Records
from bittern.metrics.significance import holm, wilcoxon
from bittern.moved import renamed

FEWEST = 2  # runs of a test


@dataclass(frozen=True, slots=True)
class Difference:
    """A method at a length in both experiments: means over the ``n_runs`` runs that both have.

    ``interval`` is Student's 95 % interval of the difference, second minus first, run by run;
    ``p_value`` is Wilcoxon's, Holm-corrected over all rows; both are NaN for one run.
    """

    method: str
    n_bits: int | None
    first: float
    second: float
    interval: tuple[float, float]
    p_value: float
    n_runs: int

    @property
    def difference(self) -> float:
        """The second mean minus the first."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class Differences:
    """Every method and length that two experiments share.

    ``same_queries`` is True if each run has the same queries in both.  ``tasks`` are those that the
    values of each experiment are of, if it has several.
    """

    titles: tuple[str, str]
    metric: str
    rows: tuple[Difference, ...]
    same_queries: bool
    alpha: float
    tasks: tuple[str, str] = ("", "")

    @property
    def least_p(self) -> float:
        """The smallest corrected p that Wilcoxon's test can give with this number of runs."""
        n_runs = max(row.n_runs for row in self.rows)
        return min(1.0, len(self.rows) * 2.0 ** (1 - n_runs))

    @property
    def n_significant(self) -> int:
        """How many differences are significant by Wilcoxon's corrected test."""
        return sum(row.p_value <= self.alpha for row in self.rows)


@renamed(one="first", two="second")
def compare_experiments(
    first: Records | Analysis, second: Records | Analysis, metric: str | None = None
) -> Differences:
    """Pair the runs of two experiments, method by method and length by length."""
    one, two = analyse(first).records, analyse(second).records
    metric = metric or one.protocol.main_metric
    check_both(one, two, metric)
    shared = [key for key in keys_of(one) if key in set(keys_of(two))]
    if not shared:
        raise InputError(
            "compare: the experiments share no method at any length; "
            f"the first has {', '.join(one.methods)}, the second {', '.join(two.methods)}."
        )
    pairs = [_paired(one, two, metric, *key) for key in shared]
    tested = [_p_value(a, b) for a, b in pairs]
    alpha = one.protocol.significance.alpha
    corrected = holm(np.array(tested), alpha).adjusted
    rows = [
        Difference(
            *key,
            first=mean_of(a),
            second=mean_of(b),
            interval=student_interval((b - a).tolist()),
            p_value=float(p),
            n_runs=len(a),
        )
        for key, (a, b), p in zip(shared, pairs, corrected, strict=True)
    ]
    titles = one.protocol.title, two.protocol.title
    tasks = one.task_text, two.task_text
    return Differences(titles, metric, tuple(rows), _have_same_queries(one, two), alpha, tasks)


def compare_tasks(
    first: Records | Analysis, second: Records | Analysis, metric: str | None = None
) -> list[Differences]:
    """The two experiments as a whole, and in each task that both have, if there are several."""
    one, two = analyse(first), analyse(second)
    shared = [task for task in one.tasks if task in two.tasks]
    return [
        compare_experiments(one, two, metric),
        *(compare_experiments(one.tasks[task], two.tasks[task], metric) for task in shared),
    ]


def check_both(first: Records, second: Records, metric: str) -> None:
    """Raise UnknownNameError if one of two experiments lacks a metric."""
    for records, which in ((first, "first"), (second, "second")):
        try:
            check_metric(records, metric)
        except UnknownNameError as error:
            raise UnknownNameError(f"compare: in the {which} experiment, {error}") from None


def _paired(
    one: Records, two: Records, metric: str, method: str, n_bits: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The means of the runs where both have a value."""
    first, second = (
        {r.run: r.values[metric].mean for r in records.of(method, n_bits) if metric in r.values}
        for records in (one, two)
    )
    runs = [run for run in first if run in second and not (isnan(first[run]) or isnan(second[run]))]
    return np.array([first[run] for run in runs]), np.array([second[run] for run in runs])


def _p_value(a: np.ndarray, b: np.ndarray) -> float:
    return wilcoxon(a, b).p_value if len(a) >= FEWEST else nan


def _have_same_queries(one: Records, two: Records) -> bool:
    """Whether runs have the same query positions, in the same data if both name it."""
    queries = [{r.run: r.query_positions for r in records} for records in (one, two)]
    data = [{r.split["data"] for r in records if "data" in r.split} for records in (one, two)]
    is_other = all(data) and data[0] != data[1]
    shared = queries[0].keys() & queries[1].keys()
    return not is_other and all(queries[0][run] == queries[1][run] for run in shared)
