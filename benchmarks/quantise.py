"""Quantisers: recall against bytes, all methods on the same rows.

    python benchmarks/quantise.py [--root DATA] [--cells FOLDER] [--jobs J]
        [--write FILE.md]

Models are trained on 20,000 rows, 20,000 others are searched, and 500 others are queries.  Recall
is that of the ten nearest by full vectors among the first ten, and among the first forty, which is
what sorting four times as many by full vectors finds.  Finished cells are kept in the folder.
Needs the shared CIFAR-10 features and FAISS; about an hour on two cores, most of it for OPQ and RQ.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from cells import fill, read
from results import Section, Target

import bittern as bt

SETS = {
    "cnn": ("network features, 1,280-D, cosine", "cosine"),
    "gist": ("GIST, 512-D", "euclidean"),
}
SIZES = (8, 16, 32, 64)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "RaBitQ, 1 bit": ("rabitq", {"bits": 1}),
    "RaBitQ, 2 bits": ("rabitq", {"bits": 2}),
    "RaBitQ, 4 bits": ("rabitq", {"bits": 4}),
    "RaBitQ, centres, fitted": ("rabitq", {"centres": True, "fitted": True}),
    "PQ": ("pq", {}),
    "OPQ": ("opq", {}),
    "RQ": ("rq", {}),
    "water-filled": ("water-filled", {}),
    "TCQ": ("tcq", {}),
}
LARGEST = {"rq": 16}  # bytes; training takes hours beyond
WHOLE = {"sign": ("sign", {}), "int8": ("int8", {}), "float16": ("float16", {})}
N_TRAIN, N_ITEMS, N_QUERIES, K, FACTOR = 20_000, 20_000, 500, 10, 4
LEVELS = {("cnn", 16): (0.58, 0.92), ("gist", 16): (0.61, 0.94)}  # of TCQ


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--cells", type=Path, default=Path("results/quantise"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", type=Path, help="also write the tables into this file")
    options = parser.parse_args()
    options.cells.mkdir(parents=True, exist_ok=True)
    wanted = [(name, method, size) for size in SIZES for name in SETS for method in METHODS]
    wanted = [key for key in wanted if key[2] <= LARGEST.get(METHODS[key[1]][0], SIZES[-1])]
    wanted += [(name, method, 0) for name in SETS for method in WHOLE]
    fill(options.cells, options.jobs, Measure(options.root), wanted)
    found = {(cell["set"], cell["method"], cell["size"]): cell for cell in read(options.cells)}
    sections = [table(name, found) for name in SETS]
    print("\n\n".join(section.text() for section in sections))
    if options.write:
        Section.write(options.write, "quantise", "python benchmarks/quantise.py", sections)
    sys.exit(0 if all(section.holds for section in sections) else 1)


class Measure:
    """Measures one cell; a class, so that processes can take it."""

    def __init__(self, root: Path | None) -> None:
        self.root = root

    def __call__(self, folder: Path, name: str, method: str, size: int) -> dict[str, Any]:
        """Fit, encode, and find the ten nearest of each query."""
        train, items, queries, true = sets(name, self.root)
        kind, parameters = {**METHODS, **WHOLE}[method]
        quantiser = bt.quantise.QUANTISERS[kind](
            size or None, metric=SETS[name][1], random_state=0, **parameters
        )
        began = time.process_time()
        quantiser.fit(train)
        fitted = time.process_time()
        stored = quantiser.encode(items)
        encoded = time.process_time()
        ids = bt.QuantisedIndex(quantiser, stored).search(queries, K * FACTOR).ids
        hits = (ids[:, :, None] == true[:, None]).any(axis=2)
        return {
            "set": name,
            "method": method,
            "size": size,
            "bytes": stored.n_bytes,
            "score": float(hits[:, :K].mean()),
            "first": hits[:, :K].mean(axis=1).tolist(),
            "rescored": (hits.sum(axis=1) / K).tolist(),
            "fit": fitted - began,
            "encode": (encoded - fitted) / len(items),
        }


def sets(name: str, root: Path | None) -> tuple[np.ndarray, ...]:
    """Training rows, items, queries, and the ten nearest items of each query."""
    X = np.asarray(bt.load("cifar10", root, features=name).features[:], np.float32)
    order = np.random.default_rng(1).permutation(len(X))
    train, items, queries = np.split(
        X[order[: N_TRAIN + N_ITEMS + N_QUERIES]], [N_TRAIN, N_TRAIN + N_ITEMS]
    )
    full = bt.quantise.Float16(metric=SETS[name][1]).fit(items)
    q, x = (full._rows(rows).astype(np.float64) for rows in (queries, items))
    gaps = np.square(x).sum(axis=1) - 2 * q @ x.T
    return train, items, queries, np.argpartition(gaps, K - 1, axis=1)[:, :K]


def table(name: str, found: dict[tuple[str, str, int], dict[str, Any]]) -> Section:
    """Recall of every method at every size."""
    section = Section(
        f"CIFAR-10, {SETS[name][0]}: recall of the ten nearest, first ten → first forty",
        ("method", *(f"{size} bytes" for size in SIZES), "fit at 16, s", "encode at 16, µs"),
    )
    for method in METHODS:
        cells = [found.get((name, method, size)) for size in SIZES]
        if any(cells):
            times = found.get((name, method, 16), {"fit": np.nan, "encode": np.nan})
            shown = [said(cell) for cell in cells]
            section.row(method, *shown, f"{times['fit']:.0f}", f"{1e6 * times['encode']:.0f}")
    whole = [found[name, method, 0] for method in WHOLE if (name, method, 0) in found]
    for cell in whole:
        section.note(f"{cell['method']} of all numbers, {cell['bytes']:,} bytes: {recalls(cell)}.")
    section.note("± is half of the 95 % interval of the mean over 500 queries.")
    for size in SIZES:
        if (name, size) in LEVELS and (cell := found.get((name, "TCQ", size))):
            low, rescored = LEVELS[name, size]
            first, after = Target(cell["score"], low), Target(np.mean(cell["rescored"]), rescored)
            section.holds &= first.holds and after.holds
            section.note(f"Bounds of TCQ at {size} bytes: {first}; after rescoring {after}.")
    return section


def said(cell: dict[str, Any] | None) -> str:
    """Recalls of a cell; the bytes too if they are not those asked for."""
    if cell is None:
        return ""
    fewer = "" if cell["bytes"] == cell["size"] else f" ({cell['bytes']} bytes)"
    return recalls(cell) + fewer


def recalls(cell: dict[str, Any]) -> str:
    """The two recalls, and how exact the first one is."""
    half = 1.96 * np.std(cell["first"]) / np.sqrt(len(cell["first"]))
    return f"{cell['score']:.3f} ± {half:.3f} → {np.mean(cell['rescored']):.3f}"


if __name__ == "__main__":
    main()
