"""All pairs within a radius: one thread each, in one run, against FAISS, pynear and imagededup.

    python benchmarks/duplicates.py [--sizes 1e5,1e6] [--radii 3,8] [--pdq 1e6]

Codes are clustered: half are random, and the others are copies of them with up to eight bits
flipped (PDQ's 256 bits: up to 31).  Times are of the processor, so that other work on the machine
does not count.  FAISS, pynear and imagededup answer a part of the queries, and their time is
multiplied to all of them; the number of queries is printed.  PDQ codes are found within radius 31.
pynear and imagededup are left out if they are not installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec

import faiss
import numpy as np

import bittern as bt
from bittern.kernels import small

PDQ_BITS, PDQ_RADIUS = 256, 31
WORK = 2e10  # comparisons that another library may make, in each measurement


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1e5,1e6", help="numbers of 64-bit codes")
    parser.add_argument("--radii", default="3,8")
    parser.add_argument("--pdq", default="0", help="number of codes of 256 bits")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    small.use_kernels()
    bt.index.pairs_within(clustered(2000, 64, 8), 3, n_threads=1)  # compiles
    for size in options.sizes.split(","):
        codes = clustered(int(float(size)), 64, 8)
        for radius in map(int, options.radii.split(",")):
            measure(codes, radius)
    if n := int(float(options.pdq)):
        codes = clustered(n, PDQ_BITS, PDQ_RADIUS)
        bt.index.pairs_within(codes[:2000], 3, n_threads=1)
        measure(codes, PDQ_RADIUS)


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


def measure(codes: bt.Codes, radius: int) -> None:
    """Print the time of each library, and how many times ours it is."""
    began = time.process_time()
    pairs = bt.index.pairs_within(codes, radius, n_threads=1)
    ours = time.process_time() - began
    print(f"{len(codes):,} codes of {codes.n_bits} bits, radius {radius}: {len(pairs):,} pairs")
    print(f"  Bittern              {ours:10.2f} s")
    for name, search in others(codes).items():
        n = min(len(codes), max(2, int(WORK / SLOWER.get(name, 1) / len(codes))))
        began = time.process_time()
        found = search(n, radius)
        seconds = (time.process_time() - began) * len(codes) / n
        want = np.bincount(pairs.first, minlength=len(codes)) + np.bincount(
            pairs.second, minlength=len(codes)
        )
        assert found == want[:n].sum() + n, (name, found, want[:n].sum() + n)
        part = "all queries" if n == len(codes) else f"from {n:,} queries"
        print(f"  {name:<20} {seconds:10.2f} s   {seconds / ours:8,.0f} ×   ({part})", flush=True)


SLOWER = {"pynear": 5, "imagededup": 10_000}  # fewer comparisons in the same time


def others(codes: bt.Codes) -> dict[str, Callable[[int, int], int]]:
    """Searches by other libraries: the first n codes within a radius, giving the number of hits.

    Indexes are built outside the measured time, in favour of the others.
    """
    packed = codes.to_packed()
    index = faiss.IndexBinaryFlat(codes.n_bits)
    index.add(packed)
    searches: dict[str, Callable[[int, int], int]] = {
        "FAISS Flat": lambda n, r: int(index.range_search(packed[:n], r + 1)[0][-1])
    }
    if find_spec("pynear") is not None:
        import pynear

        tree = getattr(pynear, f"BKTreeBinaryIndex{codes.n_bits}")()
        tree.set(packed)
        searches["pynear"] = lambda n, r: sum(map(len, tree.find_threshold(packed[:n], r)[0]))
    if find_spec("imagededup") is not None and codes.n_bits == 64:
        from imagededup.handlers.search.brute_force_cython import BruteForceCython

        listed = {str(i): row.tobytes().hex() for i, row in enumerate(packed)}
        brute = BruteForceCython(listed, None)
        searches["imagededup"] = lambda n, r: sum(
            len(brute.search(listed[str(i)], r)) for i in range(n)
        )
    return searches


if __name__ == "__main__":
    main()
