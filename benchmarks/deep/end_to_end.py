"""End to end from pixels: TALR, DTSH and DPSH, the same network and number of steps."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, fill, read
from results import Section, Target

import bittern as bt
from deep.scores import RUNS, values_of

LITE0 = dict(
    network="efficientnet-lite0",
    image_size=128,
    frozen=5,
    batch_size=250,
    learning_rate=2e-3,
    trunk_rate=0.25,
    dropout=0.3,
    weight_decay=0.05,
    precision="bfloat16",
    mirror=True,
)
SETTINGS: dict[str, tuple[str, str, dict[str, Any]]] = {  # data, split, parameters
    "s2": ("cifar10", "cifar-s2", LITE0 | dict(augment=2, n_epochs=4)),
    "s1": ("cifar10", "cifar-s1", LITE0 | dict(augment=5, n_epochs=15)),
}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "talr": ("talr", {}),
    "dtsh": ("dtsh", {}),
    "dpsh": ("dpsh", {}),
    "dpsh, η = 0.1": ("dpsh", {"eta": 0.1}),  # with 1, its default, 12 bits collapse
}
BITS = {"s2": (32,), "s1": (32, 12)}
PAPER = {  # tie-aware AP of Table 1, with VGG-F
    ("s2", 32): {"talr": 0.939, "dtsh": 0.927, "dpsh": 0.917},
    ("s1", 32): {"talr": 0.800, "dtsh": 0.765, "dpsh": 0.744},
    ("s1", 12): {"talr": 0.732, "dtsh": 0.710, "dpsh": 0.713},
}
LEVELS = {("s2", 32): 0.94}  # of talr, to be reached
SLICE = 4000  # images encoded at a time; the cache of frozen stages holds one file for each


def end_to_end(options: argparse.Namespace) -> list[Section]:
    """The gradient-trained methods from the pixels of CIFAR-10, in both settings of the paper."""
    if options.jobs and options.pixels is None:
        raise SystemExit("end-to-end needs --pixels FOLDER with CIFAR-10 in it.")
    for setting in SETTINGS if options.jobs else ():
        cut_images(options.pixels, options.cells / setting, setting)
    wanted: list[tuple[object, ...]] = [
        ("end-to-end", setting, name, n_bits, run)
        for run in options.runs
        for setting in SETTINGS
        for n_bits in BITS[setting]
        for name in METHODS
        if (setting != "s2" or run == 0)  # its split is official
        and (setting == "s1" or not METHODS[name][1])
    ]
    fill(options.cells, options.jobs, from_pixels, wanted)
    cells = [cell for cell in read(options.cells) if cell["experiment"] == "end-to-end"]
    return [section_of(cells)]


def section_of(cells: list[Cell]) -> Section:
    """A row for each setting, length and method, beside the paper's value."""
    section = Section(
        "End to end from pixels, the same network and steps for all: tie-aware AP",
        (
            "data",
            "bits",
            "method",
            "AP",
            "± over runs",
            "paper",
            "runs",
            "fit, CPU min",
            "encode, CPU min",
        ),
    )
    for setting, (data, split, _) in SETTINGS.items():
        for n_bits in BITS[setting]:
            for name in METHODS:
                mine = [
                    cell
                    for cell in cells
                    if (cell["setting"], cell["n_bits"], cell["method"]) == (setting, n_bits, name)
                ]
                if mine:
                    section.row(f"{data}, {split}", n_bits, name, *_values(mine, setting, n_bits))
    return section


def _values(mine: list[Cell], setting: str, n_bits: int) -> list[object]:
    ap, name = values_of(mine), METHODS[mine[0]["method"]][0]
    level = LEVELS.get((setting, n_bits)) if mine[0]["method"] == "talr" else None
    minutes = [values_of(mine, key).mean() / 60 for key in ("fit", "encode")]
    return [
        Target(float(ap.mean()), at_least=level),
        f"{ap.std():.3f}" if len(ap) > 1 else "",
        PAPER.get((setting, n_bits), {}).get(name, ""),
        len(ap),
        *minutes,
    ]


def cut_images(root: Path, folder: Path, setting: str) -> None:
    """Cut each run's sets out of a data set's images once."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "images.npy").exists():
        return
    name, split_name, _ = SETTINGS[setting]
    dataset = bt.load(name, root)
    np.save(folder / "labels.npy", np.asarray(dataset.labels))
    for run in RUNS:
        split = bt.make_split(split_name, dataset, random_state=0, run=run)
        sets = {part: getattr(split, part) for part in ("train", "queries", "database")}
        np.savez(folder / f"{run}.npz", **sets)
    np.save(folder / "images.npy", np.asarray(dataset.vectors[:], np.uint8))


def from_pixels(folder: Path, _: str, setting: str, name: str, n_bits: int, run: int) -> Cell:
    """Train, resuming if it was stopped, and evaluate."""
    place = folder / setting
    images, labels = np.load(place / "images.npy"), np.load(place / "labels.npy")
    with np.load(place / f"{run}.npz") as sets:
        train, queries, database = (sets[part] for part in ("train", "queries", "database"))
    method, own = METHODS[name]
    parameters = SETTINGS[setting][2] | own
    if parameters.get("frozen"):
        parameters["cache"] = str(folder / "frozen")
    checkpoint = folder / f"checkpoint-{setting}-{name}-{n_bits}-{run}.pt"
    began = time.process_time()
    hasher = bt.hashing.HASHERS[method](
        n_bits, random_state=run, checkpoint=str(checkpoint), **parameters
    ).fit(images[train], labels[train])
    fitted = time.process_time()
    slices = [images[i : i + SLICE] for i in range(0, len(images), SLICE)]
    codes = bt.Codes.concatenate(hasher.encode(some) for some in slices)
    encoded = time.process_time()
    truth = bt.Relevance.from_classes(labels[queries], labels[database])
    scores = bt.evaluate_codes(codes[queries], codes[database], truth, ["ap"])
    record = dict(experiment="end-to-end", setting=setting, method=name, n_bits=n_bits, run=run)
    times = {"fit": fitted - began, "encode": encoded - fitted}
    return record | {"ap": scores["ap"].mean, "losses": hasher.losses_.tolist()} | times
