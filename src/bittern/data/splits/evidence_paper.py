"""Splits of the evidence paper [Yavlinsky-2004]: two collections with queries and a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_count
from bittern.data.balance import Shuffler
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.errors import InputError
from bittern.registry import Registry

QUARTERS = ("validation_queries", "validation_database", "queries", "database")

# The quarter (index into QUARTERS) of each of eight images of a group: one in four is a query, and
# the collections alternate; the databases come first, so that two images reach both.
TURNS = np.array([1, 3, 0, 3, 1, 3, 1, 2])
SWAPPED = (TURNS + 2) % 4


@dataclass(frozen=True, slots=True, eq=False)
class ExampleQueries:
    """Queries of one or more example images of the same category.

    Queries are ordered by category, then size, then draw: for 63 categories, sizes 1…6 and ten
    draws, ``images`` is ``(3780, 6)``.  A query of n images has its positions, ascending, in the
    first n columns and -1 in the others.
    """

    images: PositionArray  # (n_queries, largest), padded with -1
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
    """Two collections, each with query images and a database, and n-image queries for both.

    The training collection is ``train``; its two parts are ``validation_queries`` and
    ``validation_database``, from which weights are learned.  The test collection is ``queries`` and
    ``database``.  The n-image queries are drawn from ``validation_queries`` and ``queries``.
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

    def _check_examples(self, name: str, queries: ExampleQueries, pool: PositionArray) -> None:
        images = queries.images
        if images.ndim != 2 or queries.categories.shape != images.shape[:1]:
            raise InputError(
                f"{self.name}: {name} must be 2-D with one category per row, "
                f"got {images.shape} and {queries.categories.shape}."
            )
        outside = ~np.isin(images, pool) & (images != -1)
        if outside.any():
            raise InputError(
                f"{self.name}: {name} must come from the query images, "
                f"but position {images[outside][0]} does not."
            )


