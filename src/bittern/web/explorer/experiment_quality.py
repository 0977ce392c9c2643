"""The quality view of an experiment: what its records say about each query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.analysis import per_class
from bittern.errors import InputError
from bittern.experiments.record import Example, Record
from bittern.metrics import evaluate
from bittern.web.explorer.experiment import Experiment
from bittern.web.explorer.quality import METRICS, MOST_CLASSES, N_BINS, by_radius


def summary(found: Experiment, cell: int | None) -> dict[str, Any]:
    """The distribution of the main metric over the queries of a cell."""
    record = found.record(cell)
    values, spread = values_of(found, record), spread_of(found, record)
    defined = values[np.isfinite(values)]
    counts, _ = np.histogram(defined, bins=N_BINS, range=(0, 1))
    low, high = (None, None) if spread is None else (float(np.nanmean(s)) for s in spread)
    return {
        "metric": found.metric,
        "n_queries": len(values),
        "n_items": None if record.profile is None else int(record.profile.total[0].sum()),
        "n_undefined": len(values) - len(defined),
        "mean": float(defined.mean()) if len(defined) else None,
        "low": low,
        "high": high,
        "histogram": counts.tolist(),
        "classes": [],
        "cells": found.cells,
        "cell": found.number(cell),
        "tasks": found.task_names,
        "task": found.records.task_text,
        "by_class": _by_class(found, record),
    }


def queries(
    found: Experiment, cell: int | None, low: float, high: float, skip: int, n: int
) -> dict[str, Any]:
    """Queries with a value in a range, the worst first, with neighbours where they are recorded."""
    record = found.record(cell)
    values, spread = values_of(found, record), spread_of(found, record)
    last = high if high < 1 else np.inf
    chosen = np.flatnonzero((values >= low) & (values < last))
    chosen = chosen[np.argsort(values[chosen], kind="stable")]
    listed = []
    for i in chosen[skip : skip + n].tolist():
        example = example_of(record, i)
        items = [] if example is None else neighbours(found, example)
        listed.append(_scored(found, record, i, values, spread) | {"items": items})
    return {"n_queries": len(chosen), "queries": listed}


def query(found: Experiment, cell: int | None, position: int) -> dict[str, Any]:
    """One query: its value, precision and recall by radius, and its recorded neighbours."""
    record = found.record(cell)
    if position not in record.query_positions:
        raise InputError(f"quality: row {position} is not a query of this run.")
    i = record.query_positions.index(position)
    value, spread = float(values_of(found, record)[i]), spread_of(found, record)
    answer: dict[str, Any] = {
        "query": found.query_tile(record, i),
        "score": {
            "ap": value,
            "low": None if spread is None else float(spread[0][i]),
            "high": None if spread is None else float(spread[1][i]),
        },
        "n_relevant": record.n_relevant[i] if record.n_relevant else None,
        "truth": [],
        "bands": [],
    }
    if record.profile is not None:
        total, good = record.profile.total[i], record.profile.relevant[i]
        answer |= {"histogram": total.tolist(), "relevant": good.tolist()}
        answer |= by_radius(total, good, int(record.profile.n_relevant[i]))
    example = example_of(record, i)
    if example is not None:
        answer["bands"] = _bands(found, record, i, example)
    return answer


def confusion(found: Experiment, cell: int | None) -> dict[str, Any]:
    """For each class of queries, the share of each class among the neighbours that are recorded.

    Records have the neighbours of a few queries only, ties in the order of the dataset; ``note``
    says why there are none.
    """
    record = found.record(cell)
    note = _no_confusion(found, record)
    if note:
        return {"note": note}
    pairs = [
        (_label_of_query(record, one), label)
        for one in record.examples
        for item in one.items
        if (label := found.items.label_of(item)) is not None
    ]
    shown = sorted({label for pair in pairs for label in pair})[:MOST_CLASSES]
    counts = np.zeros((len(shown), len(shown)))
    for of, label in pairs:
        if of in shown and label in shown:
            counts[shown.index(of), shown.index(label)] += 1
    sums = counts.sum(axis=1, keepdims=True)
    return {
        "n_queries": len(record.examples),
        "n_nearest": max(len(one.items) for one in record.examples),
        "classes": [{"number": one, "name": found.class_name(one)} for one in shown],
        "shares": np.round(counts / np.maximum(sums, 1), 4).tolist(),
    }


def confused(found: Experiment, cell: int | None, of: int, as_: int) -> dict[str, Any]:
    """Queries of a class whose recorded neighbours have another class, with these neighbours."""
    record, listed = found.record(cell), []
    values, spread = values_of(found, record), spread_of(found, record)
    for one in record.examples:
        chosen = [n for n, item in enumerate(one.items) if found.items.label_of(item) == as_]
        if _label_of_query(record, one) != of or not chosen:
            continue
        shown = neighbours(found, one)
        i = record.query_positions.index(one.query)
        listed.append(
            _scored(found, record, i, values, spread)
            | {"items": [shown[n] for n in chosen], "share": len(chosen) / len(shown)}
        )
    listed.sort(key=lambda one: -one["share"])
    return {"n_queries": len(listed), "queries": listed}


def _no_confusion(found: Experiment, record: Record) -> str:
    """Why classes that are confused cannot be told; empty if they can."""
    if record.query_labels is None:
        return "The queries of this experiment have no classes that could be confused."
    if not record.examples:
        return (
            "Which classes are confused cannot be told here: this record has counts by distance, "
            "and the neighbours of no query; the first run has those of a few."
        )
    if all(found.items.label_of(item) is None for one in record.examples for item in one.items):
        return (
            "Which classes are confused cannot be told here: the classes of neighbours are in the "
            "dataset, which is not where it was."
        )
    return ""


def _label_of_query(record: Record, example: Example) -> int:
    assert record.query_labels is not None
    return int(record.query_labels[record.query_positions.index(example.query)])


def _scored(
    found: Experiment,
    record: Record,
    i: int,
    values: NDArray[np.float64],
    spread: tuple[NDArray[Any], NDArray[Any]] | None,
) -> dict[str, Any]:
    """A query with its value and the range over ties."""
    low, high = (None, None) if spread is None else (float(one[i]) for one in spread)
    return {
        "query": found.query_tile(record, i),
        "ap": float(values[i]),
        "low": low,
        "high": high,
    }


def values_of(found: Experiment, record: Record) -> NDArray[np.float64]:
    """The main metric of each query, NaN if it is undefined."""
    value = record.values[found.metric]
    return np.array(value.per_query, np.float64)


def spread_of(found: Experiment, record: Record) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The worst and the best value of each query over the orders of ties, of average precision."""
    if record.profile is None or found.metric != "ap":
        return None
    scores = evaluate(record.profile, METRICS[1:])
    worst, best = (np.asarray(scores[name].per_query) for name in METRICS[1:])
    return worst, best


