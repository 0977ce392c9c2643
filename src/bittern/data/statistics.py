"""Salient statistics of a dataset, as Table 3.1 of the methodology has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bittern.data.dataset import Dataset

__all__ = ["Statistics", "statistics"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Items, labels, and how they are spread; None where there are no labels."""

    n_items: int
    n_labels: int | None
    labels_per_item: float | None
    items_per_label: float | None
    descriptors: dict[str, str]


def statistics(dataset: Dataset) -> Statistics:
    """Counts and means over the entire dataset; labels are tags where there are no classes."""
    descriptors = {name: _describe(rows) for name, rows in dataset.modalities.items()}
    if dataset.labels is not None:
        known = dataset.labels >= 0
        n_labels, n_given = len(dataset.class_names), int(known.sum())
    elif dataset.tags is not None:
        n_labels, n_given = len(dataset.tag_names), int(dataset.tags.sum())
    else:
        return Statistics(len(dataset), None, None, None, descriptors)
    return Statistics(
        len(dataset),
        n_labels,
        n_given / max(len(dataset), 1),
        n_given / max(n_labels, 1),
        descriptors,
    )


def _describe(rows: object) -> str:
    shape = getattr(rows, "shape", None)
    if shape is None:
        return type(rows).__name__
    dtype = getattr(rows, "dtype", np.dtype(object))
    return f"{'×'.join(map(str, shape[1:])) or '1'} {dtype}"
