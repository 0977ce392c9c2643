"""Curves: averaged over runs, over hash tables, over a method's parameter, and of training."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from bittern.analysis.summary import Summary, summarise
from bittern.checks import Float64Array, is_number
from bittern.experiments.protocol import Method
from bittern.experiments.record import Record
from bittern.experiments.records import Records
from bittern.metrics import Curve

RECALLS = np.arange(101) / 100


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Retrieval by hash tables for each K (rows) and L (columns); NaN if impossible."""

    bits_per_table: tuple[int, ...]
    n_tables: tuple[int, ...]
    precision: Float64Array
    recall: Float64Array
    f1: Float64Array


def mean_curve(records: Records, method: str, n_bits: int | None, kind: str) -> Curve | None:
    """The mean over runs of a method's ``micro`` or ``interpolated`` curve; None if it has none.

    Points with the same recalls or radii are averaged one by one.  Rankings by real distances
    have different radii in each run: their precision is averaged at recalls 0, 0.01, …, 1.
    """
    found = [record.curves.get(kind) for record in records.of(method, n_bits)]
    curves = [curve for curve in found if curve is not None]
    if not curves:
        return None
    if len(curves) > 1 and not _is_one_grid(curves):
        curves = [_at_recalls(curve) for curve in curves]
    recall, precision = (
        _mean([getattr(curve, side) for curve in curves]) for side in ("recall", "precision")
    )
    return Curve(recall, precision, curves[0].radius)


def mean_surface(records: Records, method: str, n_bits: int | None) -> Surface | None:
    """The mean over runs of a method's retrieval by hash tables; None if it has none."""
    surfaces = [r.surface for r in records.of(method, n_bits) if r.surface is not None]
    if not surfaces:
        return None
    sides = {
        side: _mean([_grid(surface, side) for surface in surfaces])
        for side in ("precision", "recall", "f1")
    }
    return Surface(tuple(surfaces[0]["bits_per_table"]), tuple(surfaces[0]["n_tables"]), **sides)


def _is_one_grid(curves: Sequence[Curve]) -> bool:
    sides = [curve.recall if curve.radius is None else curve.radius for curve in curves]
    return all(np.array_equal(side, sides[0]) for side in sides)


def _at_recalls(curve: Curve) -> Curve:
    defined = ~np.isnan(curve.precision)
    if not defined.any():
        return Curve(RECALLS, np.full(len(RECALLS), np.nan))
    return Curve(RECALLS, np.interp(RECALLS, curve.recall[defined], curve.precision[defined]))