def _by_class(found: Experiment, record: Record) -> list[dict[str, Any]]:
    """Mean of the main metric for the queries of each class."""
    means = per_class(found.records, found.metric, record.n_bits)
    if not means.means or record.method not in means.means:
        return []
    values = means.of(record.method)
    return [
        {"name": found.class_name(int(one)), "mean": float(values[i]), "n": int(means.n_queries[i])}
        for i, one in enumerate(means.classes)
    ]


def example_of(record: Record, i: int) -> Example | None:
    """The recorded neighbours of a query."""
    position = record.query_positions[i]
    return next((one for one in record.examples if one.query == position), None)


def neighbours(found: Experiment, example: Example) -> list[dict[str, Any]]:
    """The tiles of the recorded neighbours of a query, nearest first."""
    kind = "" if found.task is None else found.task.found
    listed = zip(example.items, example.distances, example.relevant, strict=True)
    return [
        found.tile(item, found.items.label_of(item), kind, distance=d, marked=good)
        for item, d, good in listed
    ]


def _bands(found: Experiment, record: Record, i: int, example: Example) -> list[dict[str, Any]]:
    """The recorded neighbours by distance; counts are those of the whole tie if they are known."""
    grouped: dict[float, list[dict[str, Any]]] = {}
    for item in neighbours(found, example):
        grouped.setdefault(item["distance"], []).append(item)
    whole = record.profile
    return [
        {
            "distance": distance,
            "count": len(items) if whole is None else int(whole.total[i, int(distance)]),
            "items": items,
            "is_closed": True,
        }
        for distance, items in grouped.items()
    ]
