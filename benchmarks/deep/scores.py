"""What the experiments measure of a hasher, and how they find it again."""

from __future__ import annotations

from typing import Any

import numpy as np
from cells import Cell

import bittern as bt

RUNS = (0, 1, 2)


def evaluated(hasher: Any, sets: dict[str, tuple[np.ndarray, np.ndarray]]) -> Cell:
    """AP in expectation over ties."""
    (Q, query_labels), (D, labels) = sets["queries"], sets["database"]
    truth = bt.Relevance.from_classes(query_labels, labels)
    scores = bt.evaluate_codes(hasher.encode(Q), hasher.encode(D), truth, ["ap"])
    return {"ap": scores["ap"].mean}


def values_of(cells: list[Cell], key: str = "ap", **wanted: Any) -> np.ndarray:
    """One number of the cells that are as wanted."""
    return np.array(
        [c[key] for c in cells if all(c[name] == value for name, value in wanted.items())]
    )
