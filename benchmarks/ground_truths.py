"""Compare ground truths: how far they agree, and whether they rank methods alike.

    python benchmarks/ground_truths.py [--root DATA] [--out results] [--jobs 2] [--no-run]
        [--write docs/results/ground-truths.md]

Runs the protocols ground-truth-* where cells are missing. They share data, splits and methods.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from reproduce import Lines
from results import Section

from bittern.analysis import rank_agreement
from bittern.experiments import Records, run
from bittern.experiments.run_data import load_dataset, prepare_run
from bittern.io.protocol_files import find_protocol
from bittern.metrics import Overlap, truth_overlap

NAMES = [f"ground-truth-{kind}" for kind in ("ball", "ball-train", "classes", "neighbours")]


def main() -> None:
    """Run the protocols and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--no-run", action="store_true", help="measure nothing")
    parser.add_argument("--write", type=Path, help="write the tables into this page")
    options = parser.parse_args()
    for name in NAMES if not options.no_run else []:
        print(name, flush=True)
        chosen = dict(root=options.root, jobs=options.jobs, watcher=Lines())
        run(find_protocol(name), options.out / name, **chosen)
    found = {title_of(one): one for one in map(Records.read, (options.out / n for n in NAMES))}
    overlaps = measure_overlaps(found, options.root)
    sections = [sizes(found), agreement(overlaps), values(found), rankings(found)]
    if options.write:
        command = "python benchmarks/ground_truths.py --write docs/results/ground-truths.md"
        Section.write(options.write, "ground-truths", command, sections)
    else:
        print("\n\n".join(section.text() for section in sections))


def title_of(records: Records) -> str:
    """The name of the ground truth, in words."""
    return records.protocol.title.partition(": ")[2]


def measure_overlaps(
    found: dict[str, Records], root: Path | None
) -> dict[tuple[str, str], Overlap]:
    """The overlap of each pair of ground truths, over the test queries of all runs."""
    protocols = {title: records.protocol for title, records in found.items()}
    first = next(iter(protocols.values()))
    dataset = load_dataset(first.dataset, root)
    parts: dict[tuple[str, str], list[Overlap]] = {pair: [] for pair in combinations(protocols, 2)}
    for number in range(first.runs):
        data = prepare_run(first, dataset, number)
        sets = data.queries, data.database, data.train
        truths = {title: one.ground_truth.between(*sets) for title, one in protocols.items()}
        for one, two in parts:
            parts[one, two].append(truth_overlap(truths[one], truths[two]))
    fields = ("n_items", "first", "second", "both")
    return {
        pair: Overlap(*(np.concatenate([getattr(one, name) for one in of]) for name in fields))
        for pair, of in parts.items()
    }


def sizes(found: dict[str, Records]) -> Section:
    """How many items are relevant by each ground truth."""
    section = Section("Relevant items per query", ("ground truth", "mean", "median", "range"))
    for title, records in found.items():
        runs = {record.run: record.n_relevant for record in records}
        counts = np.concatenate([np.asarray(of) for of in runs.values()])
        spread = f"{counts.min():,} to {counts.max():,}"
        section.row(title, f"{counts.mean():,.0f}", f"{np.median(counts):,.0f}", spread)
    split = next(iter(found.values())).records[0].split["sizes"]
    section.note(
        f"{split['queries']:,} queries, {split['database']:,} database items and "
        f"{split['train']:,} training rows in each of {len(runs)} runs."
    )
    return section


def agreement(overlaps: dict[tuple[str, str], Overlap]) -> Section:
    """How far each pair of ground truths calls the same items relevant."""
    header = ("A", "B", "F1", "Jaccard", "of A also in B", "of B also in A")
    section = Section("Do they call the same items relevant?", header)
    for (one, two), found in overlaps.items():
        turned = Overlap(found.n_items, found.second, found.first, found.both)
        section.row(
            one,
            two,
            _beside_chance(found.f1, found.f1_by_chance),
            f"{np.nanmean(found.jaccard):.3f}",
            _beside_chance(found.share, found.share_by_chance),
            _beside_chance(turned.share, turned.share_by_chance),
        )
    section.note(
        "Means over queries. In brackets: the expectation if B called as many items relevant, "
        "but drew them at random."
    )
    return section


def values(found: dict[str, Records]) -> Section:
    """The main metric of each method under each ground truth, and its rank there."""
    metric = next(iter(found.values())).protocol.main_metric
    section = Section(f"Methods: {metric} and rank by each ground truth", ("method", *found))
    means = {
        title: {m: float(np.mean(records.over_runs(m, n, metric))) for m in records.methods}
        for title, records in found.items()
        for n in records.lengths
    }
    for method in next(iter(means.values())):
        row = [f"{of[method]:.4f} ({_rank(of, method)})" for of in means.values()]
        section.row(method, *row)
    return section


def rankings(found: dict[str, Records]) -> Section:
    """Kendall's tau between the orders of the methods."""
    metrics = next(iter(found.values())).protocol.metrics
    header = ("A", "B", *(f"τ by {metric}" for metric in metrics))
    section = Section("Do they rank methods alike?", header)
    for one, two in combinations(found, 2):
        agreed = [rank_agreement(found[one], found[two], metric)[0] for metric in metrics]
        section.row(one, two, *map(_tau, agreed))
        swapped = ", ".join(f"{better} / {worse}" for better, worse in agreed[0].swapped)
        if swapped:
            section.note(f"*{one}* against *{two}*, by {metrics[0]}, other order: {swapped}.")
    n = len(agreed[0].methods)
    section.notes.insert(
        0, f"Kendall's τ of {n} methods, by their means over runs; in brackets its range over runs."
    )
    return section


def _beside_chance(values: np.ndarray, by_chance: np.ndarray) -> str:
    return f"{np.nanmean(values):.3f} ({np.nanmean(by_chance):.3f})"


def _tau(found) -> str:
    return f"{found.tau:.2f} ({min(found.tau_of_runs):.2f} to {max(found.tau_of_runs):.2f})"


def _rank(means: dict[str, float], method: str) -> int:
    return 1 + sum(value > means[method] for value in means.values())


if __name__ == "__main__":
    main()
