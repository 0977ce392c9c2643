"""Corel: Tables 1 and 2 and Figure 1 of the evidence paper, and what goes beyond them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from results import Section

import bittern as bt
from bittern.features import NINE
from bittern.metrics.significance import Significance, paired_t_test
from evidence.methods import COMBINATIONS, MANY, fitted_svm, oracle, predicted, svm
from evidence.sides import Side, score

TRIPLES = {
    "HSV, RGB and convolution": ("hsv-global", "rgb-moments", "convolution"),
    "HSV, smoothness and uniformity": ("hsv-global", "smoothness", "uniformity"),
}
STEP = 0.05  # of the raster
CHOICES = tuple(itertools.product((5, 10, 20, 40), (50, 100, 200)))  # k, negatives
LEARNED_SIZE = 3  # examples of the queries on which these are chosen


@dataclass
class Found:
    """Average precision of each test query, by method, and what else was noticed in a run."""

    ap: dict[str, np.ndarray]
    with_deep: dict[str, np.ndarray]
    triples: dict[tuple[str, str], float] = field(default_factory=dict)
    tests: dict[str, Significance] = field(default_factory=dict)  # the SVM against the raster
    best_n: dict[tuple[str, int], float] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)


Settings = tuple[int, int]  # k, and the number of negatives


def corel(
    dataset: bt.Dataset,
    vectors: Mapping[str, np.ndarray],
    settings: Settings,
    runs: range,
    figures: Path | None,
) -> list[Section]:
    """All that is said of Corel."""
    found = [examine(*both(dataset, vectors, settings, run), run) for run in runs]
    if figures:
        draw_best(found, figures / "evidence-figure1.svg")
    return [
        table_1(found),
        findings(found),
        table_2(found),
        figure_1(found),
        beyond(found),
    ]


def both(
    dataset: bt.Dataset, vectors: Mapping[str, np.ndarray], settings: Settings, run: int
) -> tuple[Side, Side]:
    """The training side and the test side of a run."""
    split = bt.make_split("corel", dataset, random_state=0, run=run)
    labels = np.asarray(dataset.labels)
    k, n_negatives = settings
    options = dict(k=k, n_negatives=n_negatives, random_state=run)
    parts = (
        (split.training_queries, split.validation_queries, split.validation_database),
        (split.test_queries, split.queries, split.database),
    )
    began = time.perf_counter()
    first, second = (
        score(vectors, asked.images, asked.categories, pool, database, labels, **options)
        for asked, pool, database in parts
    )
    n_queries, seconds = sum(map(len, (first.sizes, second.sizes))), time.perf_counter() - began
    print(f"run {run}: {n_queries:,} queries by {len(vectors)} features in {seconds:.0f} s")
    return first, second


def choose(dataset: bt.Dataset, vectors: Mapping[str, np.ndarray]) -> tuple[Settings, Section]:
    """The k and the number of negatives, neither in the paper, of CombSUM's best training MAP."""
    split = bt.make_split("corel", dataset, random_state=0, run=0)
    asked = split.training_queries.of_size(LEARNED_SIZE)
    labels = np.asarray(dataset.labels)
    tried: dict[Settings, float] = {}
    vectors = {name: vectors[name] for name in NINE}
    for k, n_negatives in CHOICES:
        side = score(
            vectors,
            asked.images,
            asked.categories,
            split.validation_queries,
            split.validation_database,
            labels,
            k=k,
            n_negatives=n_negatives,
            random_state=0,
        )
        tried[k, n_negatives] = float(side.ap(bt.fusion.comb_sum(side.scores)).mean())
        print(f"k {k}, {n_negatives} negatives: {tried[k, n_negatives]:.4f}", flush=True)
    settings = max(tried, key=tried.__getitem__)
    return settings, choice_table(tried, settings)