def _mean(arrays: Sequence[Float64Array]) -> Float64Array:
    """The mean of the defined values, point by point; NaN where there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a point that no run defines stays NaN
        return np.nanmean(np.stack(arrays), axis=0)


def _grid(surface: dict[str, Any], side: str) -> Float64Array:
    return np.array(surface[side], dtype=np.float64)  # None, as JSON has it, becomes NaN


@dataclass(frozen=True, slots=True)
class Training:
    """Metrics after each epoch, of one training of a method; those of the record by name."""

    method: str
    n_bits: int | None
    run: int
    curves: dict[str, tuple[float, ...]]  # train_exact, held_out_relaxed, …
    is_trial: bool  # of the point that a search chose; otherwise of a cell


def trainings_of(
    records: Records, chosen: Mapping[tuple[str, int | None], Mapping[str, Any]]
) -> tuple[Training, ...]:
    """A training of each method that has curves, at the middle one of its lengths.

    It is the first trial of the ``chosen`` point of the method and length, which has held-out rows;
    without a search, the first run's cell.
    """
    found = []
    for label in records.protocol.labels:
        trials = [t for t in records.trials if t.method == label and _has_chosen(t, chosen)]
        cells = [r for r in records if r.method == label]
        curved = [t for t in trials if t.training_curves] or [r for r in cells if r.training_curves]
        if curved:
            lengths = sorted({one.n_bits or 0 for one in curved})
            middle = lengths[len(lengths) // 2]
            one = next(one for one in curved if (one.n_bits or 0) == middle)
            is_trial = any(one is trial for trial in trials)
            found.append(Training(label, one.n_bits, one.run, one.training_curves, is_trial))
    return tuple(found)


def _has_chosen(trial: Record, chosen: Mapping[tuple[str, int | None], Mapping[str, Any]]) -> bool:
    point = chosen[trial.method, trial.n_bits]
    return all(trial.parameters[name] == value for name, value in point.items())


FEWEST = 3  # values of a curve


@dataclass(frozen=True, slots=True)
class Sweep:
    """A parameter, and for each series the methods by their value of it, ascending."""

    parameter: str
    series: dict[str, dict[float, str]]  # name of the series, value, label of the method

    @property
    def values(self) -> list[float]:
        """All values of all series, ascending."""
        return sorted({value for series in self.series.values() for value in series})

    def summaries(
        self, records: Records, metric: str, n_bits: int | None
    ) -> dict[str, dict[float, Summary]]:
        """The summaries of each series at a length."""
        return self.of(summarise(records, metric), n_bits)

    def of(
        self, summaries: Sequence[Summary], n_bits: int | None
    ) -> dict[str, dict[float, Summary]]:
        """The given summaries of each series at a length, by value."""
        found = {s.method: s for s in summaries if s.n_bits == n_bits}
        return {
            name: {value: found[label] for value, label in series.items() if label in found}
            for name, series in self.series.items()
        }


def sweep_of(records: Records) -> Sweep | None:
    """The parameter with the most values among otherwise equal methods; None if there is none.

    Methods are otherwise equal if their names and all their other parameters are.
    """
    methods = [m for m in records.protocol.method if m.label in records.methods]
    names = dict.fromkeys(
        key for method in methods for key, value in method.parameters.items() if is_number(value)
    )
    sweeps = [_sweep(name, methods) for name in names]
    found = [one for one in sweeps if one is not None]
    return max(found, key=lambda one: len(one.values), default=None)


def _sweep(parameter: str, methods: Sequence[Method]) -> Sweep | None:
    groups: dict[str, list[Method]] = {}
    for method in methods:
        if is_number(method.parameters.get(parameter)):
            groups.setdefault(_likeness(method, parameter), []).append(method)
    series = [
        sorted(group, key=lambda method: method.parameters[parameter])
        for group in groups.values()
        if len({method.parameters[parameter] for method in group}) >= FEWEST
    ]
    if not series:
        return None
    named = zip(_names(parameter, series), series, strict=True)
    return Sweep(
        parameter,
        {name: {m.parameters[parameter]: m.label for m in group} for name, group in named},
    )


def _names(parameter: str, series: Sequence[Sequence[Method]]) -> list[str]:
    """The common beginning of each series' labels if it is unique, otherwise what differs."""
    begun = [_beginning([method.label for method in group]) for group in series]
    if all(begun) and len(set(begun)) == len(begun):
        return begun
    firsts = [group[0] for group in series]
    return [
        ", ".join(
            [one.name]
            + [
                f"{key} = {value}"
                for key, value in one.parameters.items()
                if key != parameter and any(o.parameters.get(key) != value for o in firsts)
            ]
        )
        for one in firsts
    ]


def _beginning(labels: Sequence[str]) -> str:
    """The words at the beginning of all labels."""
    words = zip(*(label.split() for label in labels), strict=False)
    return " ".join(at[0] for at in takewhile(lambda at: len(set(at)) == 1, words)).rstrip(",;:=(")


def _likeness(method: Method, parameter: str) -> str:
    """A text that is equal for methods that differ only in the parameter."""
    others: Mapping[str, Any] = {k: v for k, v in method.parameters.items() if k != parameter}
    rest = [method.name, others, method.grid, method.learns_from, method.n_bits]
    return json.dumps(rest, sort_keys=True, default=str)
