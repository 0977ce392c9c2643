"""NDCG where relevance has levels."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from cells import Cell, fill, read
from results import Section

import bittern as bt
from deep.scores import RUNS, values_of

GRADED = ("lsh", "itq", "bre", "machash", "fasthash", "structhash", "dpsh", "dtsh", "talr")
GRADED_BITS = (16, 32, 48, 64)
ON_GRADES = {"structhash": {"loss": "ndcg"}, "talr": {"objective": "ndcg"}}
ON_YES_OR_NO = ("fasthash", "machash", "dpsh")  # as in the paper


def graded(options: argparse.Namespace) -> list[Section]:
    """NDCG where relevance has levels, with linear functions for what is trained by gradients."""
    cut_corel5k(options.root, options.cells)
    cut_balls(options.root, options.cells)
    wanted: list[tuple[object, ...]] = [
        ("graded", dataset, name, n_bits, run)
        for run in options.runs
        for n_bits in GRADED_BITS
        for name in GRADED
        for dataset in ("corel5k", "balls")
    ]
    fill(options.cells, options.jobs, graded_cell, wanted)
    cells = [cell for cell in read(options.cells) if cell["experiment"] == "graded"]
    titles = {
        "corel5k": "Corel-5K, gain = annotation words shared (official split)",
        "balls": "GIST of 22,019 CIFAR-10 pictures, graded balls (labelme-20k)",
    }
    return [graded_table(cells, dataset, title) for dataset, title in titles.items()]


def cut_corel5k(root: Path | None, folder: Path) -> None:
    """Rows and words of the official sets."""
    path = folder / "corel5k.npz"
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return
    dataset = bt.load("corel5k", root)
    rows, tags = np.asarray(dataset["cnn"][:], np.float32), np.asarray(dataset.tags, bool)
    split = bt.make_split("official", dataset, random_state=0, run=0)
    named = {}
    for part in ("train", "queries", "database"):
        chosen = getattr(split, part)
        named |= {part: rows[chosen], f"{part}_tags": tags[chosen]}
    np.savez(path, **named)


def cut_balls(root: Path | None, folder: Path) -> None:
    """GIST rows in sets as LabelMe's, and radii from training distances."""
    if (folder / "balls-2.npz").exists():
        return
    dataset = bt.load("cifar10", root, features="gist").take(np.arange(22_019))
    rows = np.asarray(dataset.vectors[:], np.float32)
    for run in RUNS:
        split = bt.make_split("labelme-20k", dataset, random_state=0, run=run)
        sets = {part: rows[getattr(split, part)] for part in ("train", "queries", "database")}
        mean = sets["train"].mean(axis=0)
        sets = {part: values - mean for part, values in sets.items()}
        radii = bt.distance_percentiles(sets["train"], [5, 1, 0.2, 0.1])
        np.savez(folder / f"balls-{run}.npz", radii=radii, **sets)


def graded_cell(folder: Path, _: str, dataset: str, name: str, n_bits: int, run: int) -> Cell:
    """NDCG of one method."""
    path = folder / ("corel5k.npz" if dataset == "corel5k" else f"balls-{run}.npz")
    with np.load(path) as file:
        data = dict(file)
    X, Q, D = data["train"], data["queries"], data["database"]
    binary = name in ON_YES_OR_NO
    if dataset == "corel5k":
        y = data["train_tags"]
        if not binary:
            y = bt.Relevance.from_tags(y, y, graded=True)
        truth = bt.Relevance.from_tags(data["queries_tags"], data["database_tags"], graded=True)
    else:
        radii, gains = data["radii"], np.array([1, 2, 5, 10])
        y = bt.Relevance.from_thresholds(X, X, radii, gains)
        if binary:
            y = bt.Relevance.from_ball(X, X, radii[0])
        truth = bt.Relevance.from_thresholds(Q, D, radii, gains)
    parameters = ON_GRADES.get(name, {})
    began = time.perf_counter()
    hasher = bt.hashing.HASHERS[name](n_bits, random_state=run, **parameters).fit(X, y)
    fit = time.perf_counter() - began
    scores = bt.evaluate(hasher.encode(Q), hasher.encode(D), truth, ["ndcg", "ap"])
    record = dict(experiment="graded", dataset=dataset, method=name, n_bits=n_bits, run=run)
    return record | dict(score=scores["ndcg"].mean, ap=scores["ap"].mean, fit=fit)


def graded_table(cells: list[Cell], dataset: str, title: str) -> Section:
    """Mean NDCG, methods by code lengths."""
    section = Section(
        f"{title}: tie-aware NDCG, mean ± deviation over runs",
        ("method", *(f"{n} bits" for n in GRADED_BITS), "runs", "fit at 32, s"),
    )
    mine = [c for c in cells if c["dataset"] == dataset]
    for name in GRADED:
        row: list[object] = [name]
        for n_bits in GRADED_BITS:
            values = values_of(mine, "score", method=name, n_bits=n_bits)
            row.append(f"{values.mean():.3f} ± {values.std():.3f}" if len(values) else "")
        fits = values_of(mine, "fit", method=name, n_bits=32)
        section.row(*row, len(fits), f"{fits.mean():.0f}" if len(fits) else "")
    return section
