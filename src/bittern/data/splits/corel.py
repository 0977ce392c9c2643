"""The evidence paper's split of Corel: two collections, each with images to query by."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_count
from bittern.data.balance import Draws
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.errors import InputError

__all__ = ["CorelSplit", "ExampleQueries", "corel", "deal"]


QUARTERS = ("validation_queries", "validation_database", "queries", "database")

# Eight images of a group in turn, as numbers of QUARTERS: a quarter to query by, and the two
# collections alternate; the databases come first, so that two images reach both.
TURNS = np.array([1, 3, 0, 3, 1, 3, 1, 2])
SWAPPED = (TURNS + 2) % 4


@dataclass(frozen=True, slots=True, eq=False)
class ExampleQueries:
    """Queries of one to several example images each, of one category.

    Queries stand in order of category, then size, then draw: for 63 categories, sizes 1…6 and ten
    draws, ``images`` is ``(3780, 6)``.  A query of n images has its positions, ascending, in the
    first n columns and -1 in the others.
    """

    images: PositionArray  # (n_queries, largest), -1 where there is none
    categories: NDArray[np.int64]  # (n_queries,)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of images of each query."""
        return np.count_nonzero(self.images >= 0, axis=1).astype(np.int64)

    def of_size(self, n: int) -> ExampleQueries:
        """The queries of ``n`` images; their ``images`` are ``(n_queries, n)`` without gaps."""
        chosen = self.sizes == n
        return ExampleQueries(self.images[chosen][:, :n], self.categories[chosen])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class CorelSplit(Split):
    """Two collections, each of images to query by and a database, with n-image queries for both.

    The training collection is ``train``; its two parts are ``validation_queries`` and
    ``validation_database``, on which weights are learned.  The test collection is ``queries`` and
    ``database``.  The n-image queries draw on ``validation_queries`` and ``queries``.
    """

    training_images: PositionArray  # (n_queries, largest), as in ExampleQueries
    training_categories: NDArray[np.int64]  # (n_queries,)
    test_images: PositionArray
    test_categories: NDArray[np.int64]

    def __post_init__(self) -> None:
        Split.__post_init__(self)
        self._check_examples("training_images", self.training_queries, self.validation_queries)
        self._check_examples("test_images", self.test_queries, self.queries)

    @property
    def training_queries(self) -> ExampleQueries:
        """The n-image queries to the validation database."""
        return ExampleQueries(self.training_images, self.training_categories)

    @property
    def test_queries(self) -> ExampleQueries:
        """The n-image queries to the test database."""
        return ExampleQueries(self.test_images, self.test_categories)

    def _check_examples(self, name: str, asked: ExampleQueries, pool: PositionArray) -> None:
        images = asked.images
        if images.ndim != 2 or asked.categories.shape != images.shape[:1]:
            raise InputError(
                f"{self.name}: {name} must be 2-D with one category a row, "
                f"got {images.shape} and {asked.categories.shape}."
            )
        outside = ~np.isin(images, pool) & (images != -1)
        if outside.any():
            raise InputError(
                f"{self.name}: {name} must come from the images to query by, "
                f"position {images[outside][0]} does not."
            )


def corel(
    dataset: Dataset,
    draws: Draws,
    *,
    per_size: int = 10,
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6),
) -> CorelSplit:
    """A quarter of the images to query by, the rest to be ranked; both halved into collections.

    Section 2.3 of [Yavlinsky-2004]: for every category of each collection, ten random queries of
    n of its images, n = 1…6.  Where the paper is silent, ours is: the partition is made within
    every category (each part within one image of its share); the images of a query are distinct,
    and so are the ten queries of one category and size.
    """
    if dataset.labels is None:
        raise InputError(f"corel: needs categories as class labels, {dataset.name} has none.")
    check_count(per_size, "corel: per_size")
    if not sizes or len(set(sizes)) < len(sizes):
        raise InputError(f"corel: sizes must be different numbers of images, got {sizes}.")
    for n in sizes:
        check_count(n, "corel: sizes")
    quarters = deal(dataset.labels, draws)
    training = _examples(dataset, quarters["validation_queries"], sizes, per_size, draws)
    test = _examples(dataset, quarters["queries"], sizes, per_size, draws)
    return CorelSplit(
        name="corel",
        n_items=len(dataset),
        **two_collections(quarters),
        balanced_by="class",
        random_state=draws.random_state,
        run=draws.run,
        training_images=training.images,
        training_categories=training.categories,
        test_images=test.images,
        test_categories=test.categories,
    )


def deal(groups: NDArray[np.int64], draws: Draws) -> dict[str, PositionArray]:
    """Every group's items dealt 1 : 3 : 1 : 3 to the :data:`QUARTERS`, within one of these shares.

    Every other group swaps the two collections, so that what is left over does not all go to one.
    """
    order = draws.shuffled(np.arange(len(groups)))
    order = order[np.argsort(groups[order], kind="stable")]
    _, first, number = np.unique(groups[order], return_index=True, return_inverse=True)
    turn = (np.arange(len(order)) - first[number]) % len(TURNS)
    quarter = np.where(number % 2 == 0, TURNS[turn], SWAPPED[turn])
    return {name: np.sort(order[quarter == i]) for i, name in enumerate(QUARTERS)}


def two_collections(quarters: dict[str, PositionArray]) -> dict[str, Any]:
    """The fields of a split whose training set is the whole training collection."""
    train = np.concatenate([quarters["validation_queries"], quarters["validation_database"]])
    parts = (("validation_queries", "train"), ("validation_database", "train"))
    return {**quarters, "train": train, "parts": parts}


def _examples(
    dataset: Dataset, pool: PositionArray, sizes: tuple[int, ...], per_size: int, draws: Draws
) -> ExampleQueries:
    labels = dataset.labels
    assert labels is not None
    categories = np.unique(labels[labels >= 0])
    images = np.full((len(categories) * len(sizes) * per_size, max(sizes)), -1, dtype=np.intp)
    row = 0
    for category in categories:
        members = pool[labels[pool] == category]
        for n in sizes:
            if comb(len(members), n) < per_size:
                raise InputError(
                    f"corel: {per_size} different queries of {n} images cannot be drawn from "
                    f"{len(members)} images to query by in category "
                    f"'{dataset.class_names[category]}' ({np.sum(labels == category)} in all)."
                )
            images[row : row + per_size, :n] = _distinct_subsets(members, n, per_size, draws)
            row += per_size
    return ExampleQueries(images, np.repeat(categories, len(sizes) * per_size))


def _distinct_subsets(members: PositionArray, n: int, count: int, draws: Draws) -> list[list[int]]:
    found: dict[tuple[int, ...], None] = {}  # keeps the order of drawing
    while len(found) < count:
        found[tuple(np.sort(draws.shuffled(members)[:n]).tolist())] = None
    return [list(subset) for subset in found]
