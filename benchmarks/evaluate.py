"""Speed and memory of evaluation, as ratios against peers in the same run.

    python benchmarks/evaluate.py [--write docs/results/speed.md] [--quick]

Every line is a ratio of times measured here and now, best of several repetitions taken in turn, on
random codes with two threads for everyone.  Needs FAISS (the extra ``dev`` brings it).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import numpy as np
from numba import njit
from results import Section, Target
from timing import fastest

import bittern as bt
from bittern.kernels import small
from bittern.kernels.bits import popcount

THREADS = 2
ROUNDS = 25
N_QUERIES, N_DATABASE, N_CLASSES, N_TAGS = 1000, 60_000, 10, 81
N_MANY = 1_000_000  # items of few queries
RUN = 4096  # distances that the bare scan writes before it reuses its buffer


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write the tables into this Markdown file")
    parser.add_argument("--quick", action="store_true", help="skip the large memory run")
    options = parser.parse_args()
    faiss.omp_set_num_threads(THREADS)
    small.use_kernels()
    sections = [counting(), few_queries(), ground_truths(), metrics()]
    if not options.quick:
        sections.append(memory())
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        Section.write(options.write, "evaluate", "python benchmarks/evaluate.py", sections)
    sys.exit(0 if all(section.holds for section in sections) else 1)


def counting() -> Section:
    """Counting by distance and class against the bare scan, FAISS and sorting."""
    section = Section(
        f"Counting: {N_QUERIES:,} × {N_DATABASE:,} codes, {N_CLASSES} classes, two threads",
        (
            "bits",
            "billion pairs/s",
            "billion words/s",
            "of bare scan",
            "of summing scan",
            "× FAISS k=100",
            "× argsort",
        ),
    )
    per_word: dict[int, float] = {}
    for n_bits in (64, 128, 256):
        queries, database, labels = random_codes(n_bits)
        octets = queries.to_packed(), database.to_packed()
        flat = faiss.IndexBinaryFlat(n_bits)
        flat.add(octets[1])
        ours, scan, summing, search, sort = fastest(
            lambda q=queries, d=database, y=labels: bt.TieProfile.from_codes(
                q, d, bt.Relevance.from_classes(*y), n_threads=THREADS
            ),
            lambda q=queries, d=database: bare_scan(q, d, write_distances),
            lambda q=queries, d=database: bare_scan(q, d, sum_distances),
            lambda f=flat, o=octets: f.search(o[0], 100),
            lambda q=queries, d=database, y=labels: sorted_ap(q, d, *y, some=20),
            rounds=ROUNDS,
        )
        sort *= N_QUERIES / 20
        pairs = N_QUERIES * N_DATABASE / ours / 1e9
        per_word[n_bits] = pairs * n_bits / 64
        targets = n_bits == 64
        section.row(
            n_bits,
            pairs,
            Target(per_word[n_bits], at_least=0.98 * per_word[64]) if not targets else per_word[64],
            Target(scan / ours, at_least=0.6 if targets else None),
            Target(summing / ours, at_least=0.6 if targets else None),
            Target(search / ours, at_least=4 if targets else None),
            Target(sort / ours, at_least=80 if targets else None),
        )
    section.note(
        "The bare scan XORs, counts bits and writes each distance as a 16-bit number into a buffer "
        "that stays in the nearest cache; the summing scan only adds the distances up in a "
        "register. Both are vector code over planes of words. Ours includes grouping by class. "
        "Argsort is NumPy's popcount and a stable argsort for each query (timed on 20 queries)."
    )
    return section


def few_queries() -> Section:
    """Counting few queries against many items, against the bare scan."""
    section = Section(
        f"Few queries: × {N_MANY:,} codes of 64 bits, {N_CLASSES} classes, two threads",
        ("queries", "ms", "billion pairs/s", "of bare scan"),
    )
    rng = np.random.default_rng(0)
    database, labels = random_words(rng, N_MANY, 64), rng.integers(0, N_CLASSES, N_MANY)
    for n in (10, 100, 1000):
        queries, asked = random_words(rng, n, 64), rng.integers(0, N_CLASSES, n)
        ours, scan = fastest(
            lambda q=queries, y=asked: bt.TieProfile.from_codes(
                q, database, bt.Relevance.from_classes(y, labels), n_threads=THREADS
            ),
            lambda q=queries: bare_scan(q, database, write_distances),
            rounds=ROUNDS,
        )
        share = Target(scan / ours, at_least=0.6 if n >= 100 else None)
        section.row(n, 1e3 * ours, n * N_MANY / ours / 1e9, share)
    section.note(
        "The bare scan is the one above; ours includes numbering and grouping the classes."
    )
    return section


def ground_truths() -> Section:
    """Tags and lists against classes."""
    section = Section(
        f"Ground truths: {N_QUERIES:,} × {N_DATABASE:,}, 64 bits, time in units of classes",
        ("ground truth", "ms", "× classes"),
    )
    queries, database, labels = random_codes(64)
    rng = np.random.default_rng(1)
    # Concepts as frequent as in NUS-WIDE: a few common, many rare, 1.87 per image.
    popularity = 1 / np.arange(1, N_TAGS + 1)
    popularity *= 1.87 / popularity.sum()
    tags = [rng.random((n, N_TAGS)) < popularity for n in (N_QUERIES, N_DATABASE)]
    lists = rng.random((N_QUERIES, N_DATABASE), dtype=np.float32) < 0.01
    truths = {
        "classes": bt.Relevance.from_classes(*labels),
        "81 tags": bt.Relevance.from_tags(*tags),
        "81 tags, graded": bt.Relevance.from_tags(*tags, graded=True),
        "lists, 600 per query": bt.Relevance.from_matrix(lists),
    }
    times = fastest(
        *(
            lambda t=truth: bt.TieProfile.from_codes(queries, database, t, n_threads=THREADS)
            for truth in truths.values()
        ),
        rounds=ROUNDS,
    )
    for name, seconds in zip(truths, times, strict=True):
        section.row(name, 1e3 * seconds, Target(seconds / times[0], at_most=2))
    return section


def metrics() -> Section:
    """Metrics from a profile against the counting that made it."""
    section = Section(
        "Metrics from a profile of 10,000 × 1,000,000 codes of 64 bits, as a share of counting",
        ("metric", "ms", "% of counting"),
    )
    rng = np.random.default_rng(0)
    queries, database = (random_words(rng, n, 64) for n in (10_000, 1_000_000))
    truth = bt.Relevance.from_classes(
        rng.integers(0, N_CLASSES, 10_000), rng.integers(0, N_CLASSES, 1_000_000)
    )
    began = time.perf_counter()
    profile = bt.TieProfile.from_codes(queries, database, truth, n_threads=THREADS)
    counted = time.perf_counter() - began
    names = ["ap", "ndcg", "ap@5000", "ap@5000:retrieved", "precision@100", "rr", "precision@r2"]
    names += ["auprc", "interpolated-ap"]
    times = fastest(
        *(lambda n=name: bt.evaluate(profile, [n])[n].mean for name in names), rounds=ROUNDS
    )
    for name, seconds in zip(names, times, strict=True):
        section.row(name, 1e3 * seconds, Target(100 * seconds / counted, at_most=5))
    whole = sum(times)
    section.row("all of these", 1e3 * whole, 100 * whole / counted)
    return section


def memory() -> Section:
    """Peak memory of a large evaluation, in its own process."""
    section = Section(
        "Memory: 10,000 × 1,000,000 codes of 64 bits, classes, MB above the codes themselves",
        ("what", "MB"),
    )
    code = """
