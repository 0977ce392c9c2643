"""Search over shards: the nearest of each, merged by distance and id."""

from __future__ import annotations

import os
from concurrent.futures import Executor

import numpy as np

from bittern.checks import check_count, check_type
from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.index import FlatIndex, Hits
from bittern.scale.evaluating import check_codes, pairs_of
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner

Task = tuple[Codes, Shard, int | None, int | None, int | None]


def search(
    queries: Codes,
    shards: str | os.PathLike[str] | Shards,
    k: int | None = None,
    radius: int | None = None,
    *,
    executor: Executor | None = None,
) -> Hits:
    """The k nearest items of each query, or all within a radius, of a sharded database.

    Items have the ids of the shards, or else their positions in the whole database, and ties are in
    the order of ids.  Ids ascend over the shards, so the k nearest of all are among the first k of
    each shard by distance and id: the result is the same however the database was cut.
    """
    check_type(queries, Codes, "scale: queries")
    if (k is None) == (radius is None):
        raise InputError("scale.search: pass k or radius.")
    if k is not None:
        k = check_count(k, "scale.search: k")
    else:
        radius = check_count(radius, "scale.search: radius", least=0)
    opened, run = check_codes(Shards.open(shards), queries), Runner(executor)
    tasks = {shard.name: (queries, shard, k, radius, run.n_threads) for shard in opened}
    found: list[Hits] = []
    for _, hits in run(_search_shard, tasks, "search", pairs_of(queries, opened)):
        found = [*found, hits] if k is None else [_nearest([*found, hits], k)]
    if not found:
        raise InputError(f"{opened.folder}: has no shards.")
    return _within(found) if k is None else found[0]


def _search_shard(task: Task) -> Hits:
    """Search one shard, where this runs."""
    queries, shard, k, radius, n_threads = task
    try:
        index = FlatIndex(shard.codes, ids=shard.ids)
        if k is not None:
            return index.search(queries, k, n_threads=n_threads)
        return index.within(queries, radius, n_threads=n_threads)  # type: ignore[arg-type]
    except BitternError as error:
        raise type(error)(f"shard {shard.name}: {error}") from None


def _nearest(found: list[Hits], k: int) -> Hits:
    """The k nearest of all: by distance, then by id."""
    ids = np.concatenate([hits.ids for hits in found], axis=1)
    distances = np.concatenate([hits.distances for hits in found], axis=1)
    order = np.lexsort((ids, distances), axis=1)[:, :k]
    return Hits(*(np.take_along_axis(values, order, axis=1) for values in (ids, distances)))


def _within(found: list[Hits]) -> Hits:
    """All hits: by query, distance and id."""
    query = np.concatenate([np.repeat(np.arange(len(hits)), hits.sizes) for hits in found])
    ids = np.concatenate([hits.ids for hits in found])
    distances = np.concatenate([hits.distances for hits in found])
    order = np.lexsort((ids, distances, query))
    sizes = np.sum([hits.sizes for hits in found], axis=0)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Hits(ids[order], distances[order], offsets)
