"""Average precision of every shallow hasher on CIFAR-10, against code length.

    python benchmarks/quality_shallow.py [--root DATA] [--jobs 2] [--write docs/results/hashing.md]

Split ``cifar-s1``, class ground truth, tie-aware AP over the full ranking, three runs, on GIST-512
and on network features, beside the exact Euclidean ranking of the vectors themselves.  Hashers have
their default hyper-parameters; nothing is tuned here.  Each cell (features × run × method × bits)
is stored as it finishes, so a stopped run resumes.

The levels of SDH were published for training on all 59,000 rows of the database.  A separate row
shows that setting, in which the codes of the database are codes of training rows.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cells import cut_cifar10, fill, read, sets_of
from results import Section, Target

import bittern as bt

FEATURES = ("gist", "cnn")
TITLES = {"gist": "GIST, 512-D", "cnn": "network features, 1,280-D"}
BITS = (12, 16, 24, 32, 48, 64)
RUNS = (0, 1, 2)
SHALLOW = [name for name in bt.hashing.HASHERS if name not in ("dpsh", "dtsh", "talr")]
EXACT = "exact Euclidean"
EVERY = "sdh, trained on all rows"
#: Published levels: least AP at 16 … 64 bits.
LEVELS = {
    ("gist", "lsh"): 0.12,
    ("gist", "sh"): 0.125,
    ("gist", "itq"): 0.155,
    ("gist", EVERY): 0.44,
}


def main() -> None:
    """Measure the missing cells, then write tables and figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--cells", type=Path, default=Path("build/quality_shallow"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="0 measures nothing")
    parser.add_argument("--only", nargs="*", help="names of methods")
    parser.add_argument("--bits", type=int, nargs="*", default=BITS, choices=BITS)
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS, choices=RUNS)
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    parser.add_argument("--figure", type=Path, help="draw AP against bits into this file")
    options = parser.parse_args()
    for features in FEATURES:
        cut_cifar10(options.root, options.cells, features, RUNS)
    wanted: list[tuple[object, ...]] = [
        (features, run, name, n_bits)
        for features, run, name, n_bits in cells()
        if run in options.runs
        and (name == EXACT or n_bits in options.bits)
        and (not options.only or name in options.only)
    ]
    fill(options.cells, options.jobs, measure, wanted)
    records = list(read(options.cells))
    sections = [table(records, features) for features in FEATURES]
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        command = "python benchmarks/quality_shallow.py"
        Section.write(options.write, "quality-shallow", command, sections)
    if options.figure:
        draw(records, options.figure)


def cells() -> Iterator[tuple[str, int, str, int]]:
    """Every cell, quick methods first."""
    slow = ("bre", "machash", "structhash", "fasthash")
    names = [EVERY, *SHALLOW]
    names.sort(key=lambda name: slow.index(name) if name in slow else -1)
    for features in FEATURES:
        for run in RUNS:
            yield features, run, EXACT, 0
    for name in names:
        for run in RUNS:
            for n_bits in BITS:
                for features in FEATURES:
                    yield features, run, name, n_bits


def measure(folder: Path, features: str, run: int, name: str, n_bits: int) -> dict[str, Any]:
    """Fit, encode and evaluate one cell."""
    sets = sets_of(folder, features, run)
    (queries, query_labels), (database, labels) = sets["queries"], sets["database"]
    truth = bt.Relevance.from_classes(query_labels, labels)
    record: dict[str, Any] = dict(features=features, run=run, method=name, n_bits=n_bits)
    began = time.perf_counter()
    if name == EXACT:
        profile = bt.TieProfile.from_distances(distances(queries, database), truth, compact=True)
    else:
        hasher = bt.hashing.HASHERS["sdh" if name == EVERY else name](n_bits, random_state=run)
        rows, y = sets["database" if name == EVERY else "train"]
        hasher.fit(np.array(rows), y)
        record["fit"] = time.perf_counter() - began
        profile = bt.TieProfile.from_codes(
            hasher.encode(queries), hasher.encode(database), truth, n_threads=1
        )
    score = bt.evaluate(profile, ["ap"])["ap"]
    record.update(ap=score.mean, spread=list(score.spread), seconds=time.perf_counter() - began)
    return record


def distances(queries: np.ndarray, database: np.ndarray) -> Iterator[np.ndarray]:
    """Squared Euclidean distances, a few queries at a time."""
    from sklearn.metrics import pairwise_distances

    items = np.array(database, np.float64)
    for start in range(0, len(queries), 100):
        some = np.array(queries[start : start + 100], np.float64)
        yield pairwise_distances(some, items, metric="sqeuclidean")


def mean_ap(records: list[dict[str, Any]], features: str, name: str, n_bits: int) -> np.ndarray:
    """AP of each run."""
    key = (features, name, n_bits)
    return np.array([r["ap"] for r in records if (r["features"], r["method"], r["n_bits"]) == key])


def table(records: list[dict[str, Any]], features: str) -> Section:
    """Mean AP over runs, methods by code lengths."""
    section = Section(
        f"CIFAR-10, {TITLES[features]}: tie-aware AP, mean over runs",
        ("method", *(f"{n} bits" for n in BITS), "runs", "± at 32", "fit at 32, s"),
    )
    exact = mean_ap(records, features, EXACT, 0)
    if len(exact):
        section.row(
            EXACT, *[f"{exact.mean():.3f}"] * len(BITS), len(exact), f"{exact.std():.3f}", ""
        )
    names = {r["method"] for r in records if r["features"] == features}
    for name in [n for n in (*SHALLOW, EVERY) if n in names]:
        row: list[object] = [name]
        level = LEVELS.get((features, name))
        for n_bits in BITS:
            values = mean_ap(records, features, name, n_bits)
            if not len(values):
                row.append("")
            elif level is not None and n_bits >= 16:
                row.append(Target(float(values.mean()), at_least=level))
            else:
                row.append(f"{values.mean():.3f}")
        at_32 = mean_ap(records, features, name, 32)
        fits = [
            r["fit"]
            for r in records
            if (r["features"], r["method"], r["n_bits"]) == (features, name, 32)
        ]
        row.append(len(at_32))
        row.append(f"{at_32.std():.3f}" if len(at_32) > 1 else "")
        row.append(f"{np.mean(fits):.1f}" if fits else "")
        section.row(*row)
    return section


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """AP against bits for all methods, one panel for each kind of features."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.5), layout="constrained")
    panels = figure.subplots(1, len(FEATURES))
    names = [n for n in SHALLOW if any(r["method"] == n for r in records)]
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
    styles = ("-", "--", ":")
    for axes, features in zip(panels, FEATURES, strict=True):
        for i, name in enumerate(names):
            points = [(n, mean_ap(records, features, name, n)) for n in BITS]
            points = [(n, values.mean()) for n, values in points if len(values)]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    color=colours[i % len(colours)],
                    linestyle=styles[i // len(colours)],
                    marker="o",
                    ms=3,
                    label=name,
                )
        exact = mean_ap(records, features, EXACT, 0)
        if len(exact):
            axes.axhline(exact.mean(), color="0.6", lw=1, label=EXACT)
        axes.set(xlabel="bits", ylabel="AP", xticks=BITS, title=TITLES[features], ylim=(0, None))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
