"""The compare view of an experiment: two methods or lengths, query by query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.experiments.record import Record
from bittern.web.explorer.experiment import Experiment
from bittern.web.explorer.experiment_quality import (
    example_of,
    neighbours,
    spread_of,
    values_of,
)

FIRST, SECOND = "first", "second"
SIDES = (FIRST, SECOND)


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """The queries that two cells of one run share, and their values on either side.

    ``ranges`` are the lowest and the highest value over the orders of tied items; without ties
    they are the value itself.
    """

    numbers: tuple[int, int]  # of the cells
    records: tuple[Record, Record]
    places: tuple[NDArray[np.int64], NDArray[np.int64]]  # of the queries in each record
    values: tuple[NDArray[np.float64], NDArray[np.float64]]
    ranges: tuple[NDArray[np.float64], NDArray[np.float64]]  # (n_queries, 2)
    has_ranges: tuple[bool, bool]

    @property
    def positions(self) -> NDArray[np.int64]:
        """The queries, as the records name them."""
        return np.array(self.records[0].query_positions, np.int64)[self.places[0]]

    @property
    def gains(self) -> NDArray[np.float64]:
        """The second value minus the first."""
        return self.values[1] - self.values[0]

    @property
    def is_sure(self) -> NDArray[np.bool_]:
        """Whether no order of tied items could level the two values."""
        (low, high), (low_, high_) = (one.T for one in self.ranges)
        return (low > high_) | (low_ > high)


def summary(found: Experiment, first: int | None, second: int | None) -> dict[str, Any]:
    """Both cells, their means over shared queries, who wins how often, and a point for each query.

    Queries that are undefined on either side are left out and counted.
    """
    both = paired(found, first, second)
    gains, sure = both.gains, both.is_sure
    n_all = len(set(both.records[0].query_positions) & set(both.records[1].query_positions))
    return {
        "metric": found.metric,
        "cells": found.cells,
        "tasks": found.task_names,
        "task": found.records.task_text,
        "sides": [_side(both, side) for side in (0, 1)],
        "n_queries": len(gains),
        "n_undefined": n_all - len(gains),
        "n_better": [int((gains < 0).sum()), int((gains > 0).sum())],
        "n_sure": [int(((gains < 0) & sure).sum()), int(((gains > 0) & sure).sum())],
        "positions": both.positions.tolist(),
        "points": np.round(np.stack(both.values, axis=1), 5).tolist(),
    }


def queries(
    found: Experiment,
    first: int | None,
    second: int | None,
    better: str | None,
    item: int | None,
    skip: int,
    n: int,
) -> dict[str, Any]:
    """Queries that one side answers better, the largest difference first; or the query ``item``."""
    both = paired(found, first, second)
    chosen = _chosen(both, better) if item is None else np.flatnonzero(both.positions == item)
    if item is not None and not len(chosen):
        raise InputError(f"compare: query {item} has no value on one of the two sides.")
    return {
        "n_queries": len(chosen),
        "queries": [_query(found, both, i) for i in chosen[skip : skip + n].tolist()],
    }


def _chosen(both: Paired, better: str | None) -> NDArray[np.int64]:
    if better not in SIDES:
        raise InputError(f"compare: better must be 'first' or 'second', got {better!r}.")
    gains = both.gains if better == SECOND else -both.gains
    chosen = np.flatnonzero(gains > 0)
    return chosen[np.argsort(-gains[chosen], kind="stable")]


def paired(found: Experiment, first: int | None, second: int | None) -> Paired:
    """The shared queries of two cells, which must be of one run."""
    a = found.number(first)
    b = _opponent(found, a) if second is None else found.number(second)
    records = found.record(a), found.record(b)
    if records[0].run != records[1].run:
        raise InputError(
            f"compare: runs {records[0].run} and {records[1].run} have different splits; choose "
            "two of the same run."
        )
    asked = [np.array(one.query_positions, np.int64) for one in records]
    _, *places = np.intersect1d(asked[0], asked[1], return_indices=True)
    values = [values_of(found, one)[at] for one, at in zip(records, places, strict=True)]
    defined = np.isfinite(values[0]) & np.isfinite(values[1])
    spreads = [spread_of(found, one) for one in records]
    ranges = [
        np.stack([v, v] if spread is None else [one[at] for one in spread], axis=1)[defined]
        for v, spread, at in zip(values, spreads, places, strict=True)
    ]
    return Paired(
        (a, b),
        records,
        (places[0][defined], places[1][defined]),
        (values[0][defined], values[1][defined]),
        (ranges[0], ranges[1]),
        (spreads[0] is not None, spreads[1] is not None),
    )


def _opponent(found: Experiment, number: int) -> int:
    """Another cell of the same run: another method of the same length if there is one."""
    here = found.record(number)
    others = [one for one in found.cells if one["run"] == here.run and one["number"] != number]
    if not others:
        raise InputError("compare: this run has one method at one length; nothing to compare with.")
    same = [one for one in others if one["n_bits"] == here.n_bits and one["method"] != here.method]
    return int((same or others)[0]["number"])


def _side(both: Paired, side: int) -> dict[str, Any]:
    record, values, ends = both.records[side], both.values[side], both.ranges[side]
    has_values, has_range = len(values) > 0, both.has_ranges[side] and len(values) > 0
    return {
        "cell": both.numbers[side],
        "method": record.method,
        "n_bits": record.n_bits,
        "run": record.run,
        "score": {
            "ap": float(values.mean()),
            "low": float(ends[:, 0].mean()) if has_range else None,
            "high": float(ends[:, 1].mean()) if has_range else None,
        }
        if has_values
        else None,
    }


def _query(found: Experiment, both: Paired, i: int) -> dict[str, Any]:
    """A query with its value, range and recorded neighbours on either side."""
    sides = []
    for side, record in enumerate(both.records):
        example = example_of(record, int(both.places[side][i]))
        low, high = both.ranges[side][i].tolist() if both.has_ranges[side] else (None, None)
        sides.append(
            {
                "cell": both.numbers[side],
                "score": {"ap": float(both.values[side][i]), "low": low, "high": high},
                "items": [] if example is None else neighbours(found, example),
            }
        )
    return {
        "query": found.query_tile(both.records[0], int(both.places[0][i])),
        "is_sure": bool(both.is_sure[i]),
        "sides": sides,
    }
