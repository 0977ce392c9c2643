"""The quality view of an experiment: what its records say about each query."""

from __future__ import annotations

import io
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.analysis import per_class
from bittern.data import Dataset
from bittern.data.thumbnails import image_modality, small_image
from bittern.errors import BitternError, InputError
from bittern.experiments.record import Example, Record
from bittern.experiments.records import Records
from bittern.experiments.run_data import load_dataset, root_of
from bittern.experiments.running import IMAGES, TEXTS
from bittern.io.files import reading
from bittern.metrics import evaluate
from bittern.web.explorer.quality import METRICS, N_BINS, by_radius
from bittern.web.refusal import Refusal

ADDRESS = "/view/experiment/images"


class Experiment:
    """The records of a folder, a cell (method, length and run) at a time."""

    def __init__(self, folder: Path) -> None:
        self.records, self.folder = Records.read(folder), folder
        if not len(self.records):
            raise InputError(f"{folder}: has no records yet; 'bittern run' makes them.")

    @property
    def title(self) -> str:
        """The title of the protocol."""
        return self.records.protocol.title

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        """The cells that have a value for each query of the main metric."""
        metric = self.records.protocol.main_metric
        return [
            {"number": i, "method": one.method, "n_bits": one.n_bits, "run": one.run}
            for i, one in enumerate(self.records)
            if metric in one.values and one.values[metric].per_query is not None
        ]

    @cached_property
    def _dataset(self) -> Dataset | None:
        """The data of the experiment, if it is still where it was; for its images alone."""
        protocol = self.records.protocol
        try:
            return load_dataset(protocol.dataset, root_of(protocol, None))
        except (BitternError, OSError):
            return None

    @cached_property
    def _images(self) -> str | None:
        """The modality of the dataset that has images."""
        return None if self._dataset is None else image_modality(self._dataset)

    @cached_property
    def _texts(self) -> dict[str, str]:
        path = self.folder / IMAGES / TEXTS
        if not path.is_file():
            return {}
        with reading(path, "JSON file"):
            return json.loads(path.read_text(encoding="utf-8"))

    def record(self, cell: int | None) -> Record:
        """The record of a cell, by default the first with codes."""
        numbers = [one["number"] for one in self.cells]
        if not numbers:
            raise InputError(f"{self.folder}: no record has values for each query.")
        if cell is None:  # the first with codes, if there is one
            coded = [one["number"] for one in self.cells if one["n_bits"] is not None]
            cell = (coded or numbers)[0]
        if cell not in numbers:
            raise InputError(f"quality: there is no cell {cell}.")
        return self.records.records[cell]

    def image(self, position: int) -> bytes:
        """The small image of an item: a kept one, or else one of the dataset."""
        path = self.folder / IMAGES / f"{position}.png"
        if path.is_file():
            return path.read_bytes()
        dataset, modality = self._dataset, self._images
        if dataset is None or modality is None or not 0 <= position < len(dataset):
            raise Refusal(404, f"The experiment has no image of item {position}.")
        content = io.BytesIO()
        small_image(np.asarray(dataset[modality][position])).save(content, format="PNG")
        return content.getvalue()

    def tile(self, position: int, label: int | None = None, **more: Any) -> dict[str, Any]:
        """What is shown of an item of the dataset."""
        has_image = (self.folder / IMAGES / f"{position}.png").is_file() or self._images is not None
        return {
            "id": position,
            "title": f"row {position}",
            "label": None if label is None else self.class_name(label),
            "text": self._texts.get(str(position)),
            "src": f"{ADDRESS}/{position}" if has_image else None,
            "code": None,
            "details": {},
            **more,
        }

    def class_name(self, label: int) -> str:
        """The name of a class, or its number."""
        names = self.records.records[0].split.get("class_names") or []
        return str(names[label]) if 0 <= label < len(names) else str(label)


