"""The publisher's own split."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.balance import Draws
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.errors import InputError

__all__ = ["official"]

# What publishers call the sets, and what they are here.
ROLES = {
    "train": "train",
    "learn": "train",
    "test": "queries",
    "query": "queries",
    "queries": "queries",
    "base": "database",
    "database": "database",
    "validation_queries": "validation_queries",
    "validation_database": "validation_database",
}


def official(dataset: Dataset, draws: Draws) -> Split:
    """The sets that came with the dataset; nothing is drawn.

    A test set is the queries.  Where the publisher names no database, the training set is ranked
    (it is seen, as in ``standard``); where no training set, the database trains.  Validation
    queries without a database of their own are put to the training set.
    """
    del draws  # taken by every split; nothing is random here
    sets = _roles(dataset)
    if "queries" not in sets or not sets.keys() & {"train", "database"}:
        named = ", ".join(f"{name} {len(p):,}" for name, p in dataset.official.items()) or "nothing"
        raise InputError(
            f"official: needs the publisher's test and training sets, {dataset.name} names {named}."
        )
    sets.setdefault("database", sets.get("train", np.empty(0, np.intp)))
    sets.setdefault("train", sets["database"])
    if "validation_queries" in sets:
        sets.setdefault("validation_database", sets["train"])
    return Split(
        name="official",
        n_items=len(dataset),
        **sets,
        parts=_nested(sets),
        balanced_by="the publisher",
    )


def _nested(sets: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Which sets the publisher put inside which; test queries must be in no other."""
    outward = ("validation_queries", "validation_database", "train", "database")
    pairs = combinations([name for name in outward if name in sets], 2)
    return tuple(pair for pair in pairs if np.isin(sets[pair[0]], sets[pair[1]]).all())


def _roles(dataset: Dataset) -> dict[str, Any]:
    sets: dict[str, NDArray[np.intp]] = {}
    for name, positions in dataset.official.items():
        role = ROLES.get(name)
        if role is None or role in sets:
            raise InputError(
                f"official: sets are called {', '.join(ROLES)}, one for each role, "
                f"{dataset.name} names {', '.join(dataset.official)}."
            )
        sets[role] = positions
    return sets
