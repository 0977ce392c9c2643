"""Speed, memory and AP of every hasher at 32 bits, and of its peers in other libraries.

    python benchmarks/hashers.py [--root DATA] [--write docs/results/speed.md] [--only NAME …]

Fits on the 5,000 training rows of CIFAR-10's split ``cifar-s1`` (1,280-D network features), each
method in its own process with two threads, and encodes its 59,000 database rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from results import Section, Target
from timing import fastest

import bittern as bt

N_BITS = 32
QUICK, MIDDLING, SLOW = 30, 120, 600  # most seconds to fit
LIMITS = dict.fromkeys(("ksh", "sdh", "bre"), MIDDLING) | dict.fromkeys(
    ("machash", "fasthash", "structhash"), SLOW
)
MEMORY = 4096  # MB
STREAM = (1_000_000, 512)


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--write", type=Path, help="also write the tables into this Markdown file")
    parser.add_argument("--only", nargs="*", help="names of methods")
    parser.add_argument("--child", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child[0], Path(options.child[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        save_sets(options.root, Path(folder))
        sections = [methods(Path(folder), options.only), peers(Path(folder)), streaming()]
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        Section.write(options.write, "hashers", "python benchmarks/hashers.py", sections)
    sys.exit(0 if all(section.holds for section in sections) else 1)


def save_sets(root: Path | None, folder: Path) -> None:
    """Save the split's sets for every process to map."""
    dataset = bt.load("cifar10", root, features="cnn")
    split = bt.make_split("cifar-s1", dataset, random_state=0, run=0)
    vectors, labels = np.asarray(dataset.vectors), np.asarray(dataset.labels)
    for name in ("train", "queries", "database"):
        np.save(folder / f"{name}.npy", vectors[getattr(split, name)])
        np.save(folder / f"{name}-labels.npy", labels[getattr(split, name)])


