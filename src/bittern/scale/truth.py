"""Ground truth of a sharded database: what the queries know; the shards have the rest."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_count
from bittern.errors import InputError
from bittern.relevance import Relevance
from bittern.relevance.neighbours import nearest_pairs
from bittern.relevance.sparse import SparseRelevance
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner


class ShardTruth(ABC):
    """Ground truth that is made shard by shard, where the shard is."""

    @abstractmethod
    def of(self, shard: Shard) -> Relevance:
        """The ground truth for the items of one shard."""

    def prepare(self, shards: Shards, run: Runner) -> ShardTruth:
        """The ground truth after what all shards must find before any is counted."""
        return self

    def part(self, shard: Shard) -> ShardTruth:
        """What a task for one shard must be sent."""
        return self

    @property
    def of_queries(self) -> tuple[str, int | None]:
        """What it knows of the queries, which is its first field, and of how many, if known."""
        name, values = next(iter(vars(self).items()))
        shape = getattr(values, "shape", None) or (
            len(values) if hasattr(values, "__len__") else None,
        )
        return name.removeprefix("query_"), shape[0]

    @property
    def fingerprint(self) -> str:
        """A hash of all that it holds."""
        digest = hashlib.sha256(type(self).__name__.encode())
        for name, value in sorted(vars(self).items()):
            array = np.ascontiguousarray(value.toarray() if hasattr(value, "toarray") else value)
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Classes(ShardTruth):
    """Relevant if in the same class; the shards have labels."""

    query_labels: Any

    def of(self, shard: Shard) -> Relevance:
        """The ground truth for the items of one shard."""
        return Relevance.from_classes(self.query_labels, shard.labels)


@dataclass(frozen=True, eq=False)
class Tags(ShardTruth):
    """Relevant if a tag is shared, or graded by their number; the shards have tags."""

    query_tags: Any
    graded: bool = False

    def of(self, shard: Shard) -> Relevance:
        """The ground truth for the items of one shard."""
        return Relevance.from_tags(self.query_tags, shard.tags, self.graded)


@dataclass(frozen=True, eq=False)
class Balls(ShardTruth):
    """Relevant within a radius, or graded by several; the shards have vectors."""

    query_vectors: Any
    radii: Sequence[float]
    gains: Sequence[int] = (1,)
    metric: str = "euclidean"

    def of(self, shard: Shard) -> Relevance:
        """The ground truth for the items of one shard."""
        return Relevance.from_thresholds(
            self.query_vectors, shard.vectors, self.radii, self.gains, metric=self.metric
        )


@dataclass(frozen=True, eq=False)
class Neighbours(ShardTruth):
    """Relevant if among the k nearest of the whole database; the shards have vectors.

    Each shard finds its own k nearest, and the nearest of these are the true ones.
    """

    query_vectors: Any
    k: int
    metric: str = "euclidean"

    def prepare(self, shards: Shards, run: Runner) -> ShardTruth:
        """Find the k nearest of all shards; ties go to the first in the database."""
        k = check_count(self.k, "Neighbours: k", most=None)
        if k > shards.n_items:
            raise InputError(
                f"Neighbours: k must be at most {shards.n_items}, the number of items, got {k}."
            )
        tasks = {shard.name: (self, shard) for shard in shards}
        found = dict(run(_nearest_in_shard, tasks, "find neighbours"))
        squares, positions = (
            np.concatenate([found[shard.name][i] for shard in shards], axis=1) for i in (0, 1)
        )
        order = np.lexsort((positions, squares), axis=1)[:, :k]
        return Listed(np.sort(np.take_along_axis(positions, order, axis=1), axis=1))

    def of(self, shard: Shard) -> Relevance:
        """The ground truth needs all shards; see :meth:`prepare`."""
        raise InputError("Neighbours: must be prepared with all shards first.")


def _nearest_in_shard(task: tuple[Neighbours, Shard]) -> tuple[Float64Array, NDArray[np.int64]]:
    """Squared distances and positions of the nearest of one shard, ``(n_queries, k)``."""
    wanted, shard = task
    k = min(wanted.k, shard.n)
    squares, rows = nearest_pairs(wanted.query_vectors, shard.vectors, k, wanted.metric)
    return squares, rows + shard.start


@dataclass(frozen=True, eq=False)
class Listed(ShardTruth):
    """The relevant items of each query by position in the whole database, ascending."""

    positions: NDArray[np.int64]  # (n_queries, k); -1 for items of other shards

    def part(self, shard: Shard) -> ShardTruth:
        """The same list, without items of other shards."""
        inside = (self.positions >= shard.start) & (self.positions < shard.stop)
        return replace(self, positions=np.where(inside, self.positions, -1))

    def of(self, shard: Shard) -> Relevance:
        """The ground truth for the items of one shard."""
        inside = (self.positions >= shard.start) & (self.positions < shard.stop)
        offsets = np.concatenate(([0], np.cumsum(inside.sum(axis=1))))
        items = self.positions[inside] - shard.start
        return SparseRelevance.from_lists(offsets, items, np.ones(len(items), np.int64), shard.n)


@dataclass(frozen=True, eq=False)
class Whole(ShardTruth):
    """Ground truth of the whole database, made beforehand; tasks are sent their part of it."""

    relevance: Relevance

    def part(self, shard: Shard) -> ShardTruth:
        """The part of one shard."""
        return Whole(self.relevance.shard(shard.start, shard.stop))

    def of(self, shard: Shard) -> Relevance:
        """The ground truth for the items of one shard."""
        return self.relevance

    @property
    def fingerprint(self) -> str:
        """A hash of all that it holds."""
        import pickle

        return hashlib.sha256(pickle.dumps(self.relevance)).hexdigest()