def summary(found: Experiment, cell: int | None) -> dict[str, Any]:
    """The distribution of the main metric over the queries of a cell."""
    record = found.record(cell)
    values, spread = _values(found, record), _spread(found, record)
    defined = values[np.isfinite(values)]
    counts, _ = np.histogram(defined, bins=N_BINS, range=(0, 1))
    low, high = (None, None) if spread is None else (float(np.nanmean(s)) for s in spread)
    return {
        "metric": found.records.protocol.main_metric,
        "n_queries": len(values),
        "n_items": None if record.profile is None else int(record.profile.total[0].sum()),
        "n_undefined": len(values) - len(defined),
        "mean": float(defined.mean()) if len(defined) else None,
        "low": low,
        "high": high,
        "histogram": counts.tolist(),
        "classes": [],
        "cells": found.cells,
        "cell": found.records.records.index(record),
        "by_class": _by_class(found, record),
    }


def queries(
    found: Experiment, cell: int | None, low: float, high: float, skip: int, n: int
) -> dict[str, Any]:
    """Queries with a value in a range, the worst first, with neighbours where they are recorded."""
    record = found.record(cell)
    values, spread = _values(found, record), _spread(found, record)
    last = high if high < 1 else np.inf
    chosen = np.flatnonzero((values >= low) & (values < last))
    chosen = chosen[np.argsort(values[chosen], kind="stable")]
    listed = []
    for i in chosen[skip : skip + n].tolist():
        example = _example(record, i)
        ends = (None, None) if spread is None else (float(s[i]) for s in spread)
        listed.append(
            {
                "query": _query_tile(found, record, i),
                "ap": float(values[i]),
                **dict(zip(("low", "high"), ends, strict=True)),
                "items": [] if example is None else _neighbours(found, example),
            }
        )
    return {"n_queries": len(chosen), "queries": listed}


def query(found: Experiment, cell: int | None, position: int) -> dict[str, Any]:
    """One query: its value, precision and recall by radius, and its recorded neighbours."""
    record = found.record(cell)
    if position not in record.query_positions:
        raise InputError(f"quality: row {position} is not a query of this run.")
    i = record.query_positions.index(position)
    value, spread = float(_values(found, record)[i]), _spread(found, record)
    answer: dict[str, Any] = {
        "query": _query_tile(found, record, i),
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
    example = _example(record, i)
    if example is not None:
        answer["bands"] = _bands(found, record, i, example)
    return answer


def _values(found: Experiment, record: Record) -> NDArray[np.float64]:
    value = record.values[found.records.protocol.main_metric]
    return np.array(value.per_query, np.float64)


def _spread(found: Experiment, record: Record) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The worst and the best value of each query over the orders of ties, of average precision."""
    if record.profile is None or found.records.protocol.main_metric != "ap":
        return None
    scores = evaluate(record.profile, METRICS[1:])
    worst, best = (np.asarray(scores[name].per_query) for name in METRICS[1:])
    return worst, best


def _by_class(found: Experiment, record: Record) -> list[dict[str, Any]]:
    """Mean of the main metric for the queries of each class."""
    means = per_class(found.records, found.records.protocol.main_metric, record.n_bits)
    if not means.means or record.method not in means.means:
        return []
    values = means.of(record.method)
    return [
        {"name": found.class_name(int(one)), "mean": float(values[i]), "n": int(means.n_queries[i])}
        for i, one in enumerate(means.classes)
    ]


def _query_tile(found: Experiment, record: Record, i: int) -> dict[str, Any]:
    label = None if record.query_labels is None else int(record.query_labels[i])
    return found.tile(record.query_positions[i], label)


def _example(record: Record, i: int) -> Example | None:
    position = record.query_positions[i]
    return next((one for one in record.examples if one.query == position), None)


def _neighbours(found: Experiment, example: Example) -> list[dict[str, Any]]:
    listed = zip(example.items, example.distances, example.relevant, strict=True)
    return [found.tile(item, distance=d, marked=good) for item, d, good in listed]


def _bands(found: Experiment, record: Record, i: int, example: Example) -> list[dict[str, Any]]:
    """The recorded neighbours by distance; counts are those of the whole tie if they are known."""
    grouped: dict[float, list[dict[str, Any]]] = {}
    for item in _neighbours(found, example):
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
