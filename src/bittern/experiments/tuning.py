"""Nested validation: a grid searched on validation data alone, for each length and run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bittern.experiments.cells import Cell
from bittern.experiments.material import Material
from bittern.experiments.protocol import Protocol
from bittern.experiments.truth import Items
from bittern.hashing import HASHERS
from bittern.metrics import evaluate
from bittern.profile import TieProfile

__all__ = ["Choice", "choose"]

HELD_OUT = 5  # one of so many training rows, where a split has no validation sets


@dataclass(frozen=True, slots=True)
class Choice:
    """The parameters chosen, and each point that was tried with its score."""

    parameters: dict[str, Any]
    tried: tuple[dict[str, Any], ...] = ()


def choose(protocol: Protocol, cell: Cell, material: Material, random_state: int) -> Choice:
    """The point of the grid with the best main metric on validation data.

    Validation queries are searched in the validation database (3.5 of [Moran-2016]).  Where the
    split has neither, a fifth of the training rows is held out, and each of them is searched among
    the others.  Test sets are not touched.
    """
    points = cell.method.points
    if len(points) == 1:
        return Choice(points[0])
    rest, queries, database = _sides(material, random_state)
    tried = [
        {
            "parameters": point,
            "score": _score(protocol, cell, point, random_state, rest, queries, database),
        }
        for point in points
    ]
    scores = np.array([one["score"] for one in tried], dtype=float)
    best = int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))
    return Choice(points[best], tuple(tried))


def _score(
    protocol: Protocol,
    cell: Cell,
    point: dict[str, Any],
    random_state: int,
    rest: Items,
    queries: Items,
    database: Items,
) -> float:
    graded = cell.method.learns_from == "grades"
    truth = protocol.ground_truth
    assert cell.n_bits is not None
    hasher = HASHERS[cell.method.name](cell.n_bits, **({"random_state": random_state} | point))
    hasher.fit(rest.vectors, truth.target(rest, graded=graded))
    relevance = truth.between(queries, database, rest)
    if queries is database:
        relevance = relevance.excluding(np.arange(len(queries)))
    left = hasher.encode(queries.vectors)
    right = left if queries is database else hasher.encode(database.vectors)
    profile = TieProfile.from_codes(left, right, relevance)
    return float(evaluate(profile, [protocol.main_metric])[protocol.main_metric].mean)


def _sides(material: Material, random_state: int) -> tuple[Items, Items, Items]:
    """Rows to learn from, queries and database to validate with."""
    if material.validation is not None:
        return material.train, *material.validation
    train = material.train
    order = np.random.default_rng(random_state).permutation(len(train))
    held_out, rest = np.split(order, [len(train) // HELD_OUT])
    kept = _part(train, np.sort(held_out))
    return _part(train, np.sort(rest)), kept, kept


def _part(items: Items, rows: Any) -> Items:
    return Items(
        items.positions[rows],
        items.vectors[rows],
        None if items.labels is None else items.labels[rows],
        None if items.tags is None else items.tags[rows],
    )
