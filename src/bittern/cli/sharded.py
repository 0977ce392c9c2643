"""What ``evaluate --shards`` and ``search --shards`` share: who works, what is read and shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bittern.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import numpy as np
    from numpy.typing import NDArray

    from bittern.cli.evaluated_files import CodeOptions, GroundTruthFiles
    from bittern.codes import Codes
    from bittern.index import Hits
    from bittern.profile import TieProfile
    from bittern.scale import Shards

Processes = Annotated[
    int | None, typer.Option(help="Work in so many processes of this machine instead of threads.")
]
Dask = Annotated[
    str | None, typer.Option(help="Work on a Dask cluster: its address, like tcp://127.0.0.1:8786.")
]


@contextmanager
def executor_for(processes: int | None, dask: str | None) -> Iterator[Executor | None]:
    """What runs the tasks: threads of this process (None), processes, or a cluster."""
    if processes is not None and dask is not None:
        raise InputError("give --processes or --dask, not both.")
    if processes is not None:
        from bittern.checks import check_count
        from bittern.parallel import Processes as Pool

        with Pool(check_count(processes, "--processes"), owner="--processes") as pool:
            yield pool
    elif dask is not None:
        from bittern.scale.cluster import connect

        with connect(dask) as executor:
            yield executor
    else:
        yield None


def count_shards(
    queries: Path,
    folder: Path,
    truth: GroundTruthFiles,
    options: CodeOptions,
    executor: Executor | None,
) -> TieProfile:
    """The tie profile of a sharded database; labels, tags and vectors are in its shards."""
    from bittern import scale
    from bittern.inputs import has_array, read_classes, read_gains, read_tags, read_vectors
    from bittern.relevance import Relevance

    found = scale.Shards.open(folder)
    codes = options.read(queries)
    relevance: Any
    if truth.relevance is not None:
        relevance = Relevance.from_matrix(read_gains(truth.relevance))
    elif truth.neighbours is not None:
        vectors = read_vectors(truth.query_vectors or queries, key=truth.key)[:]
        relevance = scale.Neighbours(vectors, truth.neighbours, truth.distance or "euclidean")
    elif truth.has_tags or truth.graded:
        relevance = scale.Tags(read_tags(truth.query_tags or queries), truth.graded)
    elif truth.query_labels is not None or has_array(queries, "labels"):
        relevance = scale.Classes(read_classes(truth.query_labels or queries, "--query-tags"))
    else:
        raise InputError(
            "evaluate: there is no ground truth; give --query-labels, --query-tags, --relevance, "
            "or --neighbours with --query-vectors; the shards have the rest."
        )
    partial = folder / ".partial" if os.access(folder, os.W_OK) else None
    return scale.profile(codes, found, relevance, executor=executor, partial=partial)


def search_shards(
    queries: Codes, shards: Shards, k: int, radius: int | None, executor: Executor | None
) -> list[dict[str, Any]]:
    """A row for each hit: query, id, distance, and the label if the shards have labels."""
    from bittern import scale

    wanted: dict[str, Any] = {"k": k} if radius is None else {"radius": radius}
    hits = scale.search(queries, shards, **wanted, executor=executor)
    rows = [
        {"query": query, "id": id_, "distance": distance}
        for query, listed in enumerate(hits.to_lists())
        for id_, distance in listed
    ]
    if "labels" in shards.parts:
        labels = _labels(hits, shards)
        rows = [{**row, "label": labels[row["id"]]} for row in rows]
    return rows


def _labels(hits: Hits, shards: Shards) -> dict[int, Any]:
    """The label of each id that was found; only shards with hits are read."""
    import numpy as np

    found: dict[int, Any] = {}
    wanted: NDArray[np.int64] = np.unique(hits.ids)
    for shard in shards:
        ids = shard.ids
        inside = wanted[(wanted >= ids[0]) & (wanted <= ids[-1])]
        if len(inside):
            labels = shard.labels[np.searchsorted(ids, inside)]
            found |= dict(zip(inside.tolist(), labels.tolist(), strict=True))
    return found
