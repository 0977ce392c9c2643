"""All pairs within a radius: one thread each, against FAISS, pynear and imagededup.

    python benchmarks/duplicates.py [--write docs/results/speed.md] [--keep FILE]

Codes are clustered: half are random, and the others are copies of them with up to eight bits
flipped (PDQ's 256 bits: up to 31).  Every measurement has a process of its own with one thread.
Times are of the processor, so that other work on the machine counts little.  The others build their
indexes outside the measured time, and answer every code as a query.  If that would take more than
a minute, by the first queries, they answer as many as five seconds allow, and the time is scaled
to all of them; such times have a ≈.  The pairs of all libraries must be equally many, those of a
share of the queries as many as our scan finds.  pynear and imagededup are left out if they are
not installed.  With ``--keep``, measurements are kept in a file, and a later run makes only those
that lack, or none with ``--kept-only``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from results import Section, Target

import bittern as bt
from bittern.kernels import small

PDQ_BITS, PDQ_RADIUS = 256, 31
LIMIT = 600.0  # seconds that 10⁷ codes may take us
WHOLE = 60.0  # seconds of a measurement; what would take longer answers a share of the queries
SHARE = 5.0  # seconds that the share takes
PATIENCE = 1800.0  # seconds of a process, with the building of its index
FEW = 20  # queries that a measurement's time is judged by before it begins
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "BITTERN_THREADS"), "1"
)
OURS, FLAT = "Bittern", "FAISS Flat"
#: Segments, bits of each and flips of FAISS's multi-hash that make it exact: segments × (flips + 1)
#: must exceed the radius.
EXACT_HASHES = {3: (4, 16, 0), 8: (3, 21, 2), PDQ_RADIUS: (16, 16, 1)}


@dataclass(frozen=True)
class Case:
    """A library that joins so many codes within a radius."""

    library: str
    n: int
    n_bits: int
    radius: int


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1e4,1e5,1e6,1e7", help="numbers of 64-bit codes")
    parser.add_argument("--radii", default="3,8")
    parser.add_argument("--pdq", default="1e6", help="number of codes of 256 bits, or 0")
    parser.add_argument("--libraries", help="names, separated by commas; default: all installed")
    parser.add_argument("--keep", type=Path, help="file of measurements, one JSON object a line")
    parser.add_argument("--kept-only", action="store_true", help="measure nothing")
    parser.add_argument("--write", type=Path, help="also write the table into this Markdown file")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(Case(**json.loads(options.case)))))
        return
    named = options.libraries.split(",") if options.libraries else installed()
    tasks = [
        (int(float(size)), 64, int(radius))
        for size in options.sizes.split(",")
        for radius in options.radii.split(",")
    ]
    if n := int(float(options.pdq)):
        tasks.append((n, PDQ_BITS, PDQ_RADIUS))
    cases = [
        Case(library, *task)
        for task in sorted(tasks, key=lambda one: one[0])
        for library in named
        if library != "imagededup" or task[1] == 64  # it has 64-bit integers
    ]
    section = table(tasks, named, found_in([] if options.kept_only else cases, options.keep))
    print(section.text())
    if options.write:
        Section.write(options.write, "duplicates", "python benchmarks/duplicates.py", [section])
    sys.exit(0 if section.holds else 1)


def installed() -> list[str]:
    """Libraries that are there; ours first, because the others' pairs are compared with ours."""
    others = {"pynear": "pynear", "imagededup": "imagededup"}
    return [OURS, "FAISS hash", FLAT, *(name for name in others if find_spec(others[name]))]


def found_in(cases: Iterable[Case], keep: Path | None) -> dict[Case, dict[str, Any]]:
    """Measurements of the cases: those that are kept, and the others now, each in its process."""
    known: dict[Case, dict[str, Any]] = {}
    if keep is not None and keep.exists():
        for line in keep.read_text().splitlines():
            entry = json.loads(line)
            known[Case(**entry["case"])] = entry["found"]
    for case in cases:
        if case not in known:
            known[case] = in_process(case)
            print(case, known[case], file=sys.stderr, flush=True)
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps({"case": asdict(case), "found": known[case]}) + "\n")
    return known