def combine(train: Side, test: Side, run: int) -> dict[str, np.ndarray]:
    """AP of each test query by each feature, each combination, and what is beyond."""
    ap = {name: test.ap(test.scores[i]) for i, name in enumerate(test.names)}
    ap |= {name: test.ap(method(train, test, run)) for name, method in COMBINATIONS.items()}
    ap["predicted weights"] = test.ap(predicted(train, test, run))
    ap["oracle weights"] = oracle(test)
    print(f"run {run}: " + ", ".join(f"{k} {v.mean():.3f}" for k, v in ap.items()), flush=True)
    return ap


def examine(train: Side, test: Side, run: int) -> Found:
    """Everything about one run: with deep features, then with the nine alone."""
    with_deep = combine(train, test, run)
    train, test = train.of(NINE), test.of(NINE)
    found = Found(combine(train, test, run), with_deep)
    for title, names in TRIPLES.items():
        few, asked = train.of(names), test.of(names)
        raster = bt.fusion.RasterFusion(step=STEP)
        learned = asked.ap(raster.fit(few.scores, few.relevant).combine(asked.scores))
        by_svm = asked.ap(svm(few, asked, run))
        found.triples["raster, weights of the training partition", title] = learned.mean()
        seen = bt.fusion.RasterFusion(step=STEP).fit(asked.scores, asked.relevant)
        found.triples["raster, weights of the test partition (oracle)", title] = seen.mean_ap_
        found.triples["SVM", title] = by_svm.mean()
        found.tests[title] = paired_t_test(by_svm, learned)
        found.triples["CombSUM", title] = asked.ap(bt.fusion.comb_sum(asked.scores)).mean()
    alone = {name: train.ap(train.scores[i]).mean() for i, name in enumerate(train.names)}
    order = tuple(sorted(alone, key=alone.__getitem__, reverse=True))
    for n in range(1, len(order) + 1):
        few, asked = train.of(order[:n]), test.of(order[:n])
        found.best_n["SVM", n] = asked.ap(svm(few, asked, run)).mean()
        found.best_n["CombSUM", n] = asked.ap(bt.fusion.comb_sum(asked.scores)).mean()
    weights = np.mean([fitted_svm(train.of_size(n), run).weights_ for n in range(1, 7)], axis=0)
    found.weights = dict(zip(train.names, weights / weights.sum(), strict=True))
    return found


def mean_and_spread(values: list[float]) -> tuple[str, str]:
    """Over runs."""
    return f"{np.mean(values):.4f}", f"{np.std(values):.4f}"


def choice_table(tried: dict[Settings, float], chosen: Settings) -> Section:
    """What the paper does not tell."""
    section = Section(
        f"k and number of negatives, by CombSUM's MAP on {LEARNED_SIZE}-image training queries",
        ("k", "negatives", "MAP"),
    )
    for (k, n_negatives), value in tried.items():
        mark = " (taken)" if (k, n_negatives) == chosen else ""
        section.row(k, n_negatives, f"{value:.4f}{mark}")
    return section


def table_1(found: list[Found]) -> Section:
    """Features and combinations."""
    section = Section(
        "Corel-5K, 50 categories, Table 1: MAP on the test partition, mean and deviation over runs",
        ("feature or combination", "MAP", "±", "over the best feature"),
    )
    best = max(np.mean([run.ap[name].mean() for run in found]) for name in NINE)
    means = {name: [run.ap[name].mean() for run in found] for name in found[0].ap}
    singles = sorted(NINE, key=lambda name: -np.mean(means[name]))
    for name in (*singles, *COMBINATIONS):
        gain = "" if name in NINE else f"{np.mean(means[name]) / best - 1:+.0%}"
        section.row(name, *mean_and_spread(means[name]), gain)
    return section


