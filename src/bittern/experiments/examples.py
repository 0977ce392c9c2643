"""A few queries with their nearest items, for people who would rather look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.experiments.material import Material
from bittern.experiments.record import Example
from bittern.relevance import Relevance

__all__ = ["examples_of"]

DOZEN, SHOWN = 12, 12

Search = Callable[[NDArray[np.intp], int], tuple[NDArray[Any], NDArray[Any]]]


def examples_of(material: Material, truth: Relevance, search: Search) -> tuple[Example, ...]:
    """A dozen queries, spread evenly over the test queries, with a dozen nearest items each.

    ``search(rows, k)`` gives positions in the database and distances for rows of the queries.
    """
    queries, database = material.queries.positions, material.database.positions
    rows = np.unique(np.linspace(0, len(queries) - 1, min(DOZEN, len(queries))).astype(np.intp))
    k = min(SHOWN, len(database))
    items, distances = search(rows, k)
    examples = []
    for row, found, apart in zip(rows, items, distances, strict=True):
        levels = truth.levels_of(np.full(k, row), np.asarray(found))
        examples.append(
            Example(
                query=int(queries[row]),
                items=tuple(database[found].tolist()),
                distances=tuple(np.asarray(apart).tolist()),
                relevant=tuple((levels > 0).tolist()),
            )
        )
    return tuple(examples)