import json, os, threading, time
import numpy as np, psutil, bittern as bt
from bittern.kernels import small
small.use_kernels()
rss = lambda: psutil.Process().memory_info().rss / 2**20
r = np.random.default_rng(0)
words = lambda n: bt.Codes(r.integers(0, 2**64, (n, 1), dtype=np.uint64), 64)
tiny = bt.Relevance.from_classes([0], [0, 1])
bt.evaluate(words(1), words(2), tiny, ["ap"])["ap"].mean  # loads libraries and kernels
q, d = words(10_000), words(1_000_000)
labels = r.integers(0, 10, 10_000), r.integers(0, 10, 1_000_000)
before, seen, over = rss(), [], threading.Event()
def watch():
    while not over.wait(0.005):
        seen.append(rss())
watcher = threading.Thread(target=watch)
watcher.start()
bt.evaluate(q, d, bt.Relevance.from_classes(*labels), ["ap", "ndcg", "auprc"])["ap"].mean
over.set()
watcher.join()
print(json.dumps(max(seen) - before))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    section.row("evaluate, ground truth and metrics", Target(json.loads(out.stdout), at_most=300))
    return section


def random_words(rng: np.random.Generator, n: int, n_bits: int) -> bt.Codes:
    """Uniform codes."""
    return bt.Codes(rng.integers(0, 2**64, (n, n_bits // 64), dtype=np.uint64), n_bits)


def random_codes(n_bits: int) -> tuple[bt.Codes, bt.Codes, tuple[np.ndarray, np.ndarray]]:
    """Queries, database and their labels."""
    rng = np.random.default_rng(n_bits)
    queries, database = (random_words(rng, n, n_bits) for n in (N_QUERIES, N_DATABASE))
    return queries, database, tuple(rng.integers(0, N_CLASSES, n) for n in (N_QUERIES, N_DATABASE))


def bare_scan(queries: bt.Codes, database: bt.Codes, scan: Callable[..., None]) -> None:
    """Compute every distance, count nothing."""
    out = np.zeros(len(queries), np.uint64)
    half = len(queries) // 2
    planes = np.ascontiguousarray(database.words.T)
    with ThreadPoolExecutor(THREADS) as pool:
        for rows in (slice(0, half), slice(half, None)):
            pool.submit(scan, queries.words[rows], planes, out[rows])


@njit(nogil=True)
def sum_distances(queries, planes, out):
    """One thread's share: the sum of each query's distances."""
    for q in range(queries.shape[0]):
        total = np.uint64(0)
        for w in range(queries.shape[1]):
            a, words = queries[q, w], planes[w]
            for i in range(words.shape[0]):
                total += popcount(a ^ words[i])
        out[q] = total


@njit(nogil=True)
def write_distances(queries, planes, out):
    """One thread's share: each query's distances, written run by run."""
    buffer = np.empty(RUN, np.uint16)
    for q in range(queries.shape[0]):
        for start in range(0, planes.shape[1], RUN):
            stop = min(planes.shape[1], start + RUN)
            a, words = queries[q, 0], planes[0, start:stop]
            for i in range(stop - start):
                buffer[i] = popcount(a ^ words[i])
            for w in range(1, queries.shape[1]):
                a, words = queries[q, w], planes[w, start:stop]
                for i in range(stop - start):
                    buffer[i] += popcount(a ^ words[i])
        out[q] = buffer[0]


def sorted_ap(
    queries: bt.Codes, database: bt.Codes, query_labels: np.ndarray, labels: np.ndarray, some: int
) -> float:
    """The usual way: all distances of a query, argsort, precision at each hit."""
    values = []
    ranks = np.arange(1, len(database) + 1)
    for q in range(some):
        distance = np.bitwise_count(queries.words[q] ^ database.words).sum(axis=1)
        hits = labels[np.argsort(distance, kind="stable")] == query_labels[q]
        values.append((np.cumsum(hits) / ranks)[hits].mean())
    return float(np.mean(values))


if __name__ == "__main__":
    main()
