"""Draw the soft tie profile of a query beside the exact one, before and after training.

    python examples/soft_profile.py [IMAGE.svg]

Trains TALR on scikit-learn's digits with 12 bits and takes one held-out query.  Prints its AP, and
draws how many items lie at each Hamming distance (bars) beside the soft counts that training sees
(lines), for relevant and other items.  Needs the extras ``deep`` and ``plots``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

import bittern as bt
from bittern.hashing.objectives import soft_counts

N_BITS = 12
COLOURS = {"relevant": "#0072B2", "other": "#D55E00"}


def main() -> None:
    """Train twice, draw, and print the query's AP."""
    dataset = bt.load("digits")
    split = bt.make_split("improved", dataset, random_state=0, run=0)
    train, queries, database = (
        dataset.take(part) for part in (split.train, split.queries, split.database)
    )
    X, y = np.asarray(train.vectors[:]), train.labels
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, n_epochs, alpha in ((panels[0], 1, 1.0), (panels[1], 60, 4.0)):
        hasher = bt.hashing.TALR(N_BITS, n_epochs=n_epochs, random_state=1).fit(X, y)
        codes = hasher.encode(queries.vectors[:1]), hasher.encode(database.vectors)
        truth = bt.Relevance.from_classes(queries.labels[:1], database.labels)
        profile = bt.TieProfile.from_codes(*codes, truth)
        ap = bt.evaluate(profile, ["ap"])["ap"].mean
        logits = hasher.logits(queries.vectors[:1]), hasher.logits(database.vectors[:])
        relevant = database.labels == queries.labels[0]
        draw(axes, profile, soft(*logits, relevant, alpha))
        axes.set_title(f"after {n_epochs} epoch{'s' * (n_epochs > 1)}, α = {alpha:g}: AP {ap:.2f}")
        print(f"{n_epochs} epochs: AP {ap:.3f}")
    panels[0].set_ylabel("items")
    panels[0].legend(frameon=False)
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], metadata={"Date": None})


def soft(query: Any, items: Any, relevant: Any, alpha: float) -> Any:
    """Soft counts (2, n_bits + 1) of other and of relevant items."""
    u, v = (torch.tanh(torch.from_numpy(logits) * alpha / 2) for logits in (query, items))
    levels = torch.from_numpy(relevant.astype(np.int64))[None]
    return soft_counts((N_BITS - u @ v.T) / 2, levels, 2, N_BITS)[0].numpy()


def draw(axes: Any, profile: bt.TieProfile, counts: Any) -> None:
    """Bars of the exact profile, lines of the soft one."""
    distances = np.arange(N_BITS + 1)
    exact = {
        "relevant": profile.relevant[0],
        "other": profile.total[0] - profile.relevant[0],
    }
    for i, (name, n) in enumerate(exact.items()):
        shift = (i - 0.5) * 0.4
        axes.bar(distances + shift, n, 0.4, color=COLOURS[name], alpha=0.4, label=f"{name}, exact")
        soft_ones = counts[1 if name == "relevant" else 0]
        axes.plot(distances, soft_ones, "o-", ms=3, color=COLOURS[name], label=f"{name}, soft")
    axes.set(xlabel="Hamming distance", xticks=distances)


if __name__ == "__main__":
    main()