def corel(
    dataset: Dataset,
    shuffler: Shuffler,
    *,
    per_size: int = 10,
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6),
) -> CorelSplit:
    """A quarter of the images are queries, the rest is ranked; both are halved into collections.

    Section 2.3 of [Yavlinsky-2004]: for every category of each collection, ten random queries of n
    of its images, n = 1…6.  Our choices, where the paper says nothing: the partition is made within
    every category (each part within one image of its share); the images of a query are distinct,
    and so are the ten queries of one category and size.
    """
    if dataset.labels is None:
        raise InputError(f"corel: needs categories as class labels, but {dataset.name} has none.")
    check_count(per_size, "corel: per_size")
    if not sizes or len(set(sizes)) < len(sizes):
        raise InputError(f"corel: sizes must be different numbers of images, got {sizes}.")
    for n in sizes:
        check_count(n, "corel: sizes")
    quarters = _deal(dataset.labels, shuffler)
    training = _examples(dataset, quarters["validation_queries"], sizes, per_size, shuffler)
    test = _examples(dataset, quarters["queries"], sizes, per_size, shuffler)
    return CorelSplit(
        name="corel",
        n_items=len(dataset),
        **_two_collections(quarters),
        balanced_by="class",
        random_state=shuffler.random_state,
        run=shuffler.run,
        training_images=training.images,
        training_categories=training.categories,
        test_images=test.images,
        test_categories=test.categories,
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class TrecvidSplit(Split):
    """Two collections as in Corel, and the topics whose example images query both.

    ``validation_queries`` and ``queries`` are the quarter of each collection that is never ranked
    and can give negative examples; the queries themselves are the topics' own images.
    """

    topics: tuple[str, ...]

    def __post_init__(self) -> None:
        Split.__post_init__(self)
        object.__setattr__(self, "topics", tuple(self.topics))
        if len(set(self.topics)) < max(2, len(self.topics)):
            raise InputError(
                f"{self.name}: needs at least two different topics to leave one out, "
                f"got {list(self.topics)}."
            )

    def folds(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each topic to test on, with all others for learning."""
        for held_out in self.topics:
            yield held_out, tuple(topic for topic in self.topics if topic != held_out)


def trecvid(
    dataset: Dataset, shuffler: Shuffler, *, topics: Sequence[str] | None = None
) -> TrecvidSplit:
    """Partition keyframes as ``corel``; both sides have all topics, left out one at a time.

    Section 2.4 of [Yavlinsky-2004].  The dataset's tags say which keyframe is relevant to which
    topic.  Our choice, where the paper says nothing: the keyframes relevant to a topic are divided
    like a category (a keyframe of several topics counts for the rarest), so that both databases
    have some; a topic for which that fails is an error.
    """
    if dataset.tags is None:
        raise InputError(
            f"trecvid: needs tags that say which item is relevant to which topic, "
            f"but {dataset.name} has none."
        )
    names = tuple(dataset.tag_names if topics is None else topics)
    table = Registry("topic", {name: i for i, name in enumerate(dataset.tag_names)})
    relevant = _columns(dataset.tags, [table[name] for name in names])
    quarters = _deal(_rarest(relevant), shuffler)
    for side in ("validation_database", "database"):
        found = np.asarray(relevant[quarters[side]].sum(axis=0)).ravel()
        if not found.all():
            topic = int(np.argmin(found))
            total = int(relevant[:, [topic]].sum())
            raise InputError(
                f"trecvid: topic '{names[topic]}' has {total} relevant items, none of them in "
                f"{side}; leave it out of topics=."
            )
    return TrecvidSplit(
        name="trecvid",
        n_items=len(dataset),
        **_two_collections(quarters),
        balanced_by="rarest topic",
        random_state=shuffler.random_state,
        run=shuffler.run,
        topics=names,
    )


def _deal(groups: NDArray[np.int64], shuffler: Shuffler) -> dict[str, PositionArray]:
    """Every group's items divided 1 : 3 : 1 : 3 among the :data:`QUARTERS`, to within one item.

    Every other group swaps the two collections, so that the remainders do not all go to one.
    """
    order = shuffler.shuffled(np.arange(len(groups)))
    order = order[np.argsort(groups[order], kind="stable")]
    _, first, number = np.unique(groups[order], return_index=True, return_inverse=True)
    turn = (np.arange(len(order)) - first[number]) % len(TURNS)
    quarter = np.where(number % 2 == 0, TURNS[turn], SWAPPED[turn])
    return {name: np.sort(order[quarter == i]) for i, name in enumerate(QUARTERS)}


def _two_collections(quarters: dict[str, PositionArray]) -> dict[str, Any]:
    """The fields of a split whose training set is the whole training collection."""
    train = np.concatenate([quarters["validation_queries"], quarters["validation_database"]])
    parts = (("validation_queries", "train"), ("validation_database", "train"))
    return {**quarters, "train": train, "parts": parts}


def _examples(
    dataset: Dataset, pool: PositionArray, sizes: tuple[int, ...], per_size: int, shuffler: Shuffler
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
                noun = "image" if n == 1 else "images"
                raise InputError(
                    f"corel: {per_size} different queries of {n} {noun} cannot be drawn from "
                    f"{len(members)} query images in category "
                    f"'{dataset.class_names[category]}' ({np.sum(labels == category)} in all)."
                )
            images[row : row + per_size, :n] = _distinct_subsets(members, n, per_size, shuffler)
            row += per_size
    return ExampleQueries(images, np.repeat(categories, len(sizes) * per_size))


def _distinct_subsets(
    members: PositionArray, n: int, count: int, shuffler: Shuffler
) -> list[list[int]]:
    subsets: dict[tuple[int, ...], None] = {}  # keeps the order of drawing
    while len(subsets) < count:
        subsets[tuple(np.sort(shuffler.shuffled(members)[:n]).tolist())] = None
    return [list(subset) for subset in subsets]


def _columns(tags: Any, columns: list[int]) -> Any:
    import scipy.sparse

    return (scipy.sparse.csr_array(tags)[:, columns] != 0).astype(np.int64)


def _rarest(relevant: Any) -> NDArray[np.int64]:
    """For each item the column, of those it has, with the fewest items; -1 for none."""
    counts = np.asarray(relevant.sum(axis=0)).ravel()
    groups = np.full(relevant.shape[0], -1, dtype=np.int64)
    for column in np.argsort(-counts, kind="stable"):  # the rarest comes last and wins
        groups[relevant[:, [column]].nonzero()[0]] = column
    return groups
