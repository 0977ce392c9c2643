"""Quantisers: recall against bytes, all methods on the same rows of four data sets.

    python benchmarks/quantise.py [--root DATA] [--cells FOLDER] [--jobs J] [--only METHOD …]
        [--write FILE.md] [--figure FILE.svg]

Models are trained on rows that are neither searched nor queries.  Recall is that of the ten nearest
by full vectors among the first ten, and among the first forty, which is what sorting four times as
many by full vectors finds.  Finished cells are kept in the folder, so a stopped run resumes.  Needs
the shared data and FAISS; hours on two cores, most of them for OPQ and RQ.
"""

from __future__ import annotations

import argparse
import fcntl
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cells import fill, read
from results import Section, Target

import bittern as bt


class Rows(NamedTuple):
    """A data set: what it is, how it is loaded, and how its rows are divided."""

    title: str
    metric: str
    source: tuple[str, dict[str, str], str]  # data set, its options, and the modality
    n_train: int
    n_items: int
    n_queries: int
    sizes: tuple[int, ...]


SIZES = (8, 16, 32, 64, 128, 160)
SETS = {
    "cnn": Rows(
        "CIFAR-10, network features, 1,280-D, cosine",
        "cosine",
        ("cifar10", {"features": "cnn"}, "cnn"),
        20_000,
        20_000,
        500,
        SIZES,
    ),
    "gist": Rows(
        "CIFAR-10, GIST, 512-D",
        "euclidean",
        ("cifar10", {"features": "gist"}, "gist"),
        20_000,
        20_000,
        500,
        SIZES,
    ),
    "corel": Rows(
        "Corel-5K, network features, 1,280-D, cosine",
        "cosine",
        ("corel5k", {}, "cnn"),
        2_499,
        2_000,
        500,
        SIZES,
    ),
    "wiki": Rows(
        "Wiki, bags of 128 visual words",
        "euclidean",
        ("wiki", {}, "image"),
        1_300,
        1_066,
        500,
        SIZES[:4],
    ),
}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "TCQ": ("tcq", {}),
    "water-filled": ("water-filled", {}),
    "RaBitQ, 1 bit": ("rabitq", {"bits": 1}),
    "RaBitQ, 2 bits": ("rabitq", {"bits": 2}),
    "RaBitQ, 4 bits": ("rabitq", {"bits": 4}),
    "RaBitQ, centres, fitted": ("rabitq", {"centres": True, "fitted": True}),
    "FAISS RaBitQ, 1 bit": ("faiss-rabitq", {"bits": 1}),
    "FAISS RaBitQ, 4 bits": ("faiss-rabitq", {"bits": 4}),
    "ITQ, Hamming": ("hamming", {}),
    "ITQ, asymmetric": ("asymmetric", {"correction": False}),
    "ITQ, asymmetric, corrected": ("asymmetric", {"correction": True}),
    "PQ": ("pq", {}),
    "OPQ": ("opq", {}),
    "RQ": ("rq", {}),
}
OURS = "TCQ"
SEEN = ("corel", "wiki")  # sets without rows that were not used when TCQ was designed
PEERS = (*(name for name in METHODS if "RaBitQ" in name), "PQ", "OPQ", "RQ")
WHOLE = {"sign": ("sign", {}), "int8": ("int8", {}), "float16": ("float16", {})}
RQ_ALONE = 16  # bytes; more are the first codebooks of the largest RQ, which are the same
K, FACTOR = 10, 4
LEVELS = {("cnn", 16): (0.58, 0.92), ("gist", 16): (0.61, 0.94)}  # of TCQ


