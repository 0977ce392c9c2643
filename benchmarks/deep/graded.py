"""NDCG where relevance has levels."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from cells import Cell, fill, place, read
from results import Section

import bittern as bt
from deep.scores import RUNS, mean_and_deviation, values_of

GRADED = ("lsh", "itq", "bre", "machash", "fasthash", "structhash", "dpsh", "dtsh", "talr")
GRADED_BITS = (16, 32, 48, 64)
ON_GRADES = {"structhash": {"loss": "ndcg"}, "talr": {"objective": "ndcg"}}
ON_YES_OR_NO = ("fasthash", "machash", "dpsh")  # as in the paper
GAINS = (1, 2, 5, 10)
TRIED = ("dpsh", "dtsh", "talr")
GRID = (  # start, learning rate, dropout
    ("random", 0.01, 0.0),
    ("random", 0.01, 0.25),
    ("random", 0.01, 0.5),
    ("random", 0.03, 0.0),
    ("itq", 0.001, 0.25),
    ("itq", 0.003, 0.25),
    ("itq", 0.003, 0.5),
    ("itq", 0.01, 0.25),
)


def graded(options: argparse.Namespace) -> list[Section]:
    """NDCG where relevance has levels, with linear functions for what is trained by gradients."""
    cut_corel5k(options.root, options.cells)
    cut_balls(options.root, options.cells)
    tried: list[tuple[object, ...]] = [
        ("tune-graded", dataset, name, *point)
        for dataset in ("corel5k", "balls")
        for name in TRIED
        for point in GRID
    ]
    fill(options.cells, options.jobs, tune_graded, tried)
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
        "balls": "GIST of 22,019 CIFAR-10 images, graded balls (labelme-20k)",
    }
    sections = [graded_table(cells, dataset, title) for dataset, title in titles.items()]
    sections[-1].note(
        "Start, learning rate and dropout of dpsh, dtsh and talr are the best of eight points for "
        "NDCG on a fifth of the training rows of run 0, held out for that."
    )
    return sections


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


def sets_of_graded(folder: Path, dataset: str, run: int) -> dict[str, np.ndarray]:
    """Rows of each set, with their words or with the radii of balls."""
    path = folder / ("corel5k.npz" if dataset == "corel5k" else f"balls-{run}.npz")
    with np.load(path) as file:
        return dict(file)


def truth_of(data: dict[str, np.ndarray], left: str, right: str, *, graded: bool) -> bt.Relevance:
    """Ground truth of one set for another."""
    if "radii" not in data:
        return bt.Relevance.from_tags(data[f"{left}_tags"], data[f"{right}_tags"], graded=graded)
    if graded:
        return bt.Relevance.from_thresholds(data[left], data[right], data["radii"], GAINS)
    return bt.Relevance.from_ball(data[left], data[right], data["radii"][0])


def tune_graded(
    folder: Path, _: str, dataset: str, name: str, start: str, rate: float, dropout: float
) -> Cell:
    """NDCG of held-out training rows of run 0 among themselves, at 32 bits."""
    data = sets_of_graded(folder, dataset, 0)
    n = len(data["train"])
    order = np.random.default_rng(0).permutation(n)
    parts = {"held_out": np.sort(order[: n // 5]), "rest": np.sort(order[n // 5 :])}
    for part, rows in parts.items():
        data |= {
            f"{part}{tail}": data[f"train{tail}"][rows]
            for tail in ("", "_tags")
            if f"train{tail}" in data
        }
    parameters = dict(start=start, learning_rate=rate, dropout=dropout)
    hasher = bt.hashing.HASHERS[name](32, **ON_GRADES.get(name, {}), **parameters)
    hasher.fit(data["rest"], truth_of(data, "rest", "rest", graded=name not in ON_YES_OR_NO))
    codes = hasher.encode(data["held_out"])
    truth = truth_of(data, "held_out", "held_out", graded=True).excluding(np.arange(len(codes)))
    score = bt.evaluate(codes, codes, truth, ["ndcg"])["ndcg"].mean
    return dict(experiment="tune-graded", parameters=parameters, score=score)


def best_of_graded(folder: Path, dataset: str, name: str) -> Cell:
    """The point of the grid with the highest score."""
    cells = [
        json.loads(place(folder, "tune-graded", dataset, name, *point).read_text())
        for point in GRID
    ]
    return max(cells, key=lambda cell: cell["score"])["parameters"]


def graded_cell(folder: Path, _: str, dataset: str, name: str, n_bits: int, run: int) -> Cell:
    """NDCG of one method."""
    data = sets_of_graded(folder, dataset, run)
    parameters = ON_GRADES.get(name, {})
    if name in TRIED:
        parameters = parameters | best_of_graded(folder, dataset, name)
    y = truth_of(data, "train", "train", graded=name not in ON_YES_OR_NO)
    began = time.perf_counter()
    hasher = bt.hashing.HASHERS[name](n_bits, random_state=run, **parameters).fit(data["train"], y)
    fit = time.perf_counter() - began
    codes = hasher.encode(data["queries"]), hasher.encode(data["database"])
    truth = truth_of(data, "queries", "database", graded=True)
    scores = bt.evaluate(*codes, truth, ["ndcg", "ap"])
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
            row.append(mean_and_deviation(values))
        fits = values_of(mine, "fit", method=name, n_bits=32)
        section.row(*row, len(fits), f"{fits.mean():.0f}" if len(fits) else "")
    return section
