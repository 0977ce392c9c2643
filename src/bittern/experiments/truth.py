"""Ground truths that a protocol can ask for: which items are relevant, and how much."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.data import distance_percentiles
from bittern.errors import InputError
from bittern.io.records import read_table
from bittern.registry import Registry
from bittern.relevance import Relevance, ball_radius

__all__ = ["TRUTHS", "Items", "Truth", "read_truth", "same_class"]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """One set of a split, read into memory."""

    positions: NDArray[np.intp]  # in the dataset
    vectors: NDArray[Any]  # (n, dim), after preprocessing
    labels: NDArray[np.int64] | None = None
    tags: Any = None  # (n, n_tags)

    def __len__(self) -> int:
        return len(self.positions)


class Truth(ABC):
    """What makes an item relevant; whatever it must learn, it learns from training rows."""

    has_grades: bool = False

    @abstractmethod
    def between(
        self, queries: Items, database: Items, train: Items, *, graded: bool = True
    ) -> Relevance:
        """The relevance of a database for queries; without grades, yes or no."""

    def target(self, train: Items, *, graded: bool) -> Any:
        """What a hasher is given as ``y`` for the training rows."""
        return self.between(train, train, train, graded=graded)

    def check(self, items: Items) -> None:  # noqa: B027 (most need vectors alone)
        """Refuse items that lack what makes them relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes(Truth):
    """An item of the query's class is relevant; what has no class (-1) matches nothing."""

    kind: str

    def between(
        self, queries: Items, database: Items, train: Items, *, graded: bool = True
    ) -> Relevance:
        """Same class."""
        return same_class(_labels(queries), _labels(database))

    def target(self, train: Items, *, graded: bool) -> Any:
        """The labels; as one column a class where some rows have none."""
        labels = _labels(train)
        if labels.min(initial=0) >= 0:
            return labels
        return labels[:, None] == np.unique(labels[labels >= 0])

    def check(self, items: Items) -> None:
        """There must be labels."""
        _labels(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags(Truth):
    """An item that shares a tag is relevant; graded, as much as it shares."""

    kind: str
    graded: bool = False

    @property
    def has_grades(self) -> bool:  # type: ignore[override]
        """Whether the number of shared tags counts."""
        return self.graded

    def between(
        self, queries: Items, database: Items, train: Items, *, graded: bool = True
    ) -> Relevance:
        """Shared tags."""
        return Relevance.from_tags(_tags(queries), _tags(database), graded=graded and self.graded)

    def target(self, train: Items, *, graded: bool) -> Any:
        """The tags; with grades, what the rows share."""
        if graded and self.graded:
            return self.between(train, train, train)
        return _tags(train)

    def check(self, items: Items) -> None:
        """There must be tags."""
        _tags(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball(Truth):
    """An item within a radius is relevant (3.3.1 of [Moran-2016]).

    The radius is given, or such that training rows have so many neighbours on average.
    """

    kind: str
    radius: float | None = None
    neighbours: int = 50
    sample: int = 100

    def __post_init__(self) -> None:
        if self.radius is not None and self.radius <= 0:
            raise InputError(f"truth: radius must be greater than 0, got {self.radius}.")

    def between(
        self, queries: Items, database: Items, train: Items, *, graded: bool = True
    ) -> Relevance:
        """Within the radius."""
        radius = self.radius
        if radius is None:
            radius = ball_radius(
                train.vectors, neighbours=self.neighbours, sample=self.sample, random_state=0
            )
        return Relevance.from_ball(queries.vectors, database.vectors, radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours(Truth):
    """The k nearest items are relevant (3.3.2 of [Moran-2016])."""

    kind: str
    k: int

    def between(
        self, queries: Items, database: Items, train: Items, *, graded: bool = True
    ) -> Relevance:
        """The k nearest."""
        return Relevance.from_neighbours(queries.vectors, database.vectors, self.k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(Truth):
    """Graded balls: radii at percentiles of the distances between training rows, with gains.

    Section 5.1 of [He-Cakir-Bargal-Sclaroff-2018].
    """

    kind: str
    percentiles: tuple[float, ...] = (5, 1, 0.2, 0.1)
    gains: tuple[int, ...] = (1, 2, 5, 10)

    has_grades = True

    def __post_init__(self) -> None:
        if len(self.percentiles) != len(self.gains):
            raise InputError(
                f"truth: percentiles and gains go in pairs, got {len(self.percentiles)} and "
                f"{len(self.gains)}."
            )

    def between(
        self, queries: Items, database: Items, train: Items, *, graded: bool = True
    ) -> Relevance:
        """The gain of the smallest ball; yes or no by the largest."""
        radii = distance_percentiles(train.vectors, list(self.percentiles))
        if not graded:
            return Relevance.from_ball(queries.vectors, database.vectors, float(max(radii)))
        return Relevance.from_thresholds(queries.vectors, database.vectors, radii, self.gains)


TRUTHS: Registry[type[Truth]] = Registry(
    "ground truth",
    {
        "classes": Classes,
        "tags": Tags,
        "ball": Ball,
        "neighbours": Neighbours,
        "thresholds": Thresholds,
    },
)


def read_truth(table: Mapping[str, Any]) -> Truth:
    """The ground truth of a table whose ``kind`` names it."""
    if "kind" not in table:
        raise InputError(f"truth: kind is missing; there are {', '.join(TRUTHS)}.")
    if not isinstance(table["kind"], str):
        raise InputError(f"truth: kind must be a text in quotes, got {table['kind']!r}.")
    truth = read_table(TRUTHS[table["kind"]], table, "truth")
    if isinstance(truth, Neighbours):
        check_count(truth.k, "truth: k")
    return truth


def same_class(queries: NDArray[np.int64], database: NDArray[np.int64]) -> Relevance:
    """Relevance by class, where -1 is none: it matches nothing, not even another -1."""
    beyond = max(queries.max(initial=0), database.max(initial=0))
    return Relevance.from_classes(
        np.where(queries < 0, beyond + 1, queries), np.where(database < 0, beyond + 2, database)
    )


def _labels(items: Items) -> NDArray[np.int64]:
    if items.labels is None:
        raise InputError("truth: kind 'classes' needs a dataset with class labels.")
    return items.labels


def _tags(items: Items) -> Any:
    if items.tags is None:
        raise InputError("truth: kind 'tags' needs a dataset with tags.")
    return items.tags
