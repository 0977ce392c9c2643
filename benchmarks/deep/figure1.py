"""AP of LSH by the order of tied items, over random trials."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from results import Section

import bittern as bt

TRIALS, FIGURE_1_BITS = 50, (16, 32, 48, 64)


def figure1(options: argparse.Namespace) -> list[Section]:
    """AP of LSH by tie-breaking over random trials."""
    dataset = bt.load("cifar10", options.root, features="cnn")
    vectors, labels = np.asarray(dataset.vectors[:]), np.asarray(dataset.labels)
    names = ["ap", "ap:optimistic", "ap:pessimistic"]
    found = np.zeros((TRIALS, len(FIGURE_1_BITS), len(names)))
    for trial in range(TRIALS):
        split = bt.make_split("cifar-s1", dataset, random_state=0, run=trial)
        truth = bt.Relevance.from_classes(labels[split.queries], labels[split.database])
        for i, n_bits in enumerate(FIGURE_1_BITS):
            hasher = bt.hashing.LSH(n_bits, random_state=trial).fit(vectors[split.train])
            codes = hasher.encode(vectors)
            scores = bt.evaluate(codes[split.queries], codes[split.database], truth, names)
            found[trial, i] = [scores[name].mean for name in names]
        print(f"{trial + 1}/{TRIALS}", flush=True)
    section = Section(
        f"AP of LSH on CIFAR-10 network features over {TRIALS} trials, mean ± deviation",
        ("bits", "tie-aware", "optimistic", "pessimistic", "optimistic − pessimistic"),
    )
    for i, n_bits in enumerate(FIGURE_1_BITS):
        mean, spread = found[:, i].mean(axis=0), found[:, i].std(axis=0)
        told = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True)]
        section.row(n_bits, *told, f"{mean[1] - mean[2]:.3f}")
    if options.figures:
        draw_boxes(found, options.figures / "deep-figure1.svg")
    return [section]


def draw_boxes(found: np.ndarray, path: Path) -> None:
    """Boxes over trials."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    order = (
        ("pessimistic", 2, "#D55E00"),
        ("tie-aware", 0, "#0072B2"),
        ("optimistic", 1, "#009E73"),
    )
    for j, (label, k, colour) in enumerate(order):
        positions = np.arange(len(FIGURE_1_BITS)) + (j - 1) * 0.25
        boxes = axes.boxplot(
            found[:, :, k], positions=positions, widths=0.2, patch_artist=True, manage_ticks=False
        )
        for box in boxes["boxes"]:
            box.set(facecolor=colour, alpha=0.6)
        axes.plot([], [], color=colour, lw=6, alpha=0.6, label=label)
    axes.set(
        xticks=range(len(FIGURE_1_BITS)), xticklabels=FIGURE_1_BITS, xlabel="bits", ylabel="AP"
    )
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
