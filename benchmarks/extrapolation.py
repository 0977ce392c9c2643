"""How well `advise` foresees larger databases: predicted from few items, found among all.

    python benchmarks/extrapolation.py [--root DATA] [--write FILE.md]

Quantisers learn from 4,600 rows of CIFAR-10.  400 others are queries, and the remaining 55,000 are
items.  Shares of the ten nearest in databases of 1,250 to 10,000 items predict those among all.
Needs the shared CIFAR-10 features; about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from results import Section

import bittern as bt
from bittern.experiments.advice.extrapolation import predict_shares
from bittern.experiments.advice.judging import Resampling
from bittern.relevance.neighbours import nearest_pairs

SETS = {
    "cnn": ("network features, 1,280-D, cosine", "cosine"),
    "gist": ("GIST, 512-D", "euclidean"),
}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "sign": ("sign", {}),
    "rabitq-1": ("rabitq", {"bits": 1}),
    "rabitq-2": ("rabitq", {"bits": 2}),
    "water-filled, 16 bytes": ("water-filled", {"n_bytes": 16}),
    "water-filled, 32 bytes": ("water-filled", {"n_bytes": 32}),
    "tcq, 16 bytes": ("tcq", {"n_bytes": 16}),
}
N_TRAIN, N_QUERIES, K = 4_600, 400, 10
SIZES, FACTORS = (1_250, 2_500, 5_000, 10_000), (1, 2, 4, 8, 16)
CUTS = tuple(K * factor for factor in FACTORS)


def main() -> None:
    """Measure, print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--write", type=Path, help="also write the tables into this file")
    options = parser.parse_args()
    sections = [table(name, options.root) for name in SETS]
    print("\n\n".join(section.text() for section in sections))
    if options.write:
        command = "python benchmarks/extrapolation.py"
        Section.write(options.write, "extrapolation", command, sections)
    sys.exit(0)


def table(name: str, root: Path | None) -> Section:
    """Predicted and found shares of every method."""
    title, metric = SETS[name]
    X = np.asarray(bt.load("cifar10", root, features=name).modalities[name][:], np.float32)
    order = np.random.default_rng(2).permutation(len(X))
    train, queries, items = np.split(X[order], [N_TRAIN, N_TRAIN + N_QUERIES])
    sizes = (*SIZES, len(items))
    near = [nearest_pairs(queries, items[:size], K, metric)[1] for size in sizes]
    section = Section(
        f"CIFAR-10, {title}: share of the {K} nearest, without rescoring / with 4 ×",
        ("method", f"among {SIZES[-1]:,}", f"predicted for {sizes[-1]:,}", "found"),
    )
    n_inside = 0
    for method, (kind, parameters) in METHODS.items():
        model = bt.quantise.QUANTISERS[kind](metric=metric, random_state=0, **parameters)
        stored = model.fit(train).encode(items)
        found = np.stack(
            [
                counts(model, stored[:size], queries, true)
                for size, true in zip(sizes, near, strict=True)
            ]
        )
        predicted = predict(found[:-1], sizes[-1])
        share = found.mean(axis=1) / K
        inside = [e.low <= s <= e.high for e, s in zip(predicted, share[-1], strict=True)]
        n_inside += sum(inside)
        shown = [FACTORS.index(1), FACTORS.index(4)]
        section.row(
            method,
            " / ".join(f"{share[-2, i]:.3f}" for i in shown),
            " / ".join(
                f"{predicted[i].value:.3f} ({predicted[i].low:.3f}–{predicted[i].high:.3f})"
                for i in shown
            ),
            " / ".join(f"{share[-1, i]:.3f}{'' if inside[i] else ' outside'}" for i in shown),
        )
    n = len(METHODS) * len(FACTORS)
    factors = ", ".join(f"{factor} ×" for factor in FACTORS)
    section.note(
        f"{n_inside} of {n} intervals of 95 % contain what was found, over all methods and "
        f"{factors}."
    )
    return section


def counts(model: Any, stored: Any, queries: np.ndarray, true: np.ndarray) -> np.ndarray:
    """How many of the nearest each query has among its first candidates, ``(q, factors)``."""
    ids = bt.QuantisedIndex(model, stored).search(queries, CUTS[-1]).ids
    hits = (ids[:, :, None] == true[:, None]).any(axis=2)
    return np.cumsum(hits, axis=1)[:, np.array(CUTS) - 1].astype(np.float64)


def predict(found: np.ndarray, n: int) -> list[Any]:
    """Predicted shares among n items, from counts ``(sizes, queries, factors)``."""
    resampling, whole = Resampling(found.shape[1]), np.full((1, found.shape[1]), float(K))
    values, draws = zip(*(resampling.draws(one[None], whole) for one in found), strict=True)
    totals = np.full(len(found), found.shape[1] * float(K))
    return predict_shares(SIZES, CUTS, np.stack(values), np.stack(draws), totals, n)


if __name__ == "__main__":
    main()
