"""Hash tables over shards: one surface for each, added up."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_type
from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.relevance import Relevance
from bittern.scale.evaluating import check_codes, pairs_of, truth_of
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner
from bittern.scale.truth import ShardTruth
from bittern.tables import TableSurface
from bittern.tables import table_surface as surface_of

Task = tuple[Codes, Shard, ShardTruth, dict[str, Any]]


def table_surface(
    queries: Codes,
    shards: str | os.PathLike[str] | Shards,
    relevance: Relevance | ShardTruth,
    *,
    bits_per_table: Sequence[int] | NDArray[np.integer[Any]],
    n_tables: Sequence[int] | NDArray[np.integer[Any]],
    segments: str = "consecutive",
    probe: int = 0,
    random_state: int = 0,
    executor: Executor | None = None,
) -> TableSurface:
    """What hash tables of a sharded database retrieve, for every K and L of a grid.

    It is exactly :func:`bittern.tables.table_surface` of the database in one piece.
    """
    check_type(queries, Codes, "scale: queries")
    opened, run = check_codes(Shards.open(shards), queries), Runner(executor)
    truth = truth_of(relevance, opened, len(queries)).prepare(opened, run)
    settings: dict[str, Any] = {
        "bits_per_table": bits_per_table,
        "n_tables": n_tables,
        "segments": segments,
        "probe": probe,
        "random_state": random_state,
        "n_threads": run.n_threads,
    }
    tasks = {shard.name: (queries, shard, truth.part(shard), settings) for shard in opened}
    total: TableSurface | None = None
    for _, surface in run(_surface_of, tasks, "look up", pairs_of(queries, opened)):
        total = surface if total is None else total + surface
    if total is None:
        raise InputError(f"{opened.folder}: has no shards.")
    return total


def _surface_of(task: Task) -> TableSurface:
    """The surface of one shard, where this runs."""
    queries, shard, truth, settings = task
    try:
        return surface_of(queries, shard.codes, truth.of(shard), **settings)
    except BitternError as error:
        raise type(error)(f"shard {shard.name}: {error}") from None
