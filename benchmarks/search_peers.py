"""Sections of ``search.py``: single queries, radii and single additions, beside exact peers.

All have one thread, and times are the processor's: other work on the machine hardly matters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
import pynear
import timing
from results import Section, Target
from usearch.index import MetricKind, ScalarKind
from usearch.index import search as usearch_exact

import bittern as bt
from bittern.kernels import small

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MOST_OF_PEERS = 10_000  # codes for usearch and pynear, which then take a millisecond and more
RADII = (2, 10, 16)
OVERHEAD = 20.0  # µs of a search of few codes
QUICK = 1.3  # × FAISS
NO_WORSE = 1.05  # × FlatIndex
SECONDS = 1e-3  # to add one code
FEWEST_TO_GROW = 2_000_000  # codes to add to

fastest = partial(timing.fastest, clock=time.process_time)


def uniform(n: int, n_queries: int) -> tuple[bt.Codes, bt.Codes]:
    """Codes of 64 bits without any structure."""
    words = np.random.default_rng(n).integers(0, 2**64, (n + n_queries, 1), dtype=np.uint64)
    return bt.Codes(words[:n], 64), bt.Codes(words[n:], 64)


def single_queries(largest: int) -> Section:
    """The ten nearest of one query."""
    small.use_kernels()
    section = Section(
        "One query at a time: uniform codes of 64 bits, k = 10, one thread, µs of processor time",
        ("codes", "FlatIndex", "MultiIndex", "FAISS Flat", "usearch exact", "pynear VPTree"),
    )
    for n in (n for n in SIZES if n <= largest):
        database, query = uniform(n, 1)
        rows, row = database.to_packed("little"), query.to_packed("little")
        flat, multi, theirs = bt.FlatIndex(database), bt.MultiIndex(database), faiss_flat(rows)
        calls: list[Callable[[], object]] = [
            lambda f=flat, q=query: f.search(q, 10, n_threads=1),
            lambda m=multi, q=query: m.search(q, 10, n_threads=1),
            lambda t=theirs, r=row: t.search(r, 10),
        ]
        if n <= MOST_OF_PEERS:
            tree = pynear.VPTreeBinaryIndex64()
            tree.set(rows)
            calls += [
                lambda d=rows, r=row: usearch_exact(
                    d, r, 10, MetricKind.Hamming, exact=True, threads=1, dtype=ScalarKind.B1
                ),
                lambda t=tree, r=row: t.searchKNN(r, 10),
            ]
        ours, *others = (1e6 * seconds for seconds in fastest(*calls, rounds=rounds_for(n)))
        cells = [f"{value:.3g}" for value in others] + ["–"] * (
            len(section.header) - 2 - len(others)
        )
        section.row(f"{n:,}", Target(ours, at_most=OVERHEAD if n == SIZES[0] else None), *cells)
    section.note(
        "At a thousand codes, nearly all the time is that of the call, which the bound limits."
    )
    return section


def radii(largest: int) -> Section:
    """All within a radius, of one query and of many."""
    small.use_kernels()
    section = Section(
        "Within a radius: uniform codes of 64 bits, one thread, µs of processor time per query",
        (
            "codes",
            "queries",
            "radius",
            "FlatIndex",
            "MultiIndex",
            "FAISS Flat",
            "Flat × FAISS",
            "Multi in units of Flat",
        ),
    )
    for n in (n for n in SIZES if n <= largest):
        for n_queries in (1, 240):
            database, queries = uniform(n, n_queries)
            rows = queries.to_packed("little")
            flat, multi = bt.FlatIndex(database), bt.MultiIndex(database)
            theirs = faiss_flat(database.to_packed("little"))
            for radius in RADII:
                mine, tables, peer = fastest(
                    lambda f=flat, q=queries, r=radius: f.within(q, r, n_threads=1),
                    lambda m=multi, q=queries, r=radius: m.within(q, r, n_threads=1),
                    lambda t=theirs, o=rows, r=radius: t.range_search(o, r + 1),
                    rounds=rounds_for(n * n_queries),
                )
                section.row(
                    f"{n:,}",
                    n_queries,
                    radius,
                    *(1e6 * seconds / n_queries for seconds in (mine, tables, peer)),
                    Target(peer / mine, at_least=QUICK),
                    Target(tables / mine, at_most=NO_WORSE),
                )
    return section


def additions(largest: int) -> Section:
    """Adding one code to many, and the first search after it."""
    section = Section(
        "Adding one code, uniform codes of 64 bits, ms",
        ("codes", "index", "first addition", "search after it", "search before it"),
    )
    largest = max(largest, FEWEST_TO_GROW)
    database, query = uniform(largest, 1)
    for kind in (bt.FlatIndex, bt.MultiIndex):
        index = kind(database)
        index.search(query, 10)
        times = []
        for work in (
            lambda i=index: i.search(query, 10),
            lambda i=index: i.add(query),
            lambda i=index: i.search(query, 10),
        ):
            began = time.process_time()
            work()
            times.append(1e3 * (time.process_time() - began))
        assert index.search(query, 1).to_lists() == [[(largest, 0)]]
        before, added, after = times
        bound = Target(added, at_most=1e3 * SECONDS)
        section.row(f"{largest:,}", kind.__name__, bound, after, before)
    section.note(
        "With fewer than 2²⁰ codes, an addition may double the memory and copy all of them, in a "
        "few milliseconds; with more, new codes wait in an array of their own."
    )
    return section


def faiss_flat(rows: np.ndarray) -> faiss.IndexBinaryFlat:
    """FAISS's scan of packed codes."""
    index = faiss.IndexBinaryFlat(8 * rows.shape[1])
    index.add(rows)
    return index


def rounds_for(pairs: int) -> int:
    """Repetitions: many of short calls."""
    return int(min(300, max(5, 2e7 / pairs)))
