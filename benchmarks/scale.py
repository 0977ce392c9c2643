"""Shards of 10⁸ codes: evaluation, plan, multi-index, and what shards, Dask and processes cost.

    python benchmarks/scale.py [--n 1e8] [--only evaluate,plan,larger,pieces,dask,multi,processes]
        [--folder DIR] [--write docs/scale.md]

Times are of the processor and of one thread, so that other work on the machine does not count;
only ``processes`` measures elapsed time, and needs a machine that is otherwise idle.  ``--folder``
is for temporary files: at 10⁸ codes, 7 GB, which are removed.  Everything takes about five minutes
of one core and 8 GB of memory.  Needs FAISS and Dask (the extra ``dev`` brings them).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any

os.environ |= {"BITTERN_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np
from one_go import in_one_go
from results import Section, Target

import bittern as bt
from bittern.kernels import small
from bittern.scale import shard as shard_module
from bittern.scale.cluster import connect

N_QUERIES, N_CLASSES = 1000, 10
MILLION = 1_000_000
N_SCANS = 6  # shards that the bare scan is timed on
SAMPLED = 1.0  # seconds between two looks at memory: they use the processor too
GIB = 1 << 30
CENTRES, NEAR = 20_000, 5  # of the clustered codes: a bit differs with probability 2^-NEAR
FLAT_QUERIES, MULTI_QUERIES = 12, 1000
STARTS, ROUNDS, IDLE = 4, 3, 3.0  # of Dask: workers; rounds of each; seconds of an idle one
FEW_CHORES = {  # settings of a Dask worker: no profiler, and a look at itself once a second
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}


def main() -> None:
    """Measure what was asked for, print it, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=lambda x: int(float(x)), default=100 * MILLION)
    parser.add_argument(
        "--only", default="evaluate,plan,larger,pieces,dask,multi", help="which parts"
    )
    parser.add_argument("--folder", type=Path, help="place for temporary files")
    parser.add_argument("--write", type=Path, help="also write the tables into this file")
    options = parser.parse_args()
    holds = True
    folder = Path(tempfile.mkdtemp(prefix="bittern-scale-", dir=options.folder))
    try:
        for part in options.only.split(","):
            # A new process for each, since a peak of memory belongs to a process.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                section = pool.submit(PARTS[part], options.n, folder).result()
            print(section.text(), end="\n\n", flush=True)
            holds &= section.holds
            if options.write:
                command = f"python benchmarks/scale.py --n {options.n:.0e} --only {part}"
                Section.write(options.write, f"scale-{part}", command, [section])
    finally:
        rmtree(folder)
    sys.exit(0 if holds else 1)


def evaluate(n: int, folder: Path) -> Section:
    """10¹¹ pairs against the bare scan."""
    section = Section(
        f"{N_QUERIES:,} queries with classes against {n:,} codes of 64 bits in shards of a million",
        ("billion pairs/s", "of bare scan", "processor, s", "memory above mapped files, GiB"),
    )
    queries, labels, shards = made(folder / "db", n)
    warm_up(queries, labels)
    truth = bt.scale.Classes(labels)
    with peak_of_own_memory() as peak:
        took = timed(lambda: bt.scale.evaluate(queries, shards, truth, ["ap", "ndcg"]))
    pairs, scan = N_QUERIES * n / took, bare_scan(queries, shards)
    (folder / "evaluated").write_text(str(took))
    share, memory = Target(pairs / scan, at_least=0.55), Target(peak[0] / GIB, at_most=1)
    section.row(pairs / 1e9, share, took, memory)
    section.note(
        f"Checksums, grouping by class, adding up and two metrics are included. The bare scan, "
        f"{scan / 1e9:.3g} billion pairs a second in the same process, takes shard after shard, "
        "XORs, counts bits and writes each distance as a 16-bit number into a buffer that stays in "
        "the nearest cache."
    )
    return section


