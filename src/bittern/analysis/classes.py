"""The classes of queries that a method serves well, and those that it does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bittern.analysis.summary import check_metric, mean_of
from bittern.experiments.record import Record
from bittern.experiments.records import Records

__all__ = ["ClassMeans", "per_class"]


@dataclass(frozen=True, slots=True)
class ClassMeans:
    """Mean of a metric for each class of queries and each method.

    ``means`` has a value for each of ``classes``, NaN where none is defined; ``n_queries`` counts
    each class's queries over all runs.  Without class labels, or for a metric with one value for
    all queries, there is nothing.
    """

    metric: str
    n_bits: int | None
    classes: tuple[int, ...] = ()
    n_queries: tuple[int, ...] = ()
    means: dict[str, tuple[float, ...]] | None = None

    def of(self, method: str) -> tuple[float, ...]:
        """A method's means, in the order of the classes."""
        return (self.means or {})[method]


def per_class(records: Records, metric: str, n_bits: int | None = None) -> ClassMeans:
    """Mean of a metric over the queries of each class in all runs, for each method at a length.

    Methods without codes are there at every length.
    """
    check_metric(records, metric)
    found = {
        method: [record for record in records.of(method, n_bits) if _is_usable(record, metric)]
        for method in records.methods
    }
    found = {method: usable for method, usable in found.items() if usable}
    of_run = {record.run: record.query_labels for usable in found.values() for record in usable}
    labels = np.concatenate([np.empty(0, int), *(of_run[run] for run in sorted(of_run))])
    classes, counts = np.unique(labels, return_counts=True)
    return ClassMeans(
        metric=metric,
        n_bits=n_bits,
        classes=tuple(classes.tolist()),
        n_queries=tuple(counts.tolist()),
        means={method: _means(usable, metric, classes) for method, usable in found.items()},
    )


def _is_usable(record: Record, metric: str) -> bool:
    value = record.values.get(metric)
    return record.query_labels is not None and value is not None and value.per_query is not None


def _means(usable: list[Record], metric: str, classes: np.ndarray) -> tuple[float, ...]:
    labels = np.concatenate([np.array(record.query_labels) for record in usable])
    values = np.concatenate([np.array(record.values[metric].per_query) for record in usable])
    return tuple(mean_of(values[labels == one]) for one in classes)
