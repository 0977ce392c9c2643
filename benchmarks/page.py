"""Time of a large page, and of the random draws that it needs, against NumPy one method at a time.

    python benchmarks/page.py [--write docs/results/speed.md]

Records are made up: 20 methods at four lengths, 10,000 queries.  Seconds are those of the process
(all threads together), because the machine may be busy.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from results import Section, Target
from timing import fastest

import bittern as bt
from bittern.experiments import Protocol, Record, Records, Value
from bittern.experiments.cells import Cell, cells_of
from bittern.metrics.pooled import interval, intervals, mean_of
from bittern.metrics.significance.resampling import drawn_sums
from bittern.report.page import page_of

N_METHODS, N_QUERIES, N_ITEMS, LENGTHS = 20, 10_000, 2_000, (16, 32, 48, 64)
DRAWS = 10_000
METRICS = ("ap", "ndcg", "precision@100")
MOST = 10.0  # seconds of a page

Floats = NDArray[np.float64]


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write the tables into this Markdown file")
    options = parser.parse_args()
    sections = [draws(), pages()]
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        Section.write(options.write, "page", "python benchmarks/page.py", sections)
    sys.exit(0 if all(section.holds for section in sections) else 1)


def draws() -> Section:
    """The two resampling loops of a page, for the methods of one length."""
    section = Section(
        f"Random draws for {N_METHODS - 1} methods × {N_QUERIES:,} queries",
        ("what", "ours, s", "NumPy, one method at a time, s", "times as fast"),
    )
    rng = np.random.default_rng(0)
    differences = [rng.normal(0, 0.1, N_QUERIES) for _ in range(N_METHODS - 1)]
    found = drawn_sums(differences, DRAWS, np.random.default_rng(1))
    wanted = [numpy_sums(d, DRAWS, np.random.default_rng(1)) for d in differences]
    assert all(map(np.array_equal, found, wanted))
    ours, theirs = fastest(
        lambda: drawn_sums(differences, DRAWS, np.random.default_rng(1)),
        lambda: [numpy_sums(d, DRAWS, np.random.default_rng(1)) for d in differences],
        rounds=2,
        clock=time.process_time,
    )
    section.row("randomisation test, 10,000 draws", ours, theirs, Target(theirs / ours, at_least=4))
    means = [mean_of(d) for d in differences]
    ours, theirs = fastest(
        lambda: list(intervals(means)),
        lambda: [interval(one) for one in means],
        rounds=2,
        clock=time.process_time,
    )
    section.row(
        "bootstrap intervals, 1,000 samples", ours, theirs, Target(theirs / ours, at_least=4)
    )
    section.note("The sums of the randomisation test are the same to the bit, so p-values are too.")
    return section


def numpy_sums(difference: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
    """Sums under random flips; one byte chooses among the sums of eight pairs."""
    sums = np.zeros(n_draws)
    for eight in difference.reshape(-1, 8):
        table = np.zeros(1)
        for d in eight:
            table = np.concatenate([table - d, table + d])
        sums += table[rng.integers(0, 256, n_draws, np.uint8)]
    return sums


def pages() -> Section:
    """A page from records in memory, with one run and with three; and the reading of a record."""
    section = Section(
        f"Pages: {N_METHODS} methods × {len(LENGTHS)} lengths × {N_QUERIES:,} queries",
        ("runs", "records", "read a record, ms", "page, s", "page, MB"),
    )
    for runs in (1, 3):
        records = made_records(runs)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "record.json.gz"
            replace(records.records[-1], profile=random_profile(LENGTHS[-1])).save(path)
            (read,) = fastest(partial(Record.load, path), rounds=2, clock=time.process_time)
        began = time.process_time()
        page = page_of(records)
        took = time.process_time() - began
        size = len(page.encode()) / (1 << 20)
        section.row(runs, len(records), 1000 * read, Target(took, at_most=MOST), size)
    section.note(
        f"The record read has the tie profile of {LENGTHS[-1]} bits. With one run the page draws "
        "bootstrap intervals; with three, it takes Student's."
    )
    return section


def made_records(runs: int) -> Records:
    """Made-up records of every cell."""
    protocol = Protocol.of(
        {
            "title": "Made up",
            "dataset": {"name": "digits"},
            "split": {"name": "improved"},
            "n_bits": list(LENGTHS),
            "runs": runs,
            "metrics": list(METRICS),
            "method": [{"name": "lsh", "label": f"method {i}"} for i in range(N_METHODS)],
        }
    )
    rng = np.random.default_rng(0)
    return Records(protocol, tuple(made_record(cell, rng) for cell in cells_of(protocol)))


def made_record(cell: Cell, rng: np.random.Generator) -> Record:
    """A record of 10,000 of 60,000 items as queries, others in each run."""
    of_run = np.random.default_rng(cell.run)
    return Record(
        method=cell.method.label,
        n_bits=cell.n_bits,
        run=cell.run,
        fingerprint=cell.fingerprint,
        parameters={},
        values={metric: drawn_value(cell, rng) for metric in METRICS},
        query_positions=tuple(of_run.permutation(60_000)[:N_QUERIES].tolist()),
        query_labels=tuple(of_run.integers(0, 10, N_QUERIES).tolist()),
    )


def random_profile(n_bits: int) -> bt.TieProfile:
    """The profile of random codes in ten classes."""
    rng = np.random.default_rng(n_bits)
    sides = [bt.Codes.from_bits(rng.random((n, n_bits)) < 0.5) for n in (N_QUERIES, N_ITEMS)]
    relevance = bt.Relevance.from_classes(np.arange(N_QUERIES) % 10, np.arange(N_ITEMS) % 10)
    return bt.TieProfile.from_codes(*sides, relevance)


def drawn_value(cell: Cell, rng: np.random.Generator) -> Value:
    """A value for each query about a centre that depends on the method."""
    centre = 0.3 + 0.01 * int(cell.method.label.split()[1])
    values = np.clip(rng.normal(centre, 0.2, N_QUERIES), 0, 1)
    mean = float(values.mean())
    return Value(mean=mean, spread=(mean - 0.02, mean + 0.02), per_query=tuple(values.tolist()))


if __name__ == "__main__":
    main()
