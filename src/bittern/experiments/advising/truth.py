"""What is relevant, and how well the real vectors themselves find it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bittern.checks import Float64Array, PositionArray, row_blocks
from bittern.errors import InputError
from bittern.experiments.advising.rows import Material
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance

__all__ = ["METRICS", "Truth", "truth_of"]

METRICS = ("euclidean", "cosine")
BLOCK = 1 << 26  # octets of distances held at once


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The ground truth of one split, and the float ranking's average precision under it."""

    relevance: Relevance
    ceiling: Float64Array  # (n_queries,), NaN for a query with nothing relevant


def truth_of(material: Material, database: PositionArray, metric: str, k: int) -> Truth:
    """Classes or tags where there are labels, else the k nearest neighbours among the vectors.

    Of the k nearest, the ranking by real distances is the truth itself, and has precision 1.
    """
    queries, items = material.vectors[material.queries], material.vectors[database]
    if material.labels is None:
        relevance = Relevance.from_neighbours(queries, items, k, metric=metric)
        return Truth(relevance, np.ones(len(queries)))
    y = material.labels
    of = Relevance.from_classes if y.ndim == 1 else Relevance.from_tags
    relevance = of(y[material.queries], y[database])
    for part in (material.validation, material.test):
        if not relevance.n_relevant[part].any():
            raise InputError(
                f"advise: of {part.stop - part.start} queries none has anything relevant among "
                f"{len(database)} items; are these labels of classes?"
            )
    blocks = _distances(queries.astype(np.float64), items.astype(np.float64), metric)
    profile = TieProfile.from_distances(blocks, relevance, compact=True)
    ceiling = evaluate(profile, "ap")["ap"].per_query
    assert ceiling is not None
    return Truth(relevance, ceiling)


def _distances(queries: Float64Array, items: Float64Array, metric: str) -> Iterator[Float64Array]:
    """Distances of blocks of queries to all items, in an order that is that of the metric."""
    if metric == "cosine":
        queries, items = _unit(queries), _unit(items)
    else:
        # Nearer to the origin, less is lost to rounding; whole numbers stay whole, their ties ties.
        centre = np.round(items.mean(axis=0))
        queries, items = queries - centre, items - centre
    squares = _squares(items)
    for some in row_blocks(len(queries), 8 * len(items), BLOCK):
        q = queries[some]
        yield _squares(q)[:, None] - 2 * (q @ items.T) + squares


def _squares(rows: Float64Array) -> Float64Array:
    return np.einsum("ij,ij->i", rows, rows)


def _unit(rows: Any) -> Float64Array:
    lengths = np.sqrt(_squares(rows))
    if not lengths.all():
        raise InputError("advise: cosine distance needs rows that are not all zero.")
    return rows / lengths[:, None]
