"""Search: ratios against FAISS in the same run, and how cost grows with the number of codes.

    python benchmarks/search.py [--root DATA] [--largest N] [--threads T] [--peers]
        [--write docs/results/speed.md]

Everyone has the same codes, the same queries and the same number of threads (one by default).
Times are the best of several repetitions taken in turn.  ``--peers`` measures only what is short,
in processor time: single queries, radii, additions.  Everything takes about ten minutes and 8 GB;
``--largest 1e6`` a tenth of both.  Needs FAISS, pynear and usearch (the extra ``dev`` brings
them) and, for the real codes, the shared CIFAR-10 features.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import faiss
import numpy as np
import search_peers
from results import Section, Target
from timing import fastest

import bittern as bt
from bittern.kernels import small

N_CENTRES, INNER, OUTER, NOISE = 20_000, 32, 128, 0.35  # of the mixture
N_QUERIES = 240
PART = 100_000  # rows made at a time
SIZES = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000]
FLAT_TARGETS = {64: 2.0, 128: 1.0, 256: 1.0}  # × FAISS at k = 100
MULTI_TARGETS = {  # × FAISS, by number of codes and k
    (1_000_000, 10): 8,
    (1_000_000, 100): 3,
    (10_000_000, 10): 30,
    (10_000_000, 100): 8,
}
MOST_IN_TABLES, IN_COLLECTION = 4_000_000, 1_000_000
FIGURE = Path("docs/images/search-cost.svg")
Sets = tuple[bt.Codes, bt.Codes]  # database, queries


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--largest", type=lambda x: int(float(x)), default=SIZES[-1])
    parser.add_argument("--threads", type=int, default=1, help="threads, for every index")
    parser.add_argument("--peers", action="store_true", help="single queries, radii, additions")
    parser.add_argument("--write", type=Path, help="also write tables and figure, into this file")
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    small.use_kernels()
    sizes = [n for n in SIZES if n <= options.largest]
    if not sizes:
        parser.error(f"--largest must be at least {SIZES[0]:,}")
    sections = []

    def tell(section: Section) -> None:
        print(section.text(), end="\n\n", flush=True)
        sections.append(section)

    for part in (search_peers.single_queries, search_peers.radii, search_peers.additions):
        tell(part(min(sizes[-1], max(search_peers.SIZES))))
    if options.write:
        command = "python benchmarks/search.py --peers"
        Section.write(options.write, "search-peers", command, sections)
    if options.peers:
        sys.exit(0 if all(section.holds for section in sections) else 1)
    n_peers = len(sections)
    tell(scanning(options.threads))
    for section in searching(sizes, options.threads):
        tell(section)
    growing, costs = growth(sizes, options.threads, options.root)
    tell(growing)
    tell(tables(min(sizes[-1], MOST_IN_TABLES)))
    tell(collection(min(sizes[-1], IN_COLLECTION)))
    if options.write:
        draw(costs, FIGURE)
        Section.write(options.write, "search", "python benchmarks/search.py", sections[n_peers:])
    sys.exit(0 if all(section.holds for section in sections) else 1)


def scanning(threads: int) -> Section:
    """FlatIndex against FAISS's, on uniform codes."""
    n, k = 1_000_000, 100
    section = Section(
        f"FlatIndex: {n:,} uniform codes, k = {k}, {said(threads)}",
        ("bits", "ms per query", "FAISS IndexBinaryFlat, ms", "× FAISS"),
    )
    for n_bits, target in FLAT_TARGETS.items():
        database, queries = uniform(n, n_bits)
        theirs, octets = faiss_flat(database), queries.to_packed("little")
        ours = bt.FlatIndex(database)
        mine, peer = fastest(
            lambda o=ours, q=queries: o.search(q, k, n_threads=threads),
            lambda t=theirs, o=octets: t.search(o, k),
        )
        section.row(n_bits, per_query(mine), per_query(peer), Target(peer / mine, at_least=target))
    return section


