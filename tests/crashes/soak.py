"""Read and write a collection for a long time; its memory and its latencies must stay flat.

    scripts/soak --minutes 60 --figure soak.svg
    scripts/soak --minutes 60 --subject service --figure soak-service.svg
    scripts/soak --minutes 60 --rate 10                 ten operations a second; a core is left free

The collection keeps its size: what is added is deleted later.  Every answer is compared with brute
force.  Each line of the table is a slice of time: operations, the median and the 99th percentile of
their milliseconds, the memory of the process (of a service: of its processes, without what they
share), and the size of the files.  A subject is anything with the methods of Subject.
"""

import argparse
import contextlib
import math
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import bittern as bt

N, BITS, BATCH = 5000, 64, 100
SLICES = 12  # lines of the table
HEAD = (
    "minute",
    "operations",
    "read p50 (ms)",
    "read p99 (ms)",
    "write p50 (ms)",
    "write p99 (ms)",
)
HEAD += ("memory (MB)", "file (MB)")


class Subject:
    """A collection in a file."""

    def __init__(self, folder):
        self.path = Path(folder, "soak.bittern")
        self.collection = bt.store.create(self.path, n_bits=BITS)

    def add(self, codes):
        """Add codes; their ids."""
        return self.collection.add(codes, metadata={"n": list(range(len(codes)))})

    def delete(self, ids):
        """Remove items."""
        self.collection.delete(ids)

    def search(self, queries, k):
        """The distances of the nearest."""
        return self.collection.search(queries, k).distances

    def count(self):
        """Items that a condition holds for."""
        return self.collection.count("n >= 0")

    def reopen(self):
        """Close it and open it again."""
        self.collection.close()
        self.collection = bt.store.open(self.path)

    def close(self):
        """Close it."""
        self.collection.close()

    def memory(self):
        """Bytes of memory that this process has now."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def size(self):
        """Bytes on disk."""
        return sum(p.stat().st_size for p in self.path.parent.iterdir())


def _service(folder):
    from serving import ServedCollection

    return ServedCollection(folder)


SUBJECTS = {"collection": Subject, "service": _service}


class Model:
    """What must be in the collection, as arrays."""

    def __init__(self):
        self.ids, self.words = np.empty(0, np.int64), np.empty((0, 1), np.uint64)

    def add(self, ids, codes):
        """Note what was added."""
        self.ids = np.concatenate([self.ids, np.asarray(ids)])
        self.words = np.concatenate([self.words, codes.words])

    def drop(self, n):
        """The ids of the oldest, which are forgotten."""
        gone, self.ids, self.words = self.ids[:n], self.ids[n:], self.words[n:]
        return gone

    def distances(self, queries, k):
        """By brute force."""
        far = np.bitwise_count(queries.words[:, None, :] ^ self.words[None]).sum(axis=-1)
        return np.sort(far, axis=1)[:, :k]


def soak(subject, minutes, rate=math.inf, seed=0):
    """The rows of the table; raises AssertionError at the first wrong answer."""
    rng, draw, model = random.Random(seed), np.random.default_rng(seed), Model()

    def codes(n):
        return bt.Codes.from_bits(draw.random((n, BITS)) < 0.5)

    first = codes(N)
    model.add(subject.add(first), first)
    rows, begin = [], time.monotonic()
    for number in range(SLICES):
        times = {"read": [], "write": []}
        end = begin + 60 * minutes * (number + 1) / SLICES
        while time.monotonic() < end:
            kind = "read" if rng.random() < 0.8 else "write"
            started = time.perf_counter()
            (_read if kind == "read" else _write)(subject, model, codes, rng)
            took = time.perf_counter() - started
            times[kind].append(1000 * took)
            time.sleep(max(0.0, 1 / rate - took))
        subject.reopen()
        rows.append(
            ((end - begin) / 60, *_summary(times), subject.memory() / 2**20, subject.size() / 2**20)
        )
    subject.close()
    return rows


def _read(subject, model, codes, rng):
    if rng.random() < 0.1:
        assert subject.count() == len(model.ids), "a count is wrong"
        return
    queries = codes(rng.choice((1, 8)))
    found = subject.search(queries, 10)
    assert np.array_equal(found, model.distances(queries, 10)), "a search differs from brute force"


def _write(subject, model, codes, rng):
    if len(model.ids) > N:
        subject.delete(model.drop(BATCH))
    else:
        new = codes(BATCH)
        model.add(subject.add(new), new)


def _summary(times):
    n = sum(map(len, times.values()))
    parts = [
        np.percentile(times[kind] or [np.nan], q) for kind in ("read", "write") for q in (50, 99)
    ]
    return n, *parts


def draw_figure(rows, path):
    """Latency and memory over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    table = np.array(rows, float)
    figure, (above, below) = pyplot.subplots(
        2, 1, sharex=True, figsize=(7, 4.5), layout="constrained"
    )
    for column in (2, 3, 4, 5):
        above.plot(
            table[:, 0], table[:, column], marker="o", label=HEAD[column].removesuffix(" (ms)")
        )
    above.set(ylabel="milliseconds", yscale="log")
    above.legend(ncols=4, fontsize=8)
    below.plot(table[:, 0], table[:, 6], marker="o", color="black")
    below.set(xlabel="minutes", ylabel="memory (MB)", ylim=(0, 1.1 * table[:, 6].max()))
    figure.savefig(path)


def table_of(rows):
    """The rows as Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---:|" * len(HEAD)]
    shown = [[f"{v:,.1f}" if isinstance(v, float) else f"{v:,}" for v in row] for row in rows]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in shown)])


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak", description="Use a collection for long.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--subject", choices=list(SUBJECTS), default="collection")
    parser.add_argument("--rate", type=float, default=math.inf, help="operations a second, at most")
    parser.add_argument("--figure", type=Path, help="draw latency and memory to this file")
    given, rows = parser.parse_args(), None
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        rows = soak(SUBJECTS[given.subject](folder), given.minutes, given.rate)
    if rows is None:
        return 130
    sys.stdout.write(table_of(rows) + "\n")
    if given.figure is not None:
        draw_figure(rows, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
