"""End to end from the pixels of CIFAR-10 and Fashion-MNIST."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from cells import Cell, fill, read
from results import Section, Target

import bittern as bt
from deep.scores import RUNS, values_of

PIXELS = {
    "cifar10": dict(
        network="efficientnet-lite0",
        image_size=128,
        frozen=4,
        augment=5,
        n_epochs=20,
        batch_size=250,
        learning_rate=2e-3,
        trunk_rate=0.25,
        dropout=0.3,
        weight_decay=0.05,
        alpha=(1.0, 4.0),
    ),
    "fashion-mnist": dict(
        network="small",
        augment=1,
        n_epochs=25,
        batch_size=250,
        learning_rate=5e-3,
        trunk_rate=1.0,
        dropout=0.1,
        weight_decay=0.05,
        alpha=(1.0, 4.0),
    ),
}
PIXEL_LEVELS = {"cifar10": 0.85}


def pixels(options: argparse.Namespace) -> list[Section]:
    """TALR from pixels, 5,000 training images."""
    if options.pixels is None:
        raise SystemExit("pixels needs --pixels FOLDER with CIFAR-10 and Fashion-MNIST in it.")
    for name in PIXELS:
        cut_pixels(options.pixels, options.cells / name, name)
    wanted: list[tuple[object, ...]] = [
        ("pixels", name, 32, run) for run in options.runs for name in PIXELS
    ]
    fill(options.cells, min(1, options.jobs), from_pixels, wanted, threads=os.cpu_count() or 1)
    cells = [cell for cell in read(options.cells) if cell["experiment"] == "pixels"]
    section = Section(
        "End to end from pixels, 32 bits, 5,000 training images, 1,000 queries",
        ("data", "network", "AP, mean", "± over runs", "runs", "training, min", "encoding, min"),
    )
    for name, parameters in PIXELS.items():
        mine = [c for c in cells if c["dataset"] == name]
        if mine:
            ap = values_of(mine)
            level = Target(float(ap.mean()), at_least=PIXEL_LEVELS.get(name))
            minutes = [values_of(mine, key).mean() / 60 for key in ("fit", "encode")]
            section.row(
                name,
                parameters["network"],
                level,
                f"{ap.std():.3f}" if len(ap) > 1 else "",
                len(ap),
                *minutes,
            )
    return [section]


def cut_pixels(root: Path, folder: Path, name: str) -> None:
    """Cut each run's sets out of a data set's images once."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "images.npy").exists():
        return
    dataset = bt.load(name, root)
    np.save(folder / "labels.npy", np.asarray(dataset.labels))
    for run in RUNS:
        split = bt.make_split("cifar-s1", dataset, random_state=0, run=run)
        sets = {part: getattr(split, part) for part in ("train", "queries", "database")}
        np.savez(folder / f"{run}.npz", **sets)
    np.save(folder / "images.npy", np.asarray(dataset.vectors[:], np.uint8))


def from_pixels(folder: Path, _: str, name: str, n_bits: int, run: int) -> Cell:
    """Train, resuming if it was stopped, and evaluate."""
    images, labels = np.load(folder / name / "images.npy"), np.load(folder / name / "labels.npy")
    with np.load(folder / name / f"{run}.npz") as sets:
        train, queries, database = (sets[part] for part in ("train", "queries", "database"))
    checkpoint = folder / f"checkpoint-{name}-{n_bits}-{run}.pt"
    began = time.perf_counter()
    hasher = bt.hashing.TALR(
        n_bits, random_state=run, checkpoint=str(checkpoint), **PIXELS[name]
    ).fit(images[train], labels[train])
    fitted = time.perf_counter()
    codes = hasher.encode(images)
    encoded = time.perf_counter()
    truth = bt.Relevance.from_classes(labels[queries], labels[database])
    scores = bt.evaluate(codes[queries], codes[database], truth, ["ap"])
    record = dict(experiment="pixels", dataset=name, n_bits=n_bits, run=run, ap=scores["ap"].mean)
    return record | {"fit": fitted - began, "encode": encoded - fitted}