def searching(sizes: list[int], threads: int) -> list[Section]:
    """MultiIndex against three of FAISS's, on the mixture."""
    header = ("codes", "k", "index", "ms per query", "recall", "× FAISS Flat")
    title = "64 bits of random hyperplanes on the mixture"
    main_section = Section(f"MultiIndex: {title}, {said(threads)}", header)
    for n in (n for n in sizes if n in (1_000_000, 10_000_000)):
        compare(main_section, mixture(n, 64), threads, MULTI_TARGETS)
    main_section.note(
        f"The mixture: {N_CENTRES:,} Gaussians with standard deviation {NOISE} on a {INNER}-D "
        f"subspace of {OUTER}-D; queries come from the same. Recall is the share of hits at most "
        "as far as the k-th nearest, so any order of ties counts as right. Ours are exact and "
        "equal the scan in every position. FAISS's MultiHash has four tables of 16 bits and flips "
        "one bit; its IVF has as many lists as the square root of the number of codes and visits "
        "16 of them."
    )
    long_section = Section(f"MultiIndex: 128 bits of the same, {said(threads)}", header)
    compare(long_section, mixture(min(sizes[-1], 1_000_000), 128), threads, {})
    return [main_section, long_section]


def compare(
    section: Section, sets: Sets, threads: int, targets: dict[tuple[int, int], float]
) -> None:
    """A row for each index and k."""
    database, queries = sets
    n, octets = len(database), queries.to_packed("little")
    flat, multi, scan = faiss_flat(database), bt.MultiIndex(database), bt.FlatIndex(database)
    peers = {
        "FAISS Flat": flat,
        "FAISS MultiHash": multi_hash(database),
        "FAISS IVF": ivf(database),
    }
    for k in (10, 100):
        exact = scan.search(queries, k, n_threads=threads)
        hits = multi.search(queries, k, n_threads=threads)
        assert np.array_equal(hits.ids, exact.ids), "MultiIndex is not exact"
        calls: dict[str, Callable[[], object]] = {
            name: lambda p=peer, k=k: p.search(octets, k) for name, peer in peers.items()
        }
        calls["FlatIndex"] = lambda k=k: scan.search(queries, k, n_threads=threads)
        calls["MultiIndex"] = lambda k=k: multi.search(queries, k, n_threads=threads)
        times = dict(zip(calls, fastest(*calls.values(), rounds=3), strict=True))
        for name, seconds in times.items():
            found = peers[name].search(octets, k)[0] if name in peers else exact.distances
            ratio = times["FAISS Flat"] / seconds
            target = Target(ratio, at_least=targets.get((n, k)) if name == "MultiIndex" else None)
            recall = float((found <= exact.distances[:, -1:]).mean())
            section.row(f"{n:,}", k, name, per_query(seconds), recall, target)
        slower = times["MultiIndex"] / times["FlatIndex"]
        section.row(
            f"{n:,}", k, "MultiIndex, in units of FlatIndex", "", "", Target(slower, at_most=1.05)
        )


def growth(
    sizes: list[int], threads: int, root: Path | None
) -> tuple[Section, dict[str, list[tuple[int, float]]]]:
    """Time of a query against the number of codes, with the exponent of the power of best fit."""
    section = Section(
        f"Cost of a query against the number of codes, k = 10, {said(threads)}",
        ("codes of", *(f"{n:,}, ms" for n in sizes), "exponent"),
    )
    makers: dict[str, Callable[[int], Sets]] = {
        "mixture": lambda n: mixture(n, 64),
        "uniform": lambda n: uniform(n, 64),
    }
    if real_features(root) is not None:
        makers["CIFAR-10, ITQ"] = lambda n: real(n, 64, root)
    makers["mixture, 128 bits"] = lambda n: mixture(n, 128)
    costs: dict[str, list[tuple[int, float]]] = {}
    for name, make in makers.items():
        database, queries = make(sizes[-1])
        for kind in (bt.MultiIndex, bt.FlatIndex):
            points = []
            for n in sizes:
                index = kind(database[:n])
                (seconds,) = fastest(
                    lambda i=index, q=queries: i.search(q, 10, n_threads=threads), rounds=3
                )
                points.append((n, seconds / len(queries)))
            costs[f"{kind.__name__}, {name}"] = points
            slope = np.polyfit(*np.log(points).T, 1)[0] if len(points) > 1 else float("nan")
            label = f"{name}: {kind.__name__}"
            section.row(label, *(1e3 * seconds for _, seconds in points), float(slope))
    section.note(
        "Codes have 64 bits unless noted. The exponent is that of the power of n that fits best. "
        "CIFAR-10's 60,000 network features under ITQ are too few, so beyond them "
        "each code repeats with every bit flipped with probability 1/32, as near-duplicates "
        "would be. "
        "![Cost against the number of codes](../images/search-cost.svg)"
    )
    return section, costs


