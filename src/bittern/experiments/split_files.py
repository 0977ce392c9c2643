"""The splits of a protocol as files, for programs that make codes of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.experiments.protocol import Protocol
from bittern.experiments.run_data import Root, RunData, load_dataset, root_of
from bittern.io.files import make_folder
from bittern.io.npz import write_arrays


def write_splits(
    protocol: Protocol,
    folder: str | os.PathLike[str],
    *,
    root: Root = None,
    runs: Sequence[int] | None = None,
) -> list[Path]:
    """Write the rows of each run to ``RUN.npz`` in a folder, after preprocessing.

    The arrays are ``train``, ``queries`` and ``database``; ``train_labels`` or ``train_tags``; and
    ``train_positions``, ``query_positions`` and ``database_positions`` in the dataset.  Labels of
    queries and database are left out, because no method may see them.
    """
    chosen = range(protocol.runs) if runs is None else runs
    if wrong := [run for run in chosen if not 0 <= run < protocol.runs]:
        raise InputError(f"run: there are {protocol.runs} runs, counted from 0, got {wrong[0]}.")
    dataset, place = load_dataset(protocol.dataset, root_of(protocol, root)), Path(folder)
    paths = []
    for run in chosen:
        data = protocol.kind.prepare(protocol, dataset, run, place)
        if not isinstance(data, RunData) or data.text_modality is not None:
            raise InputError("split: is for protocols that rank by codes of one modality.")
        paths.append(make_folder(place) / f"{run}.npz")
        write_arrays(paths[-1], _arrays(data))
    return paths


def _arrays(data: RunData) -> dict[str, NDArray[Any]]:
    train, queries, database = data.train, data.queries, data.database
    targets = {"train_labels": train.labels, "train_tags": train.tags}
    return {
        "train": train.vectors,
        "queries": queries.vectors,
        "database": database.vectors,
        "train_positions": train.positions,
        "query_positions": queries.positions,
        "database_positions": database.positions,
        **{name: one for name, one in targets.items() if one is not None},
    }