def in_process(case: Case) -> dict[str, Any]:
    """The measurement of a case in a new process."""
    command = [sys.executable, __file__, "--case", json.dumps(asdict(case))]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "check": True}
    try:
        done = subprocess.run(command, timeout=PATIENCE, env={**os.environ, **ONE_THREAD}, **how)
    except subprocess.TimeoutExpired:
        return {"left_out": True}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(case: Case) -> dict[str, Any]:
    """Seconds of the processor, pairs and the process's largest memory.

    A library that is too slow for all queries has the pairs of some, and says how many these are.
    """
    codes = clustered(case.n, case.n_bits, PDQ_RADIUS if case.n_bits == PDQ_BITS else 8)
    search = SEARCHES[case.library](codes, case.radius)
    few, asked = min(FEW, case.n), case.n
    small.use_kernels()
    if case.library == OURS:
        bt.index.pairs_within(codes[:2000], case.radius, n_threads=1)  # compiles
    else:
        each = timed(search, few)[0] / few
        if each * case.n > WHOLE:
            asked = min(case.n, max(few, int(SHARE / each)))
    seconds, hits = timed(search, asked)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    found = {"seconds": seconds * case.n / asked, "gigabytes": peak, "queries": asked}
    if asked < case.n:
        true = len(bt.FlatIndex(codes).within(codes[:asked], case.radius).ids)
        assert hits == true, (case, hits, true)
        return found
    return {**found, "pairs": hits if case.library == OURS else (hits - case.n) // 2}


def timed(search: Callable[[int], int], n: int) -> tuple[float, int]:
    """Seconds of the processor, and what was found."""
    began = time.process_time()
    found = search(n)
    return time.process_time() - began, found


def clustered(n: int, n_bits: int, most_flips: int) -> bt.Codes:
    """Random codes, and as many copies of them with up to ``most_flips`` bits flipped."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 64, (n, n_bits // 64), dtype=np.uint64)
    copies, sources = np.arange(n // 2, n), rng.integers(n // 2, size=n - n // 2)
    words[copies] = words[sources]
    n_flips = rng.integers(most_flips + 1, size=len(copies))
    for flip in range(most_flips):
        rows = copies[n_flips > flip]
        bits = rng.integers(n_bits, size=len(rows))
        words[rows, bits // 64] ^= np.uint64(1) << (bits % 64).astype(np.uint64)
    return bt.Codes(np.ascontiguousarray(words[rng.permutation(n)]), n_bits)


def bittern_join(codes: bt.Codes, radius: int) -> Callable[[int], int]:
    """Our join; it takes all codes."""
    return lambda n: len(bt.index.pairs_within(codes, radius, n_threads=1))


def faiss_flat(codes: bt.Codes, radius: int) -> Callable[[int], int]:
    """Range search that compares everything."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(codes.n_bits)
    return _faiss_search(index, codes, radius)


def faiss_hash(codes: bt.Codes, radius: int) -> Callable[[int], int]:
    """Range search by several hash tables, with as many flips as make it exact."""
    import faiss

    faiss.omp_set_num_threads(1)
    n_segments, n_bits, n_flips = EXACT_HASHES[radius]
    index = faiss.IndexBinaryMultiHash(codes.n_bits, n_segments, n_bits)
    index.nflip = n_flips
    return _faiss_search(index, codes, radius)


def _faiss_search(index: Any, codes: bt.Codes, radius: int) -> Callable[[int], int]:
    packed = codes.to_packed()
    index.add(packed)
    # Within a radius means below the next whole number; each code also finds itself.
    return lambda n: int(index.range_search(packed[:n], radius + 1)[0][-1])


def pynear_tree(codes: bt.Codes, radius: int) -> Callable[[int], int]:
    """A BK-tree."""
    import pynear

    packed = codes.to_packed()
    tree = getattr(pynear, f"BKTreeBinaryIndex{codes.n_bits}")()
    tree.set(packed)
    return lambda n: sum(map(len, tree.find_threshold(packed[:n], radius)[0]))


def imagededup_search(codes: bt.Codes, radius: int) -> Callable[[int], int]:
    """The search that imagededup uses on Linux: everything is compared, in Cython."""
    from imagededup.handlers.search.brute_force_cython import BruteForceCython

    listed = {str(i): row.tobytes().hex() for i, row in enumerate(codes.to_packed())}
    brute = BruteForceCython(listed, None)
    return lambda n: sum(len(brute.search(listed[str(i)], radius)) for i in range(n))


SEARCHES: dict[str, Callable[[bt.Codes, int], Callable[[int], int]]] = {
    OURS: bittern_join,
    "FAISS hash": faiss_hash,
    FLAT: faiss_flat,
    "pynear": pynear_tree,
    "imagededup": imagededup_search,
}


def table(
    tasks: list[tuple[int, int, int]], named: list[str], known: dict[Case, dict[str, Any]]
) -> Section:
    """A row for each task: our time and memory, and how many times as long the others take."""
    section = Section(
        "All pairs within a radius: clustered codes, processor seconds, one thread",
        ("codes", "bits", "radius", "pairs", "Bittern, s", "GB", *(f"{n}, s" for n in named[1:])),
    )
    for task in tasks:
        ours = known[Case(OURS, *task)]
        cells: list[object] = []
        for library in named[1:]:
            found = known.get(Case(library, *task), {})
            if "seconds" not in found:
                cells.append("not built" if found else "not run")
                continue
            is_whole = "pairs" in found
            assert not is_whole or found["pairs"] == ours["pairs"], (library, task, found, ours)
            times = found["seconds"] / ours["seconds"]
            is_goal = library == FLAT and task == (10**6, 64, 3)
            ratio = Target(times, at_least=50) if is_goal else _short(times)
            cells.append(f"{'' if is_whole else '≈ '}{_short(found['seconds'])}, {ratio} ×")
            section.holds &= not is_goal or times >= 50
        n, n_bits, radius = task
        most = LIMIT if n == 10**7 else None
        section.row(
            f"{n:,}",
            n_bits,
            radius,
            f"{ours['pairs']:,}",
            Target(ours["seconds"], at_most=most),
            Target(ours["gigabytes"], at_most=8),
            *cells,
        )
    section.note(
        "“FAISS hash” is `IndexBinaryMultiHash` with as many flips as make it exact; its indexes "
        "and all others are built outside the measured time. A time with ≈ is scaled: all queries "
        f"would take more than a minute, so as many were asked as about {SHARE:.0f} seconds allow. "
        "GB is the largest memory of the whole process. imagededup takes no codes of 256 bits; "
        f"“not built”: within {PATIENCE / 60:.0f} minutes its process had not answered."
    )
    return section


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    main()
