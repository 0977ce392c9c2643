"""Evaluate over shards: one profile for each, added up."""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

from bittern.checks import check_type
from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.io.files import make_folder
from bittern.metrics import Scores
from bittern.metrics import evaluate as evaluate_profile
from bittern.metrics.scores import Names
from bittern.profile import TieProfile
from bittern.relevance import Relevance
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner
from bittern.scale.truth import ShardTruth, Whole

Task = tuple[Codes, Shard, ShardTruth, int | None]


def evaluate(
    queries: Codes,
    shards: str | os.PathLike[str] | Shards,
    relevance: Relevance | ShardTruth,
    metrics: Names | None = None,
    *,
    executor: Executor | None = None,
    partial: str | os.PathLike[str] | None = None,
    random_state: int = 0,
) -> Scores:
    """Scores of all queries against a sharded database; exactly those of one machine.

    ``relevance`` covers the whole database, or is one of :class:`Classes`, :class:`Tags`,
    :class:`Balls` and :class:`Neighbours`, which find labels, tags and vectors in the shards.
    Without an ``executor`` the threads of this process count.  ``partial`` is a folder for finished
    shards: a run that was stopped goes on from there, and it is removed at the end.
    """
    counted = profile(queries, shards, relevance, executor=executor, partial=partial)
    return evaluate_profile(counted, metrics, random_state=random_state)


def profile(
    queries: Codes,
    shards: str | os.PathLike[str] | Shards,
    relevance: Relevance | ShardTruth,
    *,
    executor: Executor | None = None,
    partial: str | os.PathLike[str] | None = None,
) -> TieProfile:
    """The tie profile of a sharded database: the sum of those of its shards."""
    check_type(queries, Codes, "scale: queries")
    opened = check_codes(Shards.open(shards), queries)
    truth = truth_of(relevance, opened, len(queries)).prepare(opened, run := Runner(executor))
    kept, total = _Partial.of(partial, queries, truth), _Sum(len(opened))
    places = {shard.name: place for place, shard in enumerate(opened)}
    tasks: dict[str, Task] = {}
    for shard in opened:
        if (found := kept.load(shard)) is not None:
            total.add(places[shard.name], found)
        else:
            tasks[shard.name] = queries, shard, truth.part(shard), run.n_threads
    for name, counted in run(_profile_of, tasks, "count", pairs_of(queries, opened)):
        kept.save(opened.shards[places[name]], counted)
        total.add(places[name], counted)
    kept.remove()
    if total.whole is None:
        raise InputError(f"{opened.folder}: has no shards.")
    return total.whole


def check_codes(shards: Shards, queries: Codes) -> Shards:
    """The shards, if they hold codes that these queries can be compared with."""
    if "codes" not in shards.parts:
        raise InputError(
            f"{shards.folder}: its shards have no codes; scale.encode(hasher, …) makes them."
        )
    if shards.n_bits != queries.n_bits:
        raise InputError(
            f"scale: queries have {queries.n_bits} bits, the shards {shards.n_bits}; "
            "encode both with the same hasher."
        )
    return shards


def pairs_of(queries: Codes, shards: Shards) -> dict[str, int]:
    """How many pairs of a query and an item each shard has."""
    return {shard.name: len(queries) * shard.n for shard in shards}


def truth_of(relevance: Relevance | ShardTruth, shards: Shards, n_queries: int) -> ShardTruth:
    """The ground truth, if it is for these queries and shards."""
    if isinstance(relevance, ShardTruth):
        what, n_known = relevance.of_queries
        if n_known not in (None, n_queries):
            raise InputError(
                f"scale: there are {n_queries:,} queries, but {what} for {n_known:,} of them."
            )
        return relevance
    check_type(relevance, Relevance, "scale: relevance")
    if (relevance.n_queries, relevance.n_database) != (n_queries, shards.n_items):
        raise InputError(
            f"scale: relevance is for {relevance.n_queries:,} queries by "
            f"{relevance.n_database:,} items, but there are {n_queries:,} queries and "
            f"{shards.n_items:,} items."
        )
    return Whole(relevance)


def _profile_of(task: Task) -> TieProfile:
    """Count one shard, where this runs; without the codes, which need not travel."""
    queries, shard, truth, n_threads = task
    try:
        counted = TieProfile.from_codes(queries, shard.codes, truth.of(shard), n_threads=n_threads)
    except BitternError as error:
        raise type(error)(f"shard {shard.name}: {error}") from None
    return TieProfile(counts=counted.counts, gains=counted.gains, unretrieved=counted.unretrieved)


class _Sum:
    """Profiles of shards added up as a tree.

    Two neighbours are added as soon as both are there, then the sum and its neighbour, and so on.
    So the shape of the sum depends on the number of shards alone, not on which is done first, and
    few profiles are held at a time if shards are done roughly in order.
    """

    def __init__(self, n_shards: int) -> None:
        self.n_shards = n_shards
        self.whole: TieProfile | None = None  # when all are there
        self._waiting: dict[tuple[int, int], TieProfile] = {}  # by level and place

    def add(self, place: int, counted: TieProfile) -> None:
        """Take the profile of a shard, by its place among all of them."""
        level, width = 0, self.n_shards
        while width > 1:
            neighbour = place ^ 1
            if neighbour < width:  # the last of an odd number goes up alone
                if (level, neighbour) not in self._waiting:
                    self._waiting[level, place] = counted
                    return
                other = self._waiting.pop((level, neighbour))
                counted = counted + other if place < neighbour else other + counted
            level, place, width = level + 1, place // 2, -(-width // 2)
        self.whole = counted


class _Partial:
    """Profiles of finished shards in a folder, by what they depend on.

    Every evaluation has a folder of its own in it, so that several at a time do not disturb each
    other.
    """

    def __init__(self, folder: Path | None, key: str) -> None:
        self.folder, self.key = folder, key

    @classmethod
    def of(
        cls, folder: str | os.PathLike[str] | None, queries: Codes, truth: ShardTruth
    ) -> _Partial:
        """The folder, created if it is missing; None keeps nothing."""
        if folder is None:
            return cls(None, "")
        digest = hashlib.sha256(f"{queries.n_bits} {truth.fingerprint}".encode())
        digest.update(queries.words.tobytes())
        key = digest.hexdigest()
        return cls(make_folder(Path(folder, key[:24])), key)

    def path(self, shard: Shard) -> Path | None:
        """Where the profile of a shard belongs."""
        if self.folder is None:
            return None
        files = " ".join(f"{part} {file.sha256}" for part, file in shard.files.items())
        key = hashlib.sha256(f"{self.key} {shard.start} {files}".encode()).hexdigest()
        return self.folder / f"{shard.name}-{key[:24]}.npz"

    def load(self, shard: Shard) -> TieProfile | None:
        """The profile of a finished shard."""
        path = self.path(shard)
        return TieProfile.load(path) if path is not None and path.exists() else None

    def save(self, shard: Shard, counted: TieProfile) -> None:
        """Keep the profile of a shard."""
        if (path := self.path(shard)) is not None:
            make_folder(path.parent)  # the same evaluation in another process may have ended
            counted.save(path)

    def remove(self) -> None:
        """Remove the folder, because the sum is complete."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            with suppress(OSError):  # another evaluation has its folder there
                self.folder.parent.rmdir()
