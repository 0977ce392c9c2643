"""Analysis: everything that reports show, each part computed once, on first use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from bittern.analysis.areas import AreasAgainstMeans, areas_against_means
from bittern.analysis.boxes import Box, box_of
from bittern.analysis.comparison import Verdicts, compare_methods
from bittern.analysis.curves import (
    Surface,
    Sweep,
    Training,
    mean_curve,
    mean_surface,
    sweep_of,
    trainings_of,
)
from bittern.analysis.search import SearchOutcome, search_outcomes
from bittern.analysis.summary import (
    ClassMeans,
    Cost,
    Leader,
    Summary,
    best_of,
    costs,
    leaders_of,
    n_values,
    per_class,
    summarise,
)
from bittern.experiments.paradigm import Task
from bittern.experiments.protocol import Protocol
from bittern.experiments.records import Records
from bittern.metrics import Curve

RUNS_OF_A_BOX = 10

Result = TypeVar("Result")


def analyse(records: Records | Analysis) -> Analysis:
    """The analysis of the records; an analysis is returned as it is."""
    return records if isinstance(records, Analysis) else Analysis(records)


@dataclass(frozen=True, eq=False)
class Analysis:
    """The records of an experiment with their statistics.

    ``metric`` is the protocol's main metric wherever it is omitted.
    """

    records: Records
    _results: dict[Hashable, Any] = field(default_factory=dict, repr=False, init=False)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return repr(self.records)

    @property
    def protocol(self) -> Protocol:
        """The protocol of the records."""
        return self.records.protocol

    @property
    def main_metric(self) -> str:
        """The metric by which methods are compared."""
        return self.protocol.main_metric

    @cached_property
    def tasks(self) -> dict[Task, Analysis]:
        """The analysis of each task, if the paradigm has several."""
        return {task: Analysis(self.records.of_task(task)) for task in self.records.tasks}

    @property
    def main_tasks(self) -> dict[Task, Analysis]:
        """Those whose mean the values of the records are."""
        return {task: one for task, one in self.tasks.items() if task.is_main}

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Methods with records, in the protocol's order."""
        return self.records.methods

    @cached_property
    def coded(self) -> tuple[str, ...]:
        """Methods with codes."""
        with_codes = {record.method for record in self.records if record.n_bits is not None}
        return tuple(method for method in self.methods if method in with_codes)

    @cached_property
    def uncoded(self) -> tuple[str, ...]:
        """Methods without codes; their values are the same at every length."""
        return tuple(method for method in self.methods if method not in self.coded)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Code lengths with records, ascending."""
        return self.records.lengths

    @property
    def columns(self) -> tuple[int | None, ...]:
        """The code lengths; a single None if no method has codes."""
        return self.lengths or (None,)

    def summaries(self, metric: str | None = None) -> tuple[Summary, ...]:
        """Mean, deviation, interval and tie spread of each method at each length."""
        name = metric or self.main_metric
        return self._once(("summaries", name), lambda: summarise(self.records, name))

    def best(self, metric: str | None = None) -> dict[int | None, tuple[str, ...]]:
        """The methods with the highest mean at each length."""
        return best_of(self.records, self.summaries(metric))

    def leaders(self, metric: str | None = None) -> tuple[Leader, ...]:
        """The best method of each length, its margin, and its distance from the ceiling."""
        return leaders_of(self.records, self.summaries(metric))

    def verdicts(self, metric: str | None = None) -> tuple[Verdicts, ...]:
        """The paired tests of each of :attr:`columns`."""
        name = metric or self.main_metric
        return self._once(
            ("verdicts", name),
            lambda: tuple(compare_methods(self.records, name, n_bits) for n_bits in self.columns),
        )

    @cached_property
    def areas(self) -> AreasAgainstMeans:
        """AUPRC against mAP."""
        return areas_against_means(self.records)

    @cached_property
    def classes(self) -> tuple[ClassMeans, ...]:
        """The main metric by class, at each length with two classes or more."""
        found = (per_class(self.records, self.main_metric, n_bits) for n_bits in self.columns)
        return tuple(one for one in found if len(one.classes) > 1 and one.means)

    def class_name(self, label: int) -> str:
        """The dataset's name of a class; its number if it has no name."""
        names = self.records.records[0].split.get("class_names", [])
        return str(names[label]) if 0 <= label < len(names) else str(label)

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """Seconds and memory of each method at each length."""
        return costs(self.records)

    @cached_property
    def sweep(self) -> Sweep | None:
        """The parameter that methods differ in, if any."""
        return sweep_of(self.records)

    @cached_property
    def searches(self) -> tuple[SearchOutcome, ...]:
        """What the search found for each method and length; empty without a search."""
        return search_outcomes(self.records) if self.records.trials else ()

    @cached_property
    def trainings(self) -> tuple[Training, ...]:
        """The training curves of each method that has them."""
        chosen = {(one.method, one.n_bits): one.chosen.point for one in self.searches}
        return trainings_of(self.records, chosen)

    def curve(self, method: str, n_bits: int | None, kind: str) -> Curve | None:
        """The mean ``micro`` or ``interpolated`` precision-recall curve of a method."""
        key = ("curve", method, n_bits, kind)
        return self._once(key, lambda: mean_curve(self.records, method, n_bits, kind))

    def surface(self, method: str, n_bits: int | None) -> Surface | None:
        """The mean retrieval by hash tables of a method."""
        key = ("surface", method, n_bits)
        return self._once(key, lambda: mean_surface(self.records, method, n_bits))

    def tied_runs(self, method: str, n_bits: int | None) -> list[tuple[float, ...]]:
        """The optimistic, expected and pessimistic main metric of each run: three lists of runs."""
        found = [r.values.get(self.main_metric) for r in self.records.of(method, n_bits)]
        known = [(v.spread[1], v.mean, v.spread[0]) for v in found if v is not None and v.spread]
        return list(zip(*known, strict=True))

    @cached_property
    def has_tie_boxes(self) -> bool:
        """Whether the protocol asks for both extremes of ties in runs enough for a box plot."""
        wanted = {f"{self.main_metric}:{rule}" for rule in ("optimistic", "pessimistic")}
        return self.protocol.runs >= RUNS_OF_A_BOX and wanted <= set(self.protocol.metrics)

    def tie_boxes(self, method: str, n_bits: int | None) -> tuple[Box | None, ...]:
        """Boxes of the optimistic, expected and pessimistic main metric over runs."""
        return tuple(box_of(values) for values in self.tied_runs(method, n_bits))

    def undefined(self, metric: str) -> tuple[int, int]:
        """How many values are undefined, and of how many, over all records with codes.

        Over all records if none of those with codes has the metric.
        """
        having = [
            (record, value)
            for record in self.records
            if (value := record.values.get(metric)) is not None
        ]
        counted = [pair for pair in having if pair[0].n_bits is not None] or having
        lost = sum(value.undefined for _, value in counted)
        return lost, sum(n_values(record, value) for record, value in counted)

    @cached_property
    def splits(self) -> dict[int, dict[str, Any]]:
        """The description of each run's split; the one with the most leaks if records differ."""
        found: dict[int, dict[str, Any]] = {}
        for record in self.records:
            known = found.get(record.run)
            if record.split and (known is None or n_leaks(record.split) > n_leaks(known)):
                found[record.run] = record.split
        return dict(sorted(found.items()))

    def _once(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        if key not in self._results:
            self._results[key] = compute()
        result: Result = self._results[key]
        return result


def n_leaks(split: dict[str, Any]) -> int:
    """How many items of a split leak; 0 if it was not checked."""
    return int(split.get("leaks") or 0)
