"""TALR with one thing changed at a time."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, cut_cifar10, fill, read, sets_of
from results import Section

import bittern as bt
from deep.scores import RUNS, evaluated, mean_and_deviation, values_of

ABLATION: dict[str, list[Any]] = {
    "form": ["simplified", "midpoint", "integral"],
    "n_bins": [2, 4, 8, 16, 32, 64],
    "batch_size": [50, 100, 250, 500, 1000],
    "alpha": [(1.0, 1.0), (1.0, 4.0), (1.0, 16.0), (4.0, 4.0), (16.0, 16.0)],
}


def ablation(options: argparse.Namespace) -> list[Section]:
    """One thing changed at a time, 32 bits, linear."""
    cut_cifar10(options.root, options.cells, "cnn", RUNS)
    wanted: list[tuple[object, ...]] = [
        ("ablation", what, value, run)
        for run in options.runs
        for what, values in ABLATION.items()
        for value in values
    ]
    fill(options.cells, options.jobs, ablated, wanted)
    cells = [cell for cell in read(options.cells) if cell["experiment"] == "ablation"]
    section = Section(
        "TALR-AP, 32 bits, linear: one thing changed at a time, mean ± deviation over runs",
        ("what", "value", "AP", "fit, s"),
    )
    for what, values in ABLATION.items():
        for value in values:
            mine = [c for c in cells if c["what"] == what and c["value"] == str(value)]
            if mine:
                ap = values_of(mine)
                section.row(what, value, mean_and_deviation(ap), values_of(mine, "fit").mean())
    if options.figures:
        draw_ablation(cells, options.figures / "deep-ablation.svg")
    return [section]


def ablated(folder: Path, _: str, what: str, value: Any, run: int) -> Cell:
    """TALR with one parameter changed."""
    sets = sets_of(folder, "cnn", run)
    began = time.perf_counter()
    hasher = bt.hashing.TALR(32, random_state=run, **{what: value})
    hasher.fit(np.array(sets["train"][0]), sets["train"][1])
    fit = time.perf_counter() - began
    record = dict(experiment="ablation", what=what, value=str(value), run=run, fit=fit)
    return record | evaluated(hasher, sets)


def draw_ablation(cells: list[Cell], path: Path) -> None:
    """A panel for each thing."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3), layout="constrained")
    panels = figure.subplots(1, len(ABLATION), sharey=True)
    for axes, (what, values) in zip(panels, ABLATION.items(), strict=True):
        runs = [values_of(cells, what=what, value=str(value)) for value in values]
        means, spreads = [r.mean() for r in runs], [r.std() for r in runs]
        axes.errorbar(range(len(values)), means, spreads, marker="o", ms=4, lw=1, capsize=3)
        labels = [
            "–".join(f"{v:g}" for v in value) if isinstance(value, tuple) else str(value)
            for value in values
        ]
        axes.set(xticks=range(len(values)), title=what)
        axes.set_xticklabels(labels, rotation=30)
    panels[0].set_ylabel("AP")
    figure.savefig(path, metadata={"Date": None})
