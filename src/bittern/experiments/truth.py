"""Ground truths of protocols: which items are relevant, and how much."""

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
from bittern.experiments.run_data import SplitSet
from bittern.io.toml import read_table
from bittern.registry import Registry
from bittern.relevance import Relevance, ball_radius


class Truth(ABC):
    """What makes an item relevant; it may learn from training rows only."""

    @abstractmethod
    def between(
        self, queries: SplitSet, database: SplitSet, train: SplitSet, *, graded: bool = True
    ) -> Relevance:
        """Relevance of the database items to the queries; yes or no unless ``graded``."""

    def target(self, items: SplitSet, *, graded: bool, train: SplitSet | None = None) -> Any:
        """The ``y`` of training rows; or of other rows, which learns only from ``train``."""
        return self.between(items, items, items if train is None else train, graded=graded)

    def check(self, items: SplitSet) -> None:  # noqa: B027 (most need only vectors)
        """Raise InputError if the dataset lacks the labels or tags that this needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes(Truth):
    """An item of the query's class is relevant; an item without a class (-1) matches nothing."""

    kind: str

    def between(
        self, queries: SplitSet, database: SplitSet, train: SplitSet, *, graded: bool = True
    ) -> Relevance:
        """Same class."""
        return same_class(_labels(queries), _labels(database))

    def target(self, items: SplitSet, *, graded: bool, train: SplitSet | None = None) -> Any:
        """The labels, or one column per class if some rows have no class."""
        labels = _labels(items)
        if labels.min(initial=0) >= 0:
            return labels
        return labels[:, None] == np.unique(labels[labels >= 0])

    def check(self, items: SplitSet) -> None:
        """The dataset must have labels."""
        _labels(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags(Truth):
    """An item that shares a tag is relevant; graded, the gain is the number of shared tags."""

    kind: str
    graded: bool = False

    def between(
        self, queries: SplitSet, database: SplitSet, train: SplitSet, *, graded: bool = True
    ) -> Relevance:
        """Shared tags."""
        return Relevance.from_tags(_tags(queries), _tags(database), graded=graded and self.graded)

    def target(self, items: SplitSet, *, graded: bool, train: SplitSet | None = None) -> Any:
        """The tags, or the relevance between the rows if grades matter."""
        if graded and self.graded:
            return self.between(items, items, items)
        return _tags(items)

    def check(self, items: SplitSet) -> None:
        """The dataset must have tags."""
        _tags(items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball(Truth):
    """An item within a radius is relevant (3.3.1 of [Moran-2016]).

    Without ``radius``, it is the mean distance of ``sample`` training rows to their
    ``neighbours``-th nearest neighbour ``among`` the training rows (``"train"``) or among as many
    items as the database has (``"database"``).  The latter also looks at training rows only: if
    they are a tenth of the database, it takes the distance to a tenth as many neighbours, rounded.
    """

    kind: str
    radius: float | None = None
    neighbours: int = 50
    sample: int = 100
    among: str = "train"

    def __post_init__(self) -> None:
        if self.radius is not None and self.radius <= 0:
            raise InputError(f"truth: radius must be greater than 0, got {self.radius}.")
        if self.among not in ("train", "database"):
            raise InputError(f"truth: among must be 'train' or 'database', got {self.among!r}.")

    def between(
        self, queries: SplitSet, database: SplitSet, train: SplitSet, *, graded: bool = True
    ) -> Relevance:
        """Within the radius."""
        radius = self.radius
        if radius is None:
            radius = ball_radius(
                train.vectors,
                neighbours=self._neighbours(len(database), len(train)),
                sample=self.sample,
                random_state=0,
            )
        return Relevance.from_ball(queries.vectors, database.vectors, radius)

    def _neighbours(self, n_database: int, n_train: int) -> int:
        """How many neighbours the ball of a training row holds among the training rows."""
        if self.among == "train":
            return self.neighbours
        scaled = round(self.neighbours * n_train / n_database)
        if not scaled:
            raise InputError(
                f"truth: {n_train:,} training rows are too few for a ball of {self.neighbours} "
                f"among {n_database:,} items; give more, or a radius."
            )
        return scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours(Truth):
    """The k nearest items are relevant (footnote 6 of section 3.3.1 of [Moran-2016])."""

    kind: str
    k: int

    def between(
        self, queries: SplitSet, database: SplitSet, train: SplitSet, *, graded: bool = True
    ) -> Relevance:
        """The k nearest."""
        return Relevance.from_neighbours(queries.vectors, database.vectors, self.k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(Truth):
    """Graded balls: radii at percentiles of the distances between training rows, with gains.

    Section 5.4 of [He-Cakir-Bargal-Sclaroff-2018].
    """

    kind: str
    percentiles: tuple[float, ...] = (5, 1, 0.2, 0.1)
    gains: tuple[int, ...] = (1, 2, 5, 10)

    def __post_init__(self) -> None:
        if len(self.percentiles) != len(self.gains):
            raise InputError(
                f"truth: there must be one gain per percentile, got {len(self.percentiles)} and "
                f"{len(self.gains)}."
            )

    def between(
        self, queries: SplitSet, database: SplitSet, train: SplitSet, *, graded: bool = True
    ) -> Relevance:
        """The gain of the smallest ball that holds the item; ungraded, the largest ball decides."""
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
    """The ground truth that a table with the key ``kind`` describes."""
    if "kind" not in table:
        raise InputError(f"truth: kind is missing; it can be {', '.join(TRUTHS)}.")
    if not isinstance(table["kind"], str):
        raise InputError(f"truth: kind must be a string in quotes, got {table['kind']!r}.")
    truth = read_table(TRUTHS[table["kind"]], table, "truth")
    if isinstance(truth, Neighbours):
        check_count(truth.k, "truth: k")
    return truth


def same_class(queries: NDArray[np.int64], database: NDArray[np.int64]) -> Relevance:
    """Relevance by class, where -1 means no class: it matches nothing, not even another -1."""
    beyond = max(queries.max(initial=0), database.max(initial=0))
    return Relevance.from_classes(
        np.where(queries < 0, beyond + 1, queries), np.where(database < 0, beyond + 2, database)
    )


def _labels(items: SplitSet) -> NDArray[np.int64]:
    if items.labels is None:
        raise InputError("truth: kind 'classes' needs a dataset with class labels.")
    return items.labels


def _tags(items: SplitSet) -> Any:
    if items.tags is None:
        raise InputError("truth: kind 'tags' needs a dataset with tags.")
    return items.tags
