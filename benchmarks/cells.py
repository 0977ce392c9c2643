"""Cells of an experiment, measured in parallel processes and stored as they finish."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import bittern as bt

Cell = dict[str, Any]


def place(folder: Path, *key: object) -> Path:
    """The file of a cell."""
    name = "-".join(str(part).replace(",", "").replace(" ", "-") for part in key)
    return folder / f"cell-{name}.json"


def fill(
    folder: Path,
    jobs: int,
    measure: Callable[..., Cell],
    wanted: list[tuple[object, ...]],
    *,
    threads: int = 1,
) -> None:
    """Measure the missing cells: ``measure(folder, *key)`` returns a cell's record.

    Zero jobs measure nothing.
    """
    waiting = [key for key in wanted if jobs and not place(folder, *key).exists()]
    if not waiting:
        return
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = str(threads)  # inherited by the worker processes
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(_store, folder, measure, key): key for key in waiting}
        for done, future in enumerate(as_completed(futures), 1):
            label = " ".join(map(str, futures[future]))
            print(f"{done}/{len(waiting)} {label}: {future.result():.4f}", flush=True)


def _store(folder: Path, measure: Callable[..., Cell], key: tuple[object, ...]) -> float:
    record = measure(folder, *key)
    path = place(folder, *key)
    path.with_suffix(".tmp").write_text(json.dumps(record))
    path.with_suffix(".tmp").replace(path)
    return float(record["score"] if "score" in record else record["ap"])


def read(folder: Path) -> Iterator[Cell]:
    """The finished cells."""
    for path in sorted(folder.glob("cell-*.json")):
        yield json.loads(path.read_text())


def cut_cifar10(root: Path | None, folder: Path, features: str, runs: tuple[int, ...]) -> None:
    """Save each run's sets of ``cifar-s1`` once, for cells to map into memory."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [run for run in runs if not (folder / f"{features}-{run}-labels.npz").exists()]
    if not wanted:
        return
    dataset = bt.load("cifar10", root, features=features or None)
    vectors, labels = np.asarray(dataset.vectors), np.asarray(dataset.labels)
    for run in wanted:
        split = bt.make_split("cifar-s1", dataset, random_state=0, run=run)
        sets = {name: getattr(split, name) for name in ("train", "queries", "database")}
        for name, rows in sets.items():
            np.save(folder / f"{features}-{run}-{name}.npy", vectors[rows])
        named = {name: labels[rows] for name, rows in sets.items()}
        np.savez(folder / f"{features}-{run}-labels.npz", **named)


def sets_of(folder: Path, features: str, run: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and labels of each saved set."""
    with np.load(folder / f"{features}-{run}-labels.npz") as labels:
        return {
            name: (np.load(folder / f"{features}-{run}-{name}.npy", mmap_mode="r"), labels[name])
            for name in ("train", "queries", "database")
        }
