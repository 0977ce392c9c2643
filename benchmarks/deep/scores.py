"""What the experiments measure of a hasher, and how they find it again."""

from __future__ import annotations

from typing import Any

import numpy as np
from cells import Cell

import bittern as bt

RUNS = (0, 1, 2)


def evaluated(hasher: Any, sets: dict[str, tuple[np.ndarray, np.ndarray]]) -> Cell:
    """AP in expectation over ties, at best, at worst, and in the order of the database."""
    (Q, query_labels), (D, labels) = sets["queries"], sets["database"]
    queries, database = hasher.encode(Q), hasher.encode(D)
    truth = bt.Relevance.from_classes(query_labels, labels)
    names = ["ap", "ap:optimistic", "ap:pessimistic"]
    scores = bt.evaluate(bt.TieProfile.from_codes(queries, database, truth), names)
    plain = plain_ap(queries, database, query_labels, labels)
    return {name: scores[name].mean for name in names} | {"plain": plain}


def plain_ap(queries: bt.Codes, database: bt.Codes, query_labels: Any, labels: Any) -> float:
    """Mean AP where tied items stay in the order of the database."""
    values = []
    ranks = np.arange(1, len(database) + 1)
    for words, label in zip(queries.words, query_labels, strict=True):
        distance = np.bitwise_count(database.words ^ words).sum(axis=1, dtype=np.uint16)
        relevant = (labels == label)[np.argsort(distance, kind="stable")]
        found = np.flatnonzero(relevant)
        values.append((np.arange(1, len(found) + 1) / ranks[found]).mean())
    return float(np.mean(values))


def values_of(cells: list[Cell], key: str = "ap", **wanted: Any) -> np.ndarray:
    """One number of the cells that are as wanted."""
    return np.array(
        [c[key] for c in cells if all(c[name] == value for name, value in wanted.items())]
    )


def mean_and_deviation(values: np.ndarray) -> str:
    """Mean, and deviation if there are several runs."""
    if not len(values):
        return ""
    return f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if len(values) > 1 else "")