def bare_scan(queries: bt.Codes, shards: bt.scale.Shards) -> float:
    """Pairs a second that are compared and not counted, over some of the shards."""
    from evaluate import write_distances

    out, best = np.zeros(len(queries), np.uint64), 0.0
    parts = [
        np.ascontiguousarray(shard.codes.words.T)
        for shard in [*shards][:: max(1, len(shards) // N_SCANS)]
    ]
    write_distances(queries.words[:2], parts[0][:, :100], out[:2])  # compiles
    for half in (parts[::2], parts[1::2] or parts):
        took = timed(lambda half=half: [write_distances(queries.words, p, out) for p in half])
        best = max(best, len(queries) * sum(p.shape[1] for p in half) / took)
    return best


def plan(n: int, folder: Path) -> Section:
    """The model fitted to 10⁶ and 10⁷ items, and what it says of the largest."""
    section = Section(
        "The plan: fitted to 10⁶ and 10⁷ items, checked against the largest",
        ("items", "queries", "items of a shard", "measured, s", "the model, s", "error"),
    )
    measured = []
    sizes = ((MILLION, MILLION // 10), (MILLION, MILLION), (10 * MILLION, MILLION))
    for i, (size, shard_size) in enumerate(sizes):
        queries, labels, shards = made(folder / f"plan-{i}", size, shard_size)
        warm_up(queries, labels)
        for n_queries in (100, N_QUERIES):
            some, truth = queries[:n_queries], bt.scale.Classes(labels[:n_queries])
            seconds = min(
                timed(lambda s=shards, q=some, t=truth: bt.scale.profile(q, s, t), cold=True)
                for _ in range(3 if size == MILLION else 1)
            )
            measured.append(bt.scale.Measurement(size, 64, n_queries, shard_size, seconds))
        rmtree(folder / f"plan-{i}")
    costs = bt.scale.Costs.fitted(measured, bt.scale.COSTS)
    known = folder / "evaluated"
    largest = float(known.read_text()) if known.exists() else float("nan")
    measured.append(bt.scale.Measurement(n, 64, N_QUERIES, MILLION, largest))
    for one in measured:
        said = bt.scale.plan(
            one.n, 64, one.n_queries, shard_size=one.shard_size, costs=costs
        ).processor_seconds
        error = abs(said / one.seconds - 1)
        bound = Target(error, at_most=0.2) if one is measured[-1] else error
        row = f"{one.n:,}", one.n_queries, f"{one.shard_size:,}", one.seconds, said, bound
        section.row(*row)
    section.note(
        f"Costs, in nanoseconds of one core: {1e9 * costs.pair:.3g} for a pair of 64 bits, "
        f"{1e9 * costs.item:.3g} for an item, {1e9 * costs.task:.3g} for a task, "
        f"{1e9 * costs.cell:.3g} for a cell of a profile. The last row is no part of the fit; its "
        "time is that of the evaluation above."
    )
    return section


def larger(_: int, __: Path) -> Section:
    """What the model says of 10⁹ and 10¹⁰ items; nothing is measured."""
    section = Section(
        f"Larger databases, {N_QUERIES:,} queries and 64 bits, as planned",
        (
            "items",
            "of a shard",
            "cores",
            "elapsed, s",
            "processor, h",
            "sending and adding up, s",
            "disk, GB",
            "GB per core",
        ),
    )
    for n, machines in ((10**9, 1), (10**9, 10), (10**10, 10), (10**10, 100)):
        for shard_size in (MILLION, 10 * MILLION):
            said = bt.scale.plan(n, 64, N_QUERIES, machines, cores=8, shard_size=shard_size)
            section.row(
                f"{n:.0e}".replace("e+", "e"),
                f"{shard_size:.0e}".replace("e+", "e"),
                f"{machines} × 8",
                said.seconds,
                said.processor_seconds / 3600,
                said.driver_seconds,
                said.disk / 1e9,
                said.worker_memory / 1e9,
            )
    return section


def pieces(n: int, folder: Path) -> Section:
    """The same codes in shards and in one piece."""
    size = min(n, 10 * MILLION)
    section = Section(
        f"Shards against one piece: {N_QUERIES:,} queries, {size:,} codes of 64 bits",
        (
            "in one piece, s",
            "in shards of a million, s",
            "cost of shards",
            "first time, with checksums, s",
            "cost with checksums",
        ),
    )
    queries, labels, shards = made(folder / "pieces", size)
    whole = bt.Codes(np.concatenate([shard.codes.words for shard in shards]), 64)
    classes = np.concatenate([shard.labels for shard in shards])
    truth = bt.scale.Classes(labels)
    warm_up(queries, labels)
    calls: list[Callable[[], object]] = [
        lambda: bt.TieProfile.from_codes(
            queries, whole, bt.Relevance.from_classes(labels, classes)
        ),
        lambda: bt.scale.profile(queries, shards, truth),
    ]
    cold = [timed(calls[1], cold=True) for _ in range(2)]
    times = [min(timed(call) for _ in range(2)) for call in calls]
    cost = Target(times[1] / times[0] - 1, at_most=0.05)
    section.row(*times, cost, min(cold), min(cold) / times[0] - 1)
    section.note("A process compares the checksums of a file once; the piece in memory has none.")
    return section


def dask(n: int, folder: Path) -> Section:
    """One worker of one thread: a task for each shard, against all shards in one go."""
    size = min(n, 30 * MILLION)
    section = Section(
        f"Dask: {N_QUERIES:,} queries, {size:,} codes of 64 bits in shards of a million",
        (
            "the worker's settings",
            "in one go, s",
            "task by task, s",
            "overhead",
            "of each start",
            "processor: in one go, s",
            "task by task, s",
            "sending and adding up, s",
            "scheduler, s",
            "idle worker, s a second",
        ),
    )
    queries, labels, shards = made(folder / "dask", size)
    truth, first = bt.scale.Classes(labels), made(folder / "first", MILLION)[2]
    for name, settings in (("Dask's own", {}), ("few chores", FEW_CHORES)):
        starts = np.array(
            [worker_rounds(settings, queries, shards, first, truth) for _ in range(STARTS)]
        )
        overheads = starts[:, 1] / starts[:, 0] - 1
        whole, apart, *processor = starts.mean(axis=0)
        section.row(
            name,
            whole,
            apart,
            Target(float(overheads.mean()), at_most=0.03),
            " ".join(f"{one:.3f}" for one in overheads),
            *processor,
        )
    section.note(
        "The same worker counts all shards in one go, without Dask taking part, and task by task "
        "for this process, which adds up; the first columns are time as it passes. Means of "
        f"{STARTS} workers, of each the least of {ROUNDS} rounds that take turns, with checksums. "
        "Processor time is that of the worker; of this process and of the scheduler it stands "
        "beside it, and passes meanwhile if there is a core for it. Few chores: "
        + ", ".join(f"`{key}={value}`" for key, value in FEW_CHORES.items())
        + "."
    )
    counted = bt.scale.profile(queries, first, truth)
    adding = min(timed(lambda: [counted + counted for _ in range(100)]) for _ in range(3)) / 100
    section.note(
        f"To add up the {counted.counts.size:,} cells of a shard takes {1e3 * adding:.2g} ms, "
        f"{1e9 * adding / counted.counts.size:.2g} ns each."
    )
    return section


def worker_rounds(
    settings: dict[str, str], queries: bt.Codes, shards: Any, first: Any, truth: Any
) -> list[float]:
    """Seconds of one worker: in one go, task by task; then processor seconds, and when idle."""
    with one_worker(settings) as address, connect(address) as executor:
        client = executor._client
        client.wait_for_workers(1, timeout=120)
        client.run(small.use_kernels)
        bt.scale.profile(queries, first, truth, executor=executor)  # loads and compiles
        start = used(client)
        time.sleep(IDLE)
        idle = (used(client) - start) / IDLE
        rounds = []
        for _ in range(ROUNDS):
            (whole,) = client.run(in_one_go, queries, shards, truth).values()
            client.run(shard_module._checksum.cache_clear)
            before, at_scheduler = used(client), client.run_on_scheduler(time.process_time)
            began = time.perf_counter()
            here = timed(lambda: bt.scale.profile(queries, shards, truth, executor=executor))
            took = time.perf_counter() - began
            there = used(client) - before
            at_scheduler = client.run_on_scheduler(time.process_time) - at_scheduler
            rounds.append((whole[0], took, whole[1], there, here, at_scheduler))
    return [*np.min(rounds, axis=0), idle]


def used(client: Any) -> float:
    """Processor seconds of all workers since they began."""
    return sum(client.run(time.process_time).values())


def multi(n: int, folder: Path) -> Section:
    """A multi-index of clustered codes: built, saved, mapped, and against FAISS's scan."""
    section = Section(
        f"MultiIndex of {n:,} clustered codes of 64 bits, k = 10, one thread",
        ("what", "value"),
    )
    path = folder / "multi.index"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        built, peak, n_bytes = pool.submit(build_multi, n, path).result()
    section.row("processor seconds to build and save", built)
    section.row("GiB of memory at the peak, codes and file included", Target(peak / GIB, None, 12))
    section.row("GiB of the file", n_bytes / GIB)
    database, queries = clustered(n)
    opened: list[bt.MultiIndex] = []
    took = min(timed(lambda: opened.append(bt.MultiIndex.load(path, mmap=True))) for _ in range(2))
    section.row("processor seconds to open it, mapped", Target(took, at_most=1))
    index = opened[-1]
    index.search(queries[:50], 10, n_threads=1)
    of_query = timed(lambda: index.search(queries, 10, n_threads=1)) / len(queries)
    section.row("milliseconds of a query", 1e3 * of_query)
    flat, exact = faiss_flat(database, queries[:FLAT_QUERIES])
    found = index.search(queries[:FLAT_QUERIES], 10, n_threads=1).distances
    assert np.array_equal(found, exact), "MultiIndex is not exact"
    section.row("milliseconds of a query, FAISS IndexBinaryFlat", 1e3 * flat)
    section.row("× FAISS", Target(flat / of_query, at_least=300))
    section.note(
        f"Clustered: {CENTRES:,} random codes, and items that differ from one of them in each bit "
        f"with probability 1/{1 << NEAR}; so do the queries ({MULTI_QUERIES:,} for ours, of which "
        f"FAISS answers {FLAT_QUERIES}, with the same distances). The file is in the system's "
        "cache when it is opened."
    )
    path.unlink()
    return section


def build_multi(n: int, path: Path) -> tuple[float, float, int]:
    """Processor seconds to build and save, the peak of memory, and bytes of the file."""
    codes, queries = clustered(n)
    began = time.process_time()
    index = bt.MultiIndex(codes)
    index.search(queries, 10, n_threads=1)  # builds the tables
    index.save(path)
    took = time.process_time() - began
    return took, status("VmHWM"), path.stat().st_size


def processes(n: int, folder: Path) -> Section:
    """One process against two, by elapsed time."""
    size = min(n, 30 * MILLION)
    section = Section(
        f"Processes: {N_QUERIES:,} queries, {size:,} codes of 64 bits, elapsed time",
        ("one process, s", "two processes, s", "ratio"),
    )
    queries, labels, shards = made(folder / "processes", size)
    truth, times = bt.scale.Classes(labels), []
    for n_processes in (1, 2):
        with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
            bt.scale.profile(queries, shards, truth, executor=pool)  # loads and checks
            began = time.perf_counter()
            bt.scale.profile(queries, shards, truth, executor=pool)
            times.append(time.perf_counter() - began)
    section.row(*times, Target(times[0] / times[1], at_least=1.8))
    return section


PARTS: dict[str, Callable[[int, Path], Section]] = {
    "evaluate": evaluate,
    "plan": plan,
    "larger": larger,
    "pieces": pieces,
    "dask": dask,
    "multi": multi,
    "processes": processes,
}


def made(
    folder: Path, n: int, shard_size: int = MILLION
) -> tuple[bt.Codes, np.ndarray, bt.scale.Shards]:
    """Queries, their classes, and random codes with classes in shards."""
    rng = np.random.default_rng(n)
    words = rng.integers(0, 1 << 64, (n, 1), dtype=np.uint64)
    labels = rng.integers(0, N_CLASSES, n)
    shards = bt.scale.Shards.create(
        folder, bt.Codes(words, 64), labels=labels, shard_size=shard_size
    )
    queries = rng.integers(0, 1 << 64, (N_QUERIES, 1), dtype=np.uint64)
    return bt.Codes(queries, 64), rng.integers(0, N_CLASSES, N_QUERIES), shards


def clustered(n: int) -> tuple[bt.Codes, bt.Codes]:
    """Codes near random centres, and queries of the same kind."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 1 << 64, CENTRES, dtype=np.uint64)

    def near(size: int) -> np.ndarray:
        flips = rng.integers(0, 1 << 64, size, dtype=np.uint64)
        for _ in range(NEAR - 1):  # a bit is set in all with probability 2^-NEAR
            flips &= rng.integers(0, 1 << 64, size, dtype=np.uint64)
        return centres[rng.integers(0, CENTRES, size)] ^ flips

    words = np.empty((n, 1), np.uint64)
    for start in range(0, n, MILLION):
        words[start : start + MILLION, 0] = near(min(MILLION, n - start))
    return bt.Codes(words, 64), bt.Codes(near(MULTI_QUERIES)[:, None], 64)


def faiss_flat(database: bt.Codes, queries: bt.Codes) -> tuple[float, np.ndarray]:
    """Processor seconds of a query by FAISS's scan, and the distances it finds."""
    import faiss

    faiss.omp_set_num_threads(1)
    flat = faiss.IndexBinaryFlat(64)
    flat.add(database.words.view(np.uint8))  # bits in another order, distances the same
    octets, found = queries.words.view(np.uint8), []
    took = timed(lambda: found.append(flat.search(octets, 10)[0]))
    return took / len(queries), found[0]


def warm_up(queries: bt.Codes, labels: np.ndarray) -> None:
    """Compile and load what counts."""
    small.use_kernels()
    rng = np.random.default_rng(1)
    some = bt.Codes(rng.integers(0, 1 << 64, (300_000, 1), dtype=np.uint64), 64)
    truth = bt.Relevance.from_classes(labels[:12], rng.integers(0, N_CLASSES, len(some)))
    bt.evaluate(bt.TieProfile.from_codes(queries[:12], some, truth, n_threads=1), ["ap", "ndcg"])


def timed(call: Callable[[], object], *, cold: bool = False) -> float:
    """Processor seconds of a call; ``cold`` lets it compare checksums again."""
    if cold:
        shard_module._checksum.cache_clear()
    began = time.process_time()
    call()
    return time.process_time() - began


@contextmanager
def peak_of_own_memory() -> Iterator[list[float]]:
    """The largest growth of memory that is not of mapped files, in bytes; sampled."""
    peak, before, is_over = [0.0], status("RssAnon"), threading.Event()

    def watch() -> None:
        while not is_over.wait(SAMPLED):
            peak[0] = max(peak[0], status("RssAnon") - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        is_over.set()
        watcher.join()


def status(name: str) -> float:
    """Memory of this process in bytes, as Linux reports it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(name))


@contextmanager
def one_worker(settings: dict[str, str]) -> Iterator[str]:
    """The address of a scheduler with one worker of one thread, in processes of their own."""
    begin = [sys.executable, "-m", "dask"]
    words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen([*begin, *words], stderr=subprocess.PIPE, text=True)
    assert scheduler.stderr is not None
    found = next(
        match[1]
        for line in scheduler.stderr
        if (match := re.search(r"Scheduler at:\s+(tcp://127\.0\.0\.1:\d+)", line))
    )
    threading.Thread(target=scheduler.stderr.read, daemon=True).start()
    words = ["worker", found, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    worker = subprocess.Popen(
        [*begin, *words, "--host", "127.0.0.1"],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)} | settings,
    )
    try:
        yield found
    finally:
        for process in (worker, scheduler):
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    main()