def sets(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and labels of each set."""
    return {
        name: (np.load(folder / f"{name}.npy"), np.load(folder / f"{name}-labels.npy"))
        for name in ("train", "queries", "database")
    }


def methods(folder: Path, only: list[str] | None) -> Section:
    """Every hasher, each in its own process."""
    section = Section(
        f"Hashers: {N_BITS} bits, 5,000 × 1,280 rows, two cores",
        ("method", "fit, s", "encode 59,000, s", "peak memory, MB", "AP"),
    )
    for name in only or bt.hashing.HASHERS:
        command = [sys.executable, __file__, "--child", name, str(folder)]
        out = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(out.stdout)
        section.row(
            name,
            Target(found["fit"], at_most=LIMITS.get(name, QUICK)),
            found["encode"],
            Target(found["memory"], at_most=MEMORY),
            f"{found['ap']:.3f}",
        )
    return section


def measure(name: str, folder: Path) -> dict[str, float]:
    """One hasher: seconds, megabytes, AP."""
    data = sets(folder)
    hasher = bt.hashing.HASHERS[name](n_bits=N_BITS)
    bt.hashing.HASHERS[name](n_bits=2).fit(data["train"][0][:50], data["train"][1][:50])  # compiles
    return run(lambda X, y: hasher.fit(X, y), hasher.encode, data)


def run(
    fit: Callable[[np.ndarray, np.ndarray], object],
    encode: Callable[[np.ndarray], bt.Codes],
    data: dict[str, tuple[np.ndarray, np.ndarray]],
) -> dict[str, float]:
    """Fit, encode and evaluate."""
    (X, y), (Q, query_labels), (D, labels) = (data[n] for n in ("train", "queries", "database"))
    began = time.perf_counter()
    fit(X, y)
    fitted = time.perf_counter()
    queries, database = encode(Q), encode(D)
    encoded = time.perf_counter()
    truth = bt.Relevance.from_classes(query_labels, labels)
    return {
        "fit": fitted - began,
        "encode": encoded - fitted,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "ap": bt.evaluate(queries, database, truth, ["ap"])["ap"].mean,
    }


def peers(folder: Path) -> Section:
    """The same codes by other libraries."""
    import faiss
    from sklearn.random_projection import GaussianRandomProjection

    section = Section(
        "Peers: the same task by other libraries",
        ("method", "fit, s", "encode 59,000, s", "AP"),
    )
    data = sets(folder)
    dim = data["train"][0].shape[1]
    mean = data["train"][0].mean(axis=0)

    projection = GaussianRandomProjection(N_BITS, random_state=0)
    itq = faiss.ITQTransform(dim, N_BITS, True)
    index = faiss.IndexLSH(dim, N_BITS, True, True)

    def lsh_codes(X: np.ndarray) -> bt.Codes:
        return bt.Codes.from_packed(index.sa_encode(X), n_bits=N_BITS, bitorder="little")

    tools: dict[str, tuple[Callable[..., object], Callable[[np.ndarray], bt.Codes]]] = {
        "lsh (ours)": ours("lsh"),
        "GaussianRandomProjection (scikit-learn)": (
            lambda X, y: projection.fit(X),
            lambda X: bt.Codes.from_bits(projection.transform(X - mean) > 0),
        ),
        "IndexLSH, rotated, thresholds trained (FAISS)": (lambda X, y: index.train(X), lsh_codes),
        "itq (ours)": ours("itq"),
        "ITQTransform (FAISS)": (
            lambda X, y: itq.train(X),
            lambda X: bt.Codes.from_bits(itq.apply(X) > 0),
        ),
    }
    for name, (fit, encode) in tools.items():
        found = run(fit, encode, data)
        section.row(name, found["fit"], found["encode"], f"{found['ap']:.3f}")
    return section


def ours(name: str) -> tuple[Callable[..., object], Callable[[np.ndarray], bt.Codes]]:
    """A hasher behind the peers' interface."""
    hasher = bt.hashing.HASHERS[name](n_bits=N_BITS)
    return hasher.fit, hasher.encode


def streaming() -> Section:
    """Encoding rows from disk against the bare matrix product of the same rows."""
    n, dim = STREAM
    section = Section(
        f"Streaming: {n:,} × {dim} float32 rows from a memory map",
        ("bits", "encode, s", "bare product, s", "ratio", "memory above the rows, MB"),
    )
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        rows = np.lib.format.open_memmap(path, "w+", np.float32, STREAM)
        for start in range(0, n, 50_000):
            rows[start : start + 50_000] = rng.standard_normal((50_000, dim), dtype=np.float32)
        rows.flush()
        for n_bits in (32, 64, 128):
            hasher = bt.hashing.LSH(n_bits=n_bits).fit(rows[:1000])
            encode, product = fastest(
                lambda h=hasher: h.encode(np.load(path, mmap_mode="r")),
                lambda h=hasher: bare_product(np.load(path, mmap_mode="r"), h.projection_),
                rounds=3,
            )
            memory = peak(path, n_bits)
            section.row(n_bits, encode, product, Target(encode / product, at_most=1.5), memory)
    return section


def bare_product(rows: np.ndarray, projection: np.ndarray) -> None:
    """The least work of any linear method."""
    narrow = projection.astype(np.float32)
    for start in range(0, len(rows), 32_768):
        rows[start : start + 32_768] @ narrow


def peak(path: Path, n_bits: int) -> float:
    """Megabytes of private memory that encoding adds, in its own process."""
    code = f"""
import json, threading, numpy as np, psutil, bittern as bt
rows = np.load({str(path)!r}, mmap_mode="r")
hasher = bt.hashing.LSH(n_bits={n_bits}).fit(rows[:1000])
hasher.encode(rows[:1000])
used = lambda: (lambda m: m.rss - m.shared)(psutil.Process().memory_info()) / 2**20
before, seen, over = used(), [], threading.Event()
def watch():
    while not over.wait(0.005):
        seen.append(used())
watcher = threading.Thread(target=watch)
watcher.start()
hasher.encode(rows)
over.set()
watcher.join()
print(json.dumps(max(seen) - before))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(json.loads(out.stdout))


if __name__ == "__main__":
    main()