def main() -> None:
    """Measure what is missing, print the tables, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--cells", type=Path, default=Path("build/quantise"))
    parser.add_argument("--jobs", type=int, default=2, help="0 measures nothing")
    parser.add_argument("--only", nargs="*", help="names of methods")
    parser.add_argument("--write", type=Path, help="also write the tables into this file")
    parser.add_argument("--figure", type=Path, help="draw recall against bytes into this file")
    options = parser.parse_args()
    options.cells.mkdir(parents=True, exist_ok=True)
    wanted = [key for key in cells() if not options.only or key[1] in options.only]
    fill(options.cells, options.jobs, Measure(options.root), wanted)
    found = {(cell["set"], cell["method"], cell["size"]): cell for cell in read(options.cells)}
    sections = [table(name, found) for name in SETS]
    print("\n\n".join(section.text() for section in sections))
    if options.write:
        Section.write(options.write, "quantise", "python benchmarks/quantise.py", sections)
    if options.figure:
        draw(found, options.figure)
    sys.exit(0 if all(section.holds for section in sections) else 1)


def cells() -> list[tuple[object, ...]]:
    """Every cell, quick methods first."""
    out: list[tuple[object, ...]] = [(name, method, 0) for name in SETS for method in WHOLE]
    for method, (kind, parameters) in METHODS.items():
        for name, rows in SETS.items():
            for size in rows.sizes:
                if kind != "faiss-rabitq" or faiss_columns(size, **parameters) >= 8:
                    out.append((name, method, size))
    return out


class Measure:
    """Measures one cell; a class, so that processes can take it."""

    def __init__(self, root: Path | None) -> None:
        self.root = root

    def __call__(self, folder: Path, name: str, method: str, size: int) -> dict[str, Any]:
        """Fit, encode, and find the ten nearest of each query."""
        sets = stored(folder, name, self.root)
        kind, parameters = {**METHODS, **WHOLE}[method]
        find = {"faiss-rabitq": faiss_rabitq, "hamming": hamming}.get(kind, quantised)
        if kind == "rq" and size > RQ_ALONE:
            parameters = {"whole": whole_rq(folder, name, sets.train)}
            find = first_codebooks
        ids, record = find(sets, kind, size, SETS[name].metric, parameters)
        hits = (ids[:, :, None] == sets.true[:, None]).any(axis=2)
        return record | {
            "set": name,
            "method": method,
            "size": size,
            "score": float(hits[:, :K].mean()),
            "first": hits[:, :K].mean(axis=1).tolist(),
            "rescored": (hits.sum(axis=1) / K).tolist(),
        }


class Loaded(NamedTuple):
    """Training rows, items, queries, and the ten nearest items of each query."""

    train: np.ndarray
    items: np.ndarray
    queries: np.ndarray
    true: np.ndarray


def stored(folder: Path, name: str, root: Path | None) -> Loaded:
    """The rows of a set, kept in the folder so that the next cell need not divide them again."""
    places = [folder / f"{name}-{part}.npy" for part in Loaded._fields]
    if not all(place.exists() for place in places):
        for place, array in zip(places, load(name, root), strict=True):
            np.save(place, array)
    return Loaded(*(np.load(place) for place in places))


def load(name: str, root: Path | None) -> Loaded:
    """The rows of a set, divided at random; of length 1 for cosine."""
    rows = SETS[name]
    dataset, options, modality = rows.source
    X = np.asarray(bt.load(dataset, root, **options).modalities[modality][:], np.float32)
    X = bt.quantise.Float16(metric=rows.metric).fit(X)._rows(X)
    order = np.random.default_rng(1).permutation(len(X))
    train, items, _ = np.split(X[order], np.cumsum([rows.n_train, rows.n_items]))
    queries = X[order[-rows.n_queries :]]  # no choice of TCQ's was made with those of CIFAR-10
    x = items.astype(np.float64)
    gaps = np.square(x).sum(axis=1) - 2 * queries.astype(np.float64) @ x.T
    return Loaded(train, items, queries, np.argpartition(gaps, K - 1, axis=1)[:, :K])


Found = tuple[np.ndarray, dict[str, Any]]


def quantised(sets: Loaded, kind: str, size: int, metric: str, parameters: dict[str, Any]) -> Found:
    """The first forty by one of our quantisers."""
    named = {"n_bytes": size or None, "metric": metric, "random_state": 0, **parameters}
    quantiser = bt.quantise.QUANTISERS[kind](**named)
    began = time.process_time()
    quantiser.fit(sets.train)
    fitted = time.process_time()
    stored = quantiser.encode(sets.items)
    encoded = time.process_time()
    ids = bt.QuantisedIndex(quantiser, stored).search(sets.queries, K * FACTOR).ids
    return ids, {
        "bytes": stored.n_bytes,
        "fit": fitted - began,
        "encode": (encoded - fitted) / len(sets.items),
    }


def whole_rq(folder: Path, name: str, train: np.ndarray) -> Any:
    """RQ of the set's largest size, learned once and kept in the folder."""
    place = folder / f"{name}-rq.npz"
    with (folder / f"{name}-rq.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not place.exists():
            rows = SETS[name]
            rq = bt.quantise.RQ(rows.sizes[-1], metric=rows.metric, random_state=0).fit(train)
            rq.save(place)
    return bt.quantise.load(place)


def first_codebooks(
    sets: Loaded, kind: str, size: int, metric: str, parameters: dict[str, Any]
) -> Found:
    """The first forty by the first codebooks of a larger RQ, which do not depend on later ones."""
    rq = parameters["whole"]
    rq.n_bytes = rq.n_bytes_ = size
    rq.codewords_ = rq.codewords_[:size]
    stored = rq.encode(sets.items)
    ids = bt.QuantisedIndex(rq, stored).search(sets.queries, K * FACTOR).ids
    return ids, {"bytes": stored.n_bytes}


def hamming(sets: Loaded, kind: str, size: int, metric: str, parameters: dict[str, Any]) -> Found:
    """The first forty by Hamming distance of the bits of ITQ."""
    hasher = bt.hashing.ITQ(8 * size, random_state=0).fit(sets.train)
    index = bt.FlatIndex(hasher.encode(sets.items))
    return index.search(hasher.encode(sets.queries), K * FACTOR).ids, {"bytes": size}


def faiss_rabitq(
    sets: Loaded, kind: str, size: int, metric: str, parameters: dict[str, Any]
) -> Found:
    """The first forty by FAISS's own RaBitQ, after as many principal components as fit."""
    import faiss

    bits, dim = parameters["bits"], sets.train.shape[1]
    k = min(dim, faiss_columns(size, bits))
    index = faiss.IndexRaBitQ(k, faiss.METRIC_L2, bits)
    index.qb = 0  # queries stay as they are
    turn = faiss.PCAMatrix(dim, k, 0, True) if k < dim else faiss.RandomRotationMatrix(dim, dim)
    whole = faiss.IndexPreTransform(turn, index)
    whole.train(sets.train)
    whole.add(sets.items)
    return whole.search(sets.queries, K * FACTOR)[1], {"bytes": index.code_size}


def faiss_columns(size: int, bits: int) -> int:
    """How many numbers FAISS's RaBitQ keeps in so many bytes, a multiple of eight."""
    import faiss

    fits = [
        k
        for k in range(8, 8 * size + 1, 8)
        if faiss.RaBitQuantizer(k, faiss.METRIC_L2, bits).code_size <= size
    ]
    return max(fits, default=0)


def table(name: str, found: dict[tuple[str, str, int], dict[str, Any]]) -> Section:
    """Recall of every method at every size."""
    rows = SETS[name]
    section = Section(
        f"{rows.title}: recall of the ten nearest, first ten → first forty",
        ("method", *(f"{size} bytes" for size in rows.sizes), "fit at 16, s", "encode at 16, µs"),
    )
    for method in METHODS:
        shown = [found.get((name, method, size)) for size in rows.sizes]
        if any(shown):
            times = found.get((name, method, 16), {})
            fit = f"{times['fit']:.0f}" if "fit" in times else ""
            encode = f"{1e6 * times['encode']:.0f}" if "encode" in times else ""
            section.row(method, *(said(cell) for cell in shown), fit, encode)
    for method in WHOLE:
        if cell := found.get((name, method, 0)):
            section.note(f"{method} of all numbers, {cell['bytes']:,} bytes: {recalls(cell)}.")
    section.note(f"± is half of the 95 % interval of the mean over {rows.n_queries} queries.")
    if len(found_of(name, found)) < len([key for key in cells() if key[0] == name]):
        section.note("Empty cells have not been measured.")
    if name in SEEN:
        section.note("All rows of this set were looked at when TCQ was designed.")
    add_levels(section, name, found)
    add_leads(section, name, found)
    return section


def found_of(name: str, found: dict[tuple[str, str, int], Any]) -> list[tuple[str, str, int]]:
    """The cells of a set that were measured."""
    return [key for key in found if key[0] == name]


def add_levels(section: Section, name: str, found: dict[tuple[str, str, int], Any]) -> None:
    """The bounds that TCQ must meet."""
    for size in SIZES:
        if (name, size) in LEVELS and (cell := found.get((name, OURS, size))):
            low, rescored = LEVELS[name, size]
            first, after = Target(cell["score"], low), Target(np.mean(cell["rescored"]), rescored)
            section.holds &= first.holds and after.holds
            section.note(f"Bounds of TCQ at {size} bytes: {first}; after rescoring {after}.")


def add_leads(section: Section, name: str, found: dict[tuple[str, str, int], Any]) -> None:
    """TCQ against the best other method at each size, paired by query."""
    said = []
    for size in SETS[name].sizes:
        own = found.get((name, OURS, size))
        peers = [found[name, m, size] for m in PEERS if (name, m, size) in found]
        if own and peers:
            best = max(peers, key=lambda cell: cell["score"])
            gaps = np.array(own["first"]) - best["first"]
            half = 1.96 * gaps.std() / np.sqrt(len(gaps))
            holds = gaps.mean() + half >= 0
            section.holds &= bool(holds)
            said.append(
                f"{size} bytes {gaps.mean():+.3f} ± {half:.3f} to {best['method']}"
                + ("" if holds else " MISSED")
            )
    if said:
        section.note(
            "TCQ against the best peer that was measured, paired by query: " + "; ".join(said) + "."
        )


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


LINES = {  # method: colour and style; of RaBitQ, the best number of bits
    "TCQ": ("#D55E00", "-"),
    "water-filled": ("#E69F00", "--"),
    "RaBitQ": ("#0072B2", "-"),
    "FAISS RaBitQ": ("#56B4E9", "--"),
    "OPQ": ("#009E73", "-"),
    "PQ": ("#009E73", ":"),
    "RQ": ("#CC79A7", "-"),
    "ITQ, asymmetric, corrected": ("#000000", "-"),
    "ITQ, asymmetric": ("#000000", "--"),
    "ITQ, Hamming": ("#000000", ":"),
}


def draw(found: dict[tuple[str, str, int], dict[str, Any]], path: Path) -> None:
    """Recall against bytes, one panel for each set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for axes, (name, rows) in zip(panels, SETS.items(), strict=True):
        for line, (colour, style) in LINES.items():
            points = best_points(found, name, line)
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    color=colour,
                    linestyle=style,
                    marker="o",
                    ms=3,
                    lw=2.4 if line == OURS else 1.2,
                    label=line,
                )
        axes.set(title=rows.title, xscale="log", xticks=SIZES, ylim=(0, 1))
        axes.set_xticks([], minor=True)
        axes.set_xticklabels(["" if size == 128 else str(size) for size in SIZES])  # 160 is near
        axes.set(xlabel="bytes per item", ylabel="recall of the ten nearest")
        axes.grid(color="0.92")
    drawn: dict[str, Any] = {}
    for axes in panels:
        drawn |= {line.get_label(): line for line in axes.get_lines()}
    shown = [line for line in LINES if line in drawn]
    figure.legend([drawn[line] for line in shown], shown, loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None})


def best_points(
    found: dict[tuple[str, str, int], dict[str, Any]], name: str, line: str
) -> list[tuple[int, float]]:
    """Bytes and recall; of several variants the best at each size."""
    many = line.endswith("RaBitQ")
    methods = [m for m in METHODS if m == line or (many and m.startswith(f"{line}, "))]
    out = []
    for size in SETS[name].sizes:
        cells = [found[name, m, size] for m in methods if (name, m, size) in found]
        if cells:
            best = max(cells, key=lambda cell: cell["score"])
            out.append((best["bytes"], best["score"]))
    return out


if __name__ == "__main__":
    main()
