"""What adds to TALR at 32 bits on CIFAR-10's network features, one thing after the other."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, cut_cifar10, fill, read, sets_of
from results import Section, Target

import bittern as bt
from bittern.hashing.deep.images import shifted_and_mirrored
from deep.pixels import cut_pixels
from deep.scores import RUNS, evaluated, values_of

N_VARIANTS = 5  # of each training image
CROP = 0.85
VIEWS = {  # of each image: how much of it, and whether mirrored
    "whole": (None, False),
    "mirrored": (None, True),
    "centre": (CROP, False),
    "centre mirrored": (CROP, True),
}
STEPS = {  # the network, the views that are averaged, and whether variants are learned from
    "one layer, the features given": ("linear", (), False),
    "a hidden layer": ("mlp", (), False),
    "features computed again from pixels": ("mlp", ("whole",), False),
    "averaged with the mirrored image's": ("mlp", ("whole", "mirrored"), False),
    "averaged with the centre's": ("mlp", tuple(VIEWS), False),
    f"learned from {N_VARIANTS} shifted and mirrored variants too": ("mlp", tuple(VIEWS), True),
}
PARAMETERS = {  # the best of twelve points each on held-out training rows
    "linear": {"learning_rate": 0.01, "dropout": 0.5, "n_epochs": 50},
    "mlp": {"learning_rate": 0.003, "dropout": 0.5, "n_epochs": 50},
}
LEVEL = 0.775  # to be gone beyond


def steps(options: argparse.Namespace) -> list[Section]:
    """Each step has those before it."""
    if options.pixels is None:
        raise SystemExit("steps needs --pixels FOLDER with CIFAR-10 in it.")
    folder = options.cells
    cut_cifar10(options.root, folder, "cnn", RUNS)
    cut_pixels(options.pixels, folder / "cifar10", "cifar10")
    compute_views(folder)
    wanted: list[tuple[object, ...]] = [
        ("steps", number, run) for run in options.runs for number in range(len(STEPS))
    ]
    fill(folder, options.jobs, step, wanted)
    cells = [cell for cell in read(folder) if cell["experiment"] == "steps"]
    section = Section(
        "TALR-AP, 32 bits: each step with those before it, mean and deviation over runs",
        ("step", "AP, mean", "± over runs", "runs", "fit, s"),
    )
    for number, title in enumerate(STEPS):
        ap = values_of(cells, number=number)
        if len(ap):
            last = number == len(STEPS) - 1
            mean = Target(float(ap.mean()), at_least=LEVEL if last else None)
            fit = values_of(cells, "fit", number=number).mean()
            section.row(title, mean, f"{ap.std():.3f}", len(ap), f"{fit:.0f}")
    return [section]


def compute_views(folder: Path) -> None:
    """Features of every image in every view, and of the variants of training images."""
    images = np.load(folder / "cifar10" / "images.npy", mmap_mode="r")
    for view, (crop, mirrored) in VIEWS.items():
        seen = images[:, :, ::-1] if mirrored else images
        compute(folder / f"view-{view}.npy", seen, crop)
    for run in RUNS:
        with np.load(folder / "cifar10" / f"{run}.npz") as sets:
            train = np.array(images[sets["train"]])
        rng = np.random.default_rng(run)
        variants = [shifted_and_mirrored(train, rng) for _ in range(N_VARIANTS)]
        compute(folder / f"variants-{run}.npy", np.concatenate(variants), None)


def compute(path: Path, images: np.ndarray, crop: float | None) -> None:
    """Deep features of images into a file, unless they are there."""
    if path.exists():
        return
    print(f"features of {len(images):,} images: {path.stem}", flush=True)
    rows = bt.features.Deep(crop=crop).fit(images[:1]).transform(images)
    with path.with_suffix(".tmp").open("wb") as file:
        np.save(file, rows)
    path.with_suffix(".tmp").replace(path)


def step(folder: Path, _: str, number: int, run: int) -> Cell:
    """One step on one run."""
    network, views, augmented = list(STEPS.values())[number]
    sets = sets_of(folder, "cnn", run)
    if views:
        sets = averaged(folder, views, run, sets)
    X, y = sets["train"]
    if augmented:
        variants = np.load(folder / f"variants-{run}.npy")
        X, y = np.concatenate([X, variants]), np.tile(y, 1 + N_VARIANTS)
    parameters: dict[str, Any] = PARAMETERS[network]
    if augmented:  # six times the rows in half the epochs: three times the steps
        parameters = parameters | {"n_epochs": parameters["n_epochs"] // 2}
    began = time.perf_counter()
    hasher = bt.hashing.TALR(32, network=network, random_state=run, **parameters)
    hasher.fit(np.array(X), y)
    record = dict(experiment="steps", number=number, run=run, fit=time.perf_counter() - began)
    return record | evaluated(hasher, sets)


def averaged(
    folder: Path, views: tuple[str, ...], run: int, sets: dict[str, tuple[np.ndarray, np.ndarray]]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The sets with features of these views, averaged."""
    rows = np.mean([np.load(folder / f"view-{view}.npy") for view in views], axis=0)
    with np.load(folder / "cifar10" / f"{run}.npz") as positions:
        return {name: (rows[positions[name]], labels) for name, (_, labels) in sets.items()}
