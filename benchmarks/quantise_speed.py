"""Speed of TCQ on one thread: fit, encode, scan and rerank, beside FAISS's fast-scan PQ.

    python benchmarks/quantise_speed.py [--root DATA] [--sizes 16 32] [--write FILE.md]

Network features of CIFAR-10, 1,280-D.  FAISS's ``IndexPQFastScan`` has as many bytes an item, two
codewords of four bits in each.  Set the number of threads of NumPy and of our loops to one before
(``OMP_NUM_THREADS=1 BITTERN_THREADS=1``), and leave the machine alone.  Takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from quantise import load
from results import Section, Target

import bittern as bt

SIZES = (16, 32)
N_ENCODED = 100_000  # rows that the bound of encoding is about
N_PAIRS = 200_000
N_SCANNED = 500_000  # items; the codes of the set, repeated


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--write", type=Path, help="also write the table into this file")
    options = parser.parse_args()
    section = Section(
        "TCQ on one thread, 1,280-D",
        (
            "bytes",
            "fit, s",
            "encode 10⁵, s",
            "rerank, ns an item",
            "scan, 100 queries, ns an item",
            "scan, 1 query, ns an item",
            "FAISS fast-scan PQ, 100 queries, ns",
            "scan × FAISS",
        ),
    )
    for size in options.sizes:
        section.row(size, *measured(size, options.root))
    section.note(
        "A rerank scores items at random rows. The scan is exact under the estimated distances; "
        "that of FAISS rounds its tables to bytes. The bound is half of its speed at equal bytes."
    )
    print(section.text())
    if options.write:
        command = "python benchmarks/quantise_speed.py"
        Section.write(options.write, "quantise-speed", command, [section])
    sys.exit(0 if section.holds else 1)


def measured(size: int, root: Path | None) -> list[object]:
    """The times at one size."""
    sets = load("cnn", root)
    quantiser = bt.quantise.TCQ(size, metric="cosine")
    fit = seconds(lambda: quantiser.fit(sets.train), 1)
    quantiser.encode(sets.items[:100])
    encode = seconds(lambda: quantiser.encode(sets.items), 1) * N_ENCODED / len(sets.items)
    stored = quantiser.encode(sets.items)
    many = np.resize(stored.bytes, (N_SCANNED, stored.n_bytes))
    every = bt.quantise.QuantisedCodes(many, stored.fingerprint)
    index = bt.QuantisedIndex(quantiser, every)
    kept, scorer = quantiser.keep(every), quantiser.scorer(sets.queries[:1])
    rows = np.random.default_rng(0).integers(0, N_SCANNED, N_PAIRS)
    zeros = np.zeros(N_PAIRS, np.intp)
    rerank = 1e9 * seconds(lambda: scorer.of(every, zeros, rows, kept), 9) / N_PAIRS
    batch, one = sets.queries[:100], sets.queries[:1]
    scan = 1e9 * seconds(lambda: index.search(batch, 10), 2) / N_SCANNED / len(batch)
    single = 1e9 * seconds(lambda: index.search(one, 10)) / N_SCANNED
    peer = fast_scan(sets.train, sets.items, batch, size)
    return [
        Target(fit, at_most=30),
        Target(encode, at_most=20 if size == SIZES[0] else None),
        rerank,
        scan,
        single,
        peer,
        Target(peer / scan, 0.5),
    ]


def fast_scan(train: np.ndarray, items: np.ndarray, queries: np.ndarray, size: int) -> float:
    """Nanoseconds an item of FAISS's fast-scan PQ with codes of so many bytes."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexPQFastScan(train.shape[1], 2 * size, 4)
    index.train(train[:5000])
    for _ in range(N_SCANNED // len(items)):
        index.add(items)
    return 1e9 * seconds(lambda: index.search(queries, 10)) / index.ntotal / len(queries)


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time of some repeats; the first is not counted if there are several."""
    times = []
    for _ in range(repeats + (repeats > 1)):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
