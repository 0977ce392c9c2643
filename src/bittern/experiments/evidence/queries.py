"""Queries of example images, for the training and the test partition of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray
from bittern.data import Dataset, Split, make_split
from bittern.data.splits import SETS, CorelSplit
from bittern.errors import InputError
from bittern.experiments.evidence.topics import find_topics
from bittern.registry import Registry

if TYPE_CHECKING:
    from bittern.experiments.evidence.paradigm import EvidenceSettings
    from bittern.experiments.protocol import Protocol

TRAINING, TEST = "training", "test"


@dataclass(frozen=True, slots=True, eq=False)
class PartitionQueries:
    """Queries to one partition; all positions are those of the dataset.

    The database is ranked; negative examples are drawn from the pool, which is not.
    """

    images: PositionArray  # (n_queries, most examples), padded with -1
    categories: NDArray[np.int64]  # (n_queries,)
    pool: PositionArray
    database: PositionArray
    relevant: NDArray[np.bool_]  # (n_queries, len(database))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of examples of each query."""
        return np.count_nonzero(self.images >= 0, axis=1).astype(np.int64)

    @property
    def fingerprint(self) -> str:
        """Short hash of what scores depend on."""
        digest = hashlib.sha256()
        for part in (self.images, self.categories, self.pool, self.database):
            digest.update(f"{part.shape}".encode())
            digest.update(np.ascontiguousarray(part, "<i8").tobytes())
        return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True, eq=False)
class RunQueries:
    """The queries of a run, and the split that they belong to.

    With ``in_turn``, both partitions get the same queries, and a method learns from all queries but
    the one it is applied to.
    """

    split: Split
    training: PartitionQueries
    test: PartitionQueries
    in_turn: bool
    names: tuple[str, ...]  # of all categories
    withheld: tuple[str, ...] = ()  # words that are topics, so that no text may have them

    def of(self, partition: str) -> PartitionQueries:
        """The queries of one partition."""
        return {TRAINING: self.training, TEST: self.test}[partition]


def draw_queries(
    protocol: Protocol, settings: EvidenceSettings, dataset: Dataset, run: int
) -> RunQueries:
    """The queries of a run of the protocol."""
    run = 0 if protocol.split.repeated else run
    return QUERY_SPLITS[protocol.split.name](protocol, settings, dataset, run)


def run_seed(protocol: Protocol, run: int, what: str) -> int:
    """A seed that all methods of a run share."""
    text = f"{protocol.random_state} {run} {what}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1


def _by_category(
    protocol: Protocol, settings: EvidenceSettings, dataset: Dataset, run: int
) -> RunQueries:
    """Queries of one to six images of each category (2.3 of [Yavlinsky-2004])."""
    if dataset.labels is None:
        raise InputError(f"evidence: needs categories as class labels, {dataset.name} has none.")
    labels = dataset.labels
    split = make_split(
        "corel", dataset, random_state=protocol.random_state, run=run, **protocol.split.sizes
    )
    assert isinstance(split, CorelSplit)
    training, test = (
        PartitionQueries(
            asked.images,
            asked.categories,
            pool,
            database,
            asked.categories[:, None] == labels[database],
        )
        for asked, pool, database in (
            (split.training_queries, split.validation_queries, split.validation_database),
            (split.test_queries, split.queries, split.database),
        )
    )
    return RunQueries(split, training, test, in_turn=False, names=dataset.class_names)


def _by_topic(
    protocol: Protocol, settings: EvidenceSettings, dataset: Dataset, run: int
) -> RunQueries:
    """Topics whose examples are in neither partition (2.4)."""
    sizes = dict(protocol.split.sizes)
    topics = find_topics(
        settings, dataset, sizes.pop("topics", None), run_seed(protocol, run, "topics")
    )
    rest = np.setdiff1d(np.arange(len(dataset)), topics.kept_out)
    tagged = replace(dataset.take(rest), tags=topics.relevant[:, rest].T, tag_names=topics.titles)
    split = make_split("trecvid", tagged, random_state=protocol.random_state, run=run, **sizes)
    sets = {name: rest[getattr(split, name)] for name in SETS}
    training, test = (
        PartitionQueries(
            topics.images,
            topics.numbers,
            sets[pool],
            sets[database],
            topics.relevant[:, sets[database]],
        )
        for pool, database in (
            ("validation_queries", "validation_database"),
            ("queries", "database"),
        )
    )
    whole = _with_examples(split, sets, topics.images, len(dataset))
    withheld = topics.titles if settings.topics == "words" else ()
    return RunQueries(whole, training, test, True, topics.names, withheld)


def _with_examples(
    split: Split, sets: dict[str, PositionArray], images: PositionArray, n_items: int
) -> Split:
    """The split in positions of the whole dataset, with the topics' examples among the queries.

    The search for leaks then compares them with everything that is ranked or learned from.
    """
    return Split(
        name=split.name,
        n_items=n_items,
        **(sets | {"queries": np.union1d(sets["queries"], images[images >= 0])}),
        parts=split.parts,
        balanced_by=split.balanced_by,
        random_state=split.random_state,
        run=split.run,
    )


#: How queries are drawn, by the name of the split.
QUERY_SPLITS: Registry[Callable[[Protocol, EvidenceSettings, Dataset, int], RunQueries]] = Registry(
    "split for evidence", {"corel": _by_category, "trecvid": _by_topic}
)
