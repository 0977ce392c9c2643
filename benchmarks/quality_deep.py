"""Hash functions trained by gradients: five experiments, each one command.

    python benchmarks/quality_deep.py table1    # CIFAR-10 network features: Table 1 and Figure 2
    python benchmarks/quality_deep.py pixels    # end to end from CIFAR-10 and Fashion-MNIST pixels
    python benchmarks/quality_deep.py graded    # NDCG on Corel-5K and on graded balls over GIST
    python benchmarks/quality_deep.py figure1   # AP by tie-breaking, LSH, 50 trials
    python benchmarks/quality_deep.py ablation  # form, bins, batch, α

with ``--root DATA`` (for pixels also ``--pixels FOLDER``, where CIFAR-10's own batches and
Fashion-MNIST's files are), ``--write docs/results.md`` and ``--figures docs/images``.  Every cell
is stored as it finishes under ``build/quality_deep``, so a run that was stopped goes on where it
was; a cell of ``pixels`` also goes on within its training.

Hyper-parameters of dpsh, dtsh and talr are chosen by ``table1`` from grids of one size, on a fifth
of the training rows of run 0 that is held out for that; no query or other row is looked at.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, cut_cifar10, fill, read, sets_of
from results import Section, Target

import bittern as bt

RUNS = (0, 1, 2)
TRIED = ("dpsh", "dtsh", "talr")
NETWORKS = ("linear", "mlp")


def main() -> None:
    """Run one experiment, and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--root", type=Path, help="folder of the data (else BITTERN_DATA)")
    parser.add_argument("--pixels", type=Path, help="folder of CIFAR-10's and Fashion-MNIST's own")
    parser.add_argument("--cells", type=Path, default=Path("build/quality_deep"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS, choices=RUNS)
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    parser.add_argument("--figures", type=Path, help="draw into this folder")
    options = parser.parse_args()
    sections = EXPERIMENTS[options.experiment](options)
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        command = f"python benchmarks/quality_deep.py {options.experiment}"
        Section.write(options.write, f"deep-{options.experiment}", command, sections)
    raise SystemExit(0 if all(section.holds for section in sections) else 1)


TABLE_1 = ("lsh", "itq", "bre", "structhash", "machash", "fasthash")
TABLE_1_BITS = (12, 24, 32, 48)
GRID = {
    "linear": {"learning_rate": (3e-3, 1e-2, 3e-2), "dropout": (0.3, 0.5), "n_epochs": (50,)},
    "mlp": {"learning_rate": (5e-4, 1e-3, 2e-3), "dropout": (0.3, 0.5), "n_epochs": (50,)},
}
OWN_GRID: dict[str, dict[str, tuple[Any, ...]]] = {
    "dpsh": {"eta": (0.01, 0.1, 1.0)},
    "dtsh": {"eta": (0.01, 0.1, 1.0)},
    "talr": {"alpha": ((1.0, 1.0), (1.0, 4.0), (2.0, 10.0))},
}
LEVELS = {12: 0.73, 32: 0.775}  # of talr, to be reached


def table1(options: argparse.Namespace) -> list[Section]:
    """All methods on CIFAR-10's network features."""
    folder = options.cells
    cut_cifar10(options.root, folder, "cnn", RUNS)
    tried = [
        ("tune", name, network, *dict(choice).values())
        for name in TRIED
        for network in NETWORKS
        for choice in choices(name, network)
    ]
    fill(folder, options.jobs, tune, tried)
    chosen = {
        (name, network): best(folder, name, network) for name in TRIED for network in NETWORKS
    }
    wanted: list[tuple[object, ...]] = [
        ("table1", name, network, n_bits, run)
        for run in options.runs
        for n_bits in TABLE_1_BITS
        for name, network in [*((name, "") for name in TABLE_1), *chosen]
    ]
    fill(folder, options.jobs, measure, wanted)
    cells = [cell for cell in read(folder) if cell["experiment"] == "table1"]
    sections = [ap_table(cells), ties_table(cells), tuned_table(chosen)]
    if options.figures:
        draw_ties(cells, options.figures / "deep-table1.svg")
    return sections


def choices(name: str, network: str) -> list[dict[str, Any]]:
    """The grid of a method, one dictionary a point."""
    grid = GRID[network] | OWN_GRID[name]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def tune(folder: Path, _: str, name: str, network: str, *values: Any) -> Cell:
    """AP of held-out training rows among themselves, at 32 bits."""
    X, y = sets_of(folder, "cnn", 0)["train"]
    parameters = dict(zip(GRID[network] | OWN_GRID[name], values, strict=True))
    hasher = bt.hashing.HASHERS[name](32, network=network, validation=0.2, **parameters)
    score = float(hasher.fit(np.array(X), y).scores_[-1])
    return dict(experiment="tune", method=name, network=network, parameters=parameters, score=score)


def best(folder: Path, name: str, network: str) -> Cell:
    """The cell of the grid with the highest score."""
    cells = [
        c
        for c in read(folder)
        if c["experiment"] == "tune" and (c["method"], c["network"]) == (name, network)
    ]
    return max(cells, key=lambda cell: cell["score"])


def measure(folder: Path, _: str, name: str, network: str, n_bits: int, run: int) -> Cell:
    """One method at one length on one run, with every way to break ties."""
    sets = sets_of(folder, "cnn", run)
    parameters = {}
    if network:
        parameters = {"network": network, **best(folder, name, network)["parameters"]}
    began = time.perf_counter()
    hasher = bt.hashing.HASHERS[name](n_bits, random_state=run, **parameters)
    hasher.fit(np.array(sets["train"][0]), sets["train"][1])
    seconds = time.perf_counter() - began
    record = dict(experiment="table1", method=name, network=network, n_bits=n_bits, run=run)
    return record | {"fit": seconds} | evaluated(hasher, sets)


def evaluated(hasher: Any, sets: dict[str, tuple[np.ndarray, np.ndarray]]) -> Cell:
    """AP in expectation over ties, at best, at worst, and in the order of the database."""
    (Q, query_labels), (D, labels) = sets["queries"], sets["database"]
    queries, database = hasher.encode(Q), hasher.encode(D)
    truth = bt.Relevance.from_classes(query_labels, labels)
    names = ["ap", "ap:optimistic", "ap:pessimistic"]
    scores = bt.evaluate(bt.TieProfile.from_codes(queries, database, truth), names)
    plain = plain_ap(queries, database, query_labels, labels)
    return {name: scores[name].mean for name in names} | {"plain": plain}


def plain_ap(queries: bt.Codes, database: bt.Codes, query_labels: Any, labels: Any) -> float:
    """Mean AP where tied items stay in the order of the database."""
    values = []
    ranks = np.arange(1, len(database) + 1)
    for words, label in zip(queries.words, query_labels, strict=True):
        distance = np.bitwise_count(database.words ^ words).sum(axis=1, dtype=np.uint16)
        relevant = (labels == label)[np.argsort(distance, kind="stable")]
        found = np.flatnonzero(relevant)
        values.append((np.arange(1, len(found) + 1) / ranks[found]).mean())
    return float(np.mean(values))


def rows_of(cells: list[Cell]) -> list[tuple[str, str]]:
    """Methods with their networks, in the order of the table."""
    found = {(cell["method"], cell["network"]) for cell in cells}
    order = [*((name, "") for name in TABLE_1), *itertools.product(TRIED, NETWORKS)]
    return [row for row in order if row in found]


def values_of(cells: list[Cell], key: str = "ap", **wanted: Any) -> np.ndarray:
    """One number of the cells that are as wanted."""
    return np.array(
        [c[key] for c in cells if all(c[name] == value for name, value in wanted.items())]
    )


def ap_table(cells: list[Cell]) -> Section:
    """Mean and spread over runs."""
    section = Section(
        "CIFAR-10 network features, cifar-s1: tie-aware AP, mean ± deviation over runs",
        ("method", "network", *(f"{n} bits" for n in TABLE_1_BITS), "runs", "fit at 32, s"),
    )
    for method, network in rows_of(cells):
        mine = [c for c in cells if (c["method"], c["network"]) == (method, network)]
        row: list[object] = [method, network or "–"]
        for n_bits in TABLE_1_BITS:
            values = values_of(mine, n_bits=n_bits)
            shown = f"{values.mean():.3f} ± {values.std():.3f}" if len(values) else ""
            if len(values) and (method, network) == ("talr", "mlp") and n_bits in LEVELS:
                shown += f" ({Target(float(values.mean()), at_least=LEVELS[n_bits])})"
                section.holds &= bool(values.mean() >= LEVELS[n_bits])
            row.append(shown)
        fits = values_of(mine, "fit", n_bits=32)
        section.row(*row, len(fits), f"{fits.mean():.0f}" if len(fits) else "")
    return section


def ties_table(cells: list[Cell]) -> Section:
    """Figure 2: what the order of tied items does at 32 bits."""
    section = Section(
        "The same at 32 bits by the order of tied items",
        ("method", "network", "tie-aware", "in database order", "optimistic", "pessimistic"),
    )
    for method, network in rows_of(cells):
        mine = [c for c in cells if (c["method"], c["network"]) == (method, network)]
        keys = ("ap", "plain", "ap:optimistic", "ap:pessimistic")
        means = [values_of(mine, key, n_bits=32).mean() for key in keys]
        section.row(method, network or "–", *(f"{mean:.3f}" for mean in means))
    return section


def tuned_table(chosen: dict[tuple[str, str], Cell]) -> Section:
    """What the grid chose."""
    section = Section(
        "Chosen on held-out training rows of run 0 (32 bits), from 18 points each",
        ("method", "network", "parameters", "AP of the held-out rows"),
    )
    for (method, network), cell in chosen.items():
        told = ", ".join(f"{name} {value}" for name, value in cell["parameters"].items())
        section.row(method, network, told, f"{cell['score']:.3f}")
    return section


def draw_ties(cells: list[Cell], path: Path) -> None:
    """AP against bits, with bars from pessimistic to optimistic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    rows = rows_of(cells)
    for i, (method, network) in enumerate(rows):
        mine = [c for c in cells if (c["method"], c["network"]) == (method, network)]
        middle, low, high = (
            np.array([values_of(mine, key, n_bits=n).mean() for n in TABLE_1_BITS])
            for key in ("ap", "ap:pessimistic", "ap:optimistic")
        )
        shift = (i - len(rows) / 2) * 0.25
        axes.errorbar(
            np.array(TABLE_1_BITS) + shift,
            middle,
            (middle - low, high - middle),
            marker="o",
            ms=3,
            lw=1,
            capsize=2,
            color=f"C{i % 10}",
            label=f"{method} {network}".strip(),
        )
    axes.set(xlabel="bits", ylabel="AP", xticks=TABLE_1_BITS, ylim=(0, None))
    axes.legend(frameon=False, ncols=2, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


PIXELS = {
    "cifar10": dict(
        network="efficientnet-lite0",
        image_size=112,
        frozen=4,
        augment=3,
        n_epochs=20,
        batch_size=250,
        learning_rate=2e-3,
        trunk_rate=0.25,
        dropout=0.2,
        weight_decay=0.05,
        alpha=(1.0, 4.0),
    ),
    "fashion-mnist": dict(
        network="small",
        augment=1,
        n_epochs=25,
        batch_size=250,
        learning_rate=5e-3,
        trunk_rate=1.0,
        dropout=0.1,
        weight_decay=0.05,
        alpha=(1.0, 4.0),
    ),
}
PIXEL_LEVELS = {"cifar10": 0.85}


def pixels(options: argparse.Namespace) -> list[Section]:
    """TALR from pixels, 5,000 training pictures."""
    if options.pixels is None:
        raise SystemExit("pixels needs --pixels FOLDER with CIFAR-10 and Fashion-MNIST in it.")
    for name in PIXELS:
        cut_pixels(options.pixels, options.cells / name, name)
    wanted: list[tuple[object, ...]] = [
        ("pixels", name, 32, run) for run in options.runs for name in PIXELS
    ]
    fill(options.cells, 1, from_pixels, wanted, threads=os.cpu_count() or 1)
    cells = [cell for cell in read(options.cells) if cell["experiment"] == "pixels"]
    section = Section(
        "End to end from pixels, 32 bits, 5,000 training pictures, 1,000 queries",
        ("data", "network", "AP, mean", "± over runs", "runs", "training, min", "encoding, min"),
    )
    for name, parameters in PIXELS.items():
        mine = [c for c in cells if c["dataset"] == name]
        if mine:
            ap = values_of(mine)
            level = Target(float(ap.mean()), at_least=PIXEL_LEVELS.get(name))
            minutes = [values_of(mine, key).mean() / 60 for key in ("fit", "encode")]
            section.row(name, parameters["network"], level, f"{ap.std():.3f}", len(ap), *minutes)
    return [section]


def cut_pixels(root: Path, folder: Path, name: str) -> None:
    """Cut each run's sets out of a data set's pictures once."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "pictures.npy").exists():
        return
    dataset = bt.load(name, root)
    np.save(folder / "labels.npy", np.asarray(dataset.labels))
    for run in RUNS:
        split = bt.make_split("cifar-s1", dataset, random_state=0, run=run)
        sets = {part: getattr(split, part) for part in ("train", "queries", "database")}
        np.savez(folder / f"{run}.npz", **sets)
    np.save(folder / "pictures.npy", np.asarray(dataset.vectors[:], np.uint8))


def from_pixels(folder: Path, _: str, name: str, n_bits: int, run: int) -> Cell:
    """One training, which goes on where it was stopped, and its evaluation."""
    images, labels = np.load(folder / name / "pictures.npy"), np.load(folder / name / "labels.npy")
    with np.load(folder / name / f"{run}.npz") as sets:
        train, queries, database = (sets[part] for part in ("train", "queries", "database"))
    checkpoint = folder / f"checkpoint-{name}-{n_bits}-{run}.pt"
    began = time.perf_counter()
    hasher = bt.hashing.TALR(
        n_bits, random_state=run, checkpoint=str(checkpoint), **PIXELS[name]
    ).fit(images[train], labels[train])
    fitted = time.perf_counter()
    codes = hasher.encode(images)
    encoded = time.perf_counter()
    truth = bt.Relevance.from_classes(labels[queries], labels[database])
    scores = bt.evaluate(codes[queries], codes[database], truth, ["ap"])
    record = dict(experiment="pixels", dataset=name, n_bits=n_bits, run=run, ap=scores["ap"].mean)
    return record | {"fit": fitted - began, "encode": encoded - fitted}


GRADED = ("lsh", "itq", "bre", "machash", "fasthash", "structhash", "dpsh", "dtsh", "talr")
GRADED_BITS = (16, 32, 48, 64)
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
    dataset = bt.load("corel5k", root, features="cnn")
    rows, tags = np.asarray(dataset.vectors[:], np.float32), np.asarray(dataset.tags, bool)
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
    parameters = {"objective": "ndcg"} if name == "talr" else {}
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
                section.row(
                    what, value, f"{ap.mean():.3f} ± {ap.std():.3f}", values_of(mine, "fit").mean()
                )
    if options.figures:
        draw_ablation(cells, options.figures / "deep-ablation.svg")
    return [section]


def ablated(folder: Path, _: str, what: str, value: Any, run: int) -> Cell:
    """TALR with one parameter other than by default."""
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
        told = [
            "–".join(f"{v:g}" for v in value) if isinstance(value, tuple) else str(value)
            for value in values
        ]
        axes.set(xticks=range(len(values)), title=what)
        axes.set_xticklabels(told, rotation=30)
    panels[0].set_ylabel("AP")
    figure.savefig(path, metadata={"Date": None})


EXPERIMENTS = {
    "table1": table1,
    "pixels": pixels,
    "graded": graded,
    "figure1": figure1,
    "ablation": ablation,
}

if __name__ == "__main__":
    main()