def tables(largest: int) -> Section:
    """Memory and time to build and load a TableIndex, extrapolated to 10⁸ codes."""
    section = Section(
        "TableIndex: memory and loading, uniform codes of 64 bits",
        (
            "codes",
            "tables of bits",
            "built, s",
            "bytes per code at the peak",
            "bytes per code in the file",
            "mapped, s",
            "10⁸ codes, GB at the peak",
        ),
    )
    for n in (largest // 2, largest):
        for settings in ({"n_tables": 2}, {"n_tables": 4, "bits_per_table": 16}):
            # A new process for each, since a peak belongs to a process.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                kind, built, peak, stored, mapped = pool.submit(table_cost, n, settings).result()
            of_all = Target(peak * 1e8 / 1e9, at_most=16)
            section.row(f"{n:,}", kind, built, peak, stored, mapped, of_all)
    section.note(
        "The peak is that of building, above the process's memory before, with the codes and ids "
        "in it. Mapped is the time until the index on disk can be searched, the file being in the "
        "system's cache."
    )
    return section


def table_cost(n: int, settings: dict[str, int]) -> tuple[str, float, float, float, float]:
    """Tables, seconds to build, bytes per code at the peak and in the file, seconds to map."""
    codes, queries = uniform(n, 64)
    bt.TableIndex(codes[:1000], **settings).search(queries, 1)  # compiles
    before = memory("VmRSS") - codes.words.nbytes
    began = time.perf_counter()
    index = bt.TableIndex(codes, **settings)
    hits = index.search(queries[:1], 1)
    built, peak = time.perf_counter() - began, memory("VmHWM") - before
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tables.index")
        index.save(path)
        began = time.perf_counter()
        mapped = bt.TableIndex.load(path, mmap=True)
        took = time.perf_counter() - began
        assert mapped.search(queries[:1], 1).to_lists() == hits.to_lists()
        kind = f"{index.tables.n_tables} of {index.tables.bits_per_table}"
        return kind, built, peak / n, path.stat().st_size / n, took


def memory(name: str) -> float:
    """Memory of this process in bytes, as Linux reports it; NaN elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024.0 * int(x.split()[1]) for x in lines if x.startswith(name)), float("nan"))


def collection(n: int) -> Section:
    """Time to open a collection, and the cost of its searches beside the index's own."""
    section = Section(
        f"A collection of {n:,} items of 64 bits with metadata (all threads)",
        ("to", "s", "in units of the index alone"),
    )
    database, queries = mixture(n, 64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "items.bittern")
        began = time.perf_counter()
        with bt.store.create(path, 64) as made:
            for first in range(0, n, PART):
                some = database[first : first + PART]
                label = [f"class {i % 10}" for i in range(len(some))]
                made.add(some, metadata={"label": label, "place": np.arange(len(some))})
        section.row("add them", time.perf_counter() - began, "")
        for how, read_only in (("for writing", False), ("for reading", True)):
            began = time.perf_counter()
            opened = bt.store.open(path, read_only=read_only)
            section.row(f"open it {how}", Target(time.perf_counter() - began, at_most=5), "")
            if not read_only:
                opened.close()
        index = bt.MultiIndex(database)
        with opened:
            for k in (10, 100):
                assert np.array_equal(opened.search(queries, k).ids, index.search(queries, k).ids)
                through, alone = fastest(
                    lambda k=k: opened.search(queries, k), lambda k=k: index.search(queries, k)
                )
                ratio = Target(through / alone, at_most=1.2)
                section.row(f"search it {N_QUERIES} times, k = {k}", through, ratio)
    return section


def uniform(n: int, n_bits: int) -> Sets:
    """Codes without any structure."""
    rng = np.random.default_rng(n_bits)
    words = rng.integers(0, 2**64, (n + N_QUERIES, n_bits // 64), dtype=np.uint64)
    return bt.Codes(words[:n], n_bits), bt.Codes(words[n:], n_bits)


def mixture(n: int, n_bits: int) -> Sets:
    """Random-hyperplane codes of the mixture."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((N_CENTRES, INNER), dtype=np.float32)
    subspace, _ = np.linalg.qr(rng.standard_normal((OUTER, INNER)))
    planes = (subspace.T @ rng.standard_normal((OUTER, n_bits))).astype(np.float32)

    def draw_codes(size: int) -> bt.Codes:
        noise = NOISE * rng.standard_normal((size, INNER), dtype=np.float32)
        return bt.Codes.from_bits((centres[rng.integers(0, N_CENTRES, size)] + noise) @ planes > 0)

    queries = draw_codes(N_QUERIES)
    parts = [draw_codes(min(PART, n - first)) for first in range(0, n, PART)]
    return bt.Codes.concatenate(parts), queries


def real(n: int, n_bits: int, root: Path | None) -> Sets:
    """ITQ codes of CIFAR-10's network features, repeated with a few bits flipped."""
    vectors = real_features(root)
    assert vectors is not None
    rng = np.random.default_rng(0)
    order = rng.permutation(len(vectors))
    hasher = bt.hashing.ITQ(n_bits=n_bits, random_state=0).fit(vectors[order[:5000]])
    bits = hasher.transform(vectors[order])
    queries, bits = bt.Codes.from_bits(bits[:N_QUERIES]), bits[N_QUERIES:]
    parts = [bt.Codes.from_bits(bits)]
    while sum(map(len, parts)) < n:
        parts.append(bt.Codes.from_bits(bits ^ (rng.random(bits.shape, np.float32) < 1 / 32)))
    return bt.Codes.concatenate(parts)[:n], queries


def real_features(root: Path | None) -> np.ndarray | None:
    """CIFAR-10's network features, None if they are not on this machine."""
    try:
        return np.asarray(bt.load("cifar10", root, features="cnn").vectors, np.float32)
    except bt.BitternError:
        return None


def faiss_flat(database: bt.Codes) -> faiss.IndexBinaryFlat:
    """FAISS's scan."""
    index = faiss.IndexBinaryFlat(database.n_bits)
    index.add(database.to_packed("little"))
    return index


def multi_hash(database: bt.Codes) -> faiss.IndexBinaryMultiHash:
    """FAISS's several tables, of segments of 16 bits."""
    index = faiss.IndexBinaryMultiHash(database.n_bits, database.n_bits // 16, 16)
    index.add(database.to_packed("little"))
    index.nflip = 1
    return index


def ivf(database: bt.Codes) -> faiss.IndexBinaryIVF:
    """FAISS's inverted lists."""
    n_lists = round(len(database) ** 0.5)
    quantizer = faiss.IndexBinaryFlat(database.n_bits)
    index = faiss.IndexBinaryIVF(quantizer, database.n_bits, n_lists)
    index.quantizer_kept = quantizer  # FAISS does not own it
    octets = database.to_packed("little")
    index.train(octets[: 40 * n_lists])
    index.add(octets)
    index.nprobe = 16
    return index


def draw(costs: dict[str, list[tuple[int, float]]], path: Path) -> None:
    """Time against the number of codes, both logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 4.5), layout="constrained")
    axes = figure.subplots()
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    for i, (name, points) in enumerate(costs.items()):
        style = "-" if name.startswith("Multi") else ":"
        n, seconds = zip(*points, strict=True)
        axes.loglog(
            n, 1e3 * np.array(seconds), style, color=colours[i // 2], marker="o", ms=4, label=name
        )
    axes.set(xlabel="codes", ylabel="milliseconds per query, k = 10")
    figure.legend(loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None})


def said(threads: int) -> str:
    """The number of threads in words."""
    return "one thread" if threads == 1 else f"{threads} threads"


def per_query(seconds: float) -> float:
    """Milliseconds."""
    return 1e3 * seconds / N_QUERIES


if __name__ == "__main__":
    main()