def findings(found: list[Found]) -> Section:
    """The paper's tests, for each run."""
    section = Section(
        "One-sided paired t-tests over the test queries of each run",
        ("is better than", "difference of MAP, by run", "p, by run"),
    )
    best = max(NINE, key=lambda name: np.mean([run.ap[name].mean() for run in found]))
    nine, all_ten = [run.ap for run in found], [run.with_deep for run in found]
    for title, better, worse, runs in (
        ("", "SVM", "CombSUM", nine),
        ("", f"SVM, m = {MANY}", "CombSUM", nine),
        ("", "SVM", "BordaFuse", nine),
        ("", "CombSUM", best, nine),
        ("", "predicted weights", "CombSUM", nine),
        (", deep among them", "SVM", "CombSUM", all_ten),
        (", deep among them", "SVM", "deep", all_ten),
        (", deep among them", "predicted weights", "SVM", all_ten),
    ):
        tests = [paired_t_test(run[better], run[worse], alternative="greater") for run in runs]
        section.row(
            f"{better} > {worse}{title}",
            ", ".join(f"{test.difference:+.4f}" for test in tests),
            ", ".join(f"{test.p_value:.2g}" for test in tests),
        )
    shares = {name: np.mean([run.weights[name] for run in found]) for name in NINE}
    told = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    section.note(f"The SVM's weights, as shares, averaged over sizes and runs: {told}.")
    return section


def table_2(found: list[Found]) -> Section:
    """The raster on three features."""
    section = Section("Table 2: MAP with three features", ("weights", *TRIPLES))
    for method in dict.fromkeys(method for method, _ in found[0].triples):
        cells = [
            " ± ".join(mean_and_spread([run.triples[method, title] for run in found]))
            for title in TRIPLES
        ]
        section.row(method, *cells)
    p_values = [", ".join(f"{run.tests[title].p_value:.2g}" for run in found) for title in TRIPLES]
    section.row("p, SVM and learned raster alike, by run (two-sided t)", *p_values)
    return section


def figure_1(found: list[Found]) -> Section:
    """The n best features."""
    numbers = range(1, len(NINE) + 1)
    section = Section(
        "Figure 1: MAP of the n features that are best on the training partition",
        ("n", *map(str, numbers)),
    )
    for method in ("SVM", "CombSUM"):
        means = (np.mean([run.best_n[method, n] for run in found]) for n in numbers)
        section.row(method, *(f"{mean:.3f}" for mean in means))
    return section


def beyond(found: list[Found]) -> Section:
    """Weights of each query's own, and a network's features."""
    section = Section(
        "Beyond: weights of each query's own, and deep features among the others",
        ("features", "weights", "MAP", "±", "of the way from the SVM to the oracle"),
    )
    sets = {"nine": [run.ap for run in found], "nine and deep": [run.with_deep for run in found]}
    for title, runs in sets.items():
        names = ("CombSUM", "SVM", "predicted weights", "oracle weights")
        if "deep" in runs[0]:
            section.row("deep", "–", *mean_and_spread([run["deep"].mean() for run in runs]), "")
        means = {name: [run[name].mean() for run in runs] for name in names}
        low, high = np.mean(means["SVM"]), np.mean(means["oracle weights"])
        for name in names:
            way = (np.mean(means[name]) - low) / (high - low)
            shown = f"{way:.0%}" if name == "predicted weights" else ""
            section.row(title, name, *mean_and_spread(means[name]), shown)
    section.note(
        "The predictor learns on training queries and sees no judgement of the query that it "
        "weighs; the oracle sees them all."
    )
    return section


def draw_best(found: list[Found], path: Path) -> None:
    """Figure 1."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.5), layout="constrained")
    axes = figure.subplots()
    numbers = range(1, len(NINE) + 1)
    for method, colour in (("SVM", "#0072B2"), ("CombSUM", "#D55E00")):
        values = np.array([[run.best_n[method, n] for n in numbers] for run in found])
        axes.errorbar(
            numbers, values.mean(axis=0), values.std(axis=0), color=colour, marker="o", ms=4,
            capsize=3, label=method,
        )  # fmt: skip
    axes.set(xlabel="number of features, best first", ylabel="MAP", xticks=numbers)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
