"""See which features find images of the same category, and how much better they do together.

    python examples/combine_evidence.py [FOLDER] [--lists IMAGE.png]

FOLDER holds a sub-folder of at least 32 images for each category; without it, the script uses
scikit-learn's digits.  Follows the evidence paper's protocol: split the images into two
collections, query with one to six images of a category, learn weights in one collection, and
measure mean average precision in the other.  ``--lists`` draws the first results of each feature
and of their combination for one query; it needs the extra ``plots``.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

import bittern as bt
from bittern.features import NINE
from bittern.metrics.significance import paired_t_test

K, N_NEGATIVES, SHOWN = 20, 100, 10
EXAMPLES = 250  # positive ones for the SVM: the paper's 4 from each of its 63 categories


def main() -> None:
    """Score, combine, print, and draw on request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--lists", type=Path, help="draw the lists of one query into this file")
    options = parser.parse_args()
    dataset = bt.load("folder", root=options.folder) if options.folder else digits()
    split = bt.make_split("corel", dataset, random_state=0, **sizes(dataset))
    vectors = {name: bt.features.FEATURES[name]().fit_transform(dataset.vectors) for name in NINE}
    train = scored(dataset, vectors, split.training_queries, split.validation_database)
    test = scored(dataset, vectors, split.test_queries, split.database)
    n_categories = len(np.unique(train[2]))
    svm = bt.fusion.SVMFusion(max(4, EXAMPLES // n_categories)).fit(*train)
    fused = {name: test[0][i] for i, name in enumerate(NINE)}
    fused |= {name: bt.fusion.FUSIONS[name](test[0]) for name in ("comb-sum", "borda", "comb-min")}
    fused["svm"] = svm.combine(test[0])
    report(fused, test[1])
    if options.lists:
        draw(dataset, split, {"all, by the SVM": fused.pop("svm"), **fused}, options.lists)


def digits() -> bt.Dataset:
    """Four hundred of scikit-learn's digits, as images."""
    some = bt.load("digits").take(np.arange(400))
    images = (15 * some.vectors[:]).astype(np.uint8).reshape(-1, 8, 8)
    return replace(some, modalities={"image": images})


def sizes(dataset: bt.Dataset) -> dict[str, Any]:
    """Ten queries each of one to six images, or as many as the smallest category allows."""
    smallest = int(np.bincount(dataset.labels).min()) // 8  # images to query by
    per_size = min(10, smallest)
    return {
        "per_size": per_size,
        "sizes": tuple(n for n in range(1, 7) if comb(smallest, n) >= per_size),
    }


def scored(
    dataset: bt.Dataset, vectors: dict[str, Any], asked: Any, database: Any
) -> tuple[Any, Any, Any]:
    """Scores (features, queries, items), which items are relevant, and each query's category."""
    pool = np.unique(asked.images[asked.images >= 0])  # also where negative examples come from
    positives = np.where(asked.images >= 0, np.searchsorted(pool, asked.images), -1)
    n_negatives = min(N_NEGATIVES, len(pool) // 2)
    negatives = bt.fusion.draw_negatives(positives, np.arange(len(pool)), n_negatives)
    scores = [
        bt.fusion.similarities(positives, negatives, rows[pool], rows[database], k=K)
        for rows in vectors.values()
    ]
    return (
        np.stack(scores),
        asked.categories[:, None] == dataset.labels[database],
        asked.categories,
    )


def report(fused: dict[str, Any], relevant: Any) -> None:
    """Print the mean average precision of each, and test whether the SVM beats CombSUM."""
    truth = bt.Relevance.from_matrix(relevant)
    ap = {}
    for name, scores in fused.items():
        profile = bt.TieProfile.from_distances(-scores, truth)
        ap[name] = bt.evaluate(profile, ["ap"])["ap"]
        print(f"{name:18} {ap[name].mean:.4f}")
    test = paired_t_test(ap["svm"], ap["comb-sum"], alternative="greater")
    print(f"svm above comb-sum by {test.difference:+.4f}, p = {test.p_value:.2g} (one-sided t)")


def draw(dataset: bt.Dataset, split: Any, lists: dict[str, Any], path: Path) -> None:
    """Strips of the first images of one query, those of its category framed in green."""
    from matplotlib.figure import Figure

    query = typical(split, dataset, lists["all, by the SVM"])
    asked, database = split.test_queries, split.database
    figure = Figure(figsize=(SHOWN + 2.2, 0.95 * (len(lists) + 1)), layout="constrained")
    panels = figure.subplots(len(lists) + 1, SHOWN)
    for axes in panels.ravel():
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    examples = [i for i in asked.images[query] if i >= 0]
    rows = {"the query": examples} | {
        name: database[np.argsort(-scores[query], kind="stable")[:SHOWN]]
        for name, scores in lists.items()
    }
    for line, (name, items) in zip(panels, rows.items(), strict=True):
        label = line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        label.set_visible(True)
        for axes, item in zip(line, items, strict=False):
            image = np.asarray(dataset.vectors[int(item)])
            axes.imshow(image, cmap=None if image.ndim == 3 else "gray")
            is_right = dataset.labels[item] == asked.categories[query]
            axes.spines[:].set(visible=True, color="#009E73" if is_right else "#BBBBBB", lw=3)
    figure.savefig(path, dpi=80)


def typical(split: Any, dataset: bt.Dataset, scores: Any) -> int:
    """The query of most images whose AP is nearest to the median."""
    truth = bt.Relevance.from_classes(split.test_queries.categories, dataset.labels[split.database])
    profile = bt.TieProfile.from_distances(-scores, truth)
    ap = bt.evaluate(profile, ["ap"])["ap"].per_query
    largest = split.test_queries.sizes == split.test_queries.sizes.max()
    return int(np.argmin(np.where(largest, np.abs(ap - np.median(ap[largest])), np.inf)))


if __name__ == "__main__":
    main()
