"""Search over shards: the nearest of each, merged by distance and id."""

from __future__ import annotations

import os
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count, check_type
from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.index import FlatIndex, Hits
from bittern.index.hits import FAR, NONE
from bittern.scale.evaluating import check_codes
from bittern.scale.shards import Shard, Shards
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
    the order of ids: the result is the same however the database was cut.
    """
    check_type(queries, Codes, "scale: queries")
    if (k is None) == (radius is None):
        raise InputError("scale.search: pass k or radius.")
    if k is not None:
        k = check_count(k, "scale.search: k")
    else:
        radius = check_count(radius, "scale.search: radius", least=0)
    opened = check_codes(Shards.open(shards), queries)
    threads = None if executor is None else 1
    tasks = {shard.name: (queries, shard, k, radius, threads) for shard in opened}
    found = dict(Runner(executor)(_search_shard, tasks, "search"))
    in_order = [found[shard.name] for shard in opened]
    return _nearest(in_order, min(k, opened.n_items)) if k is not None else _within(in_order)


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
    """The k nearest of all shards: by distance, then by id."""
    ids = np.concatenate([hits.ids for hits in found], axis=1)
    distances = np.concatenate([hits.distances for hits in found], axis=1)
    distances = np.where(ids == NONE, FAR, distances)
    order = np.lexsort((ids, distances), axis=1)[:, :k]
    return Hits(*(np.take_along_axis(values, order, axis=1) for values in (ids, distances)))


def _within(found: list[Hits]) -> Hits:
    """All hits of all shards: by query, distance and id."""
    query = np.concatenate([np.repeat(np.arange(len(hits)), hits.sizes) for hits in found])
    ids = np.concatenate([hits.ids for hits in found])
    distances = np.concatenate([hits.distances for hits in found])
    order = np.lexsort((ids, distances, query))
    sizes: NDArray[np.int64] = np.bincount(query, minlength=len(found[0]))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Hits(ids[order], distances[order], offsets)
