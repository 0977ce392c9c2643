"""Start: processor time of commands in new processes, with and without compiled code.

    python benchmarks/start.py [--write docs/results/speed.md]

Times are user and system time of the process on one thread, the best of several, so that a busy
machine changes them little.  The first uses have an empty folder for compiled code, and are timed
once.  Everything takes about a minute.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from results import Section, Target

import bittern as bt

ROUNDS = 3
COMMAND = "from bittern.cli import main; main()"
COMPILE = "from bittern.kernels import small; small.use_kernels(); "
LISTS = ("data list", "features list", "reproduce", "index info c.bittern")
SEARCH = (
    "import sys, bittern as bt; q, d = map(bt.Codes.load, sys.argv[1:]); "
    "bt.MultiIndex(d).search(q, 10)"
)
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "BITTERN_THREADS"), "1"
)


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write the table into this Markdown file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        section = starting(Path(folder))
    print(section.text())
    if options.write:
        Section.write(options.write, "start", "python benchmarks/start.py", [section])
    sys.exit(0 if section.holds else 1)


def starting(folder: Path) -> Section:
    """Commands in new processes."""
    section = Section("Starting: processor seconds of a new process", ("what", "s"))
    prepare(folder)
    known, new = ({"NUMBA_CACHE_DIR": str(folder / name)} for name in ("known", "new"))
    python = cost("-c", "pass")
    section.row("Python alone", python)
    section.row("import bittern", Target(cost("-c", "import bittern"), at_most=0.3))
    section.row("bittern --help", Target(command(folder, "--help"), at_most=0.15))
    for words in LISTS:
        section.row(f"bittern {words}", Target(command(folder, *words.split()), at_most=0.5))
    for label, n, bound in (("small", "small", 0.6), ("large", "large", None)):
        words = "evaluate", "queries.npz", f"{n}.npz"
        first = command(folder, *words, rounds=1, **new)
        section.row(f"first {label} evaluation", Target(first, at_most=3))
        if n == "large":
            compiling = cost("-c", COMPILE + COMMAND, *words, folder=folder, rounds=1, **known)
            section.row("the same with its compiled code, which is compiled", compiling)
        second = command(folder, *words, **known)
        section.row(f"{label} evaluation in a later process", Target(second, at_most=bound))
    for n in ("small", "large"):
        words = "-c", SEARCH, "queries.npz", f"{n}.npz"
        first = cost(*words, folder=folder, rounds=1, **new)
        section.row(f"first {n} search", Target(first, at_most=3))
    compiling = cost("-c", COMPILE + SEARCH, *words[2:], folder=folder, rounds=1, **new)
    section.row("the same with its compiled code, which is compiled", compiling)
    section.note(
        "Evaluations and searches have 1,000 queries of 64 bits; small ones have 20,000 items, "
        "large ones 500,000. Small ones load no compiled code, nor do the first large ones, "
        "because NumPy is done before it would be compiled. Still larger ones compile it, unless "
        "`bittern warm-up` did."
    )
    return section


def prepare(folder: Path) -> None:
    """Files of codes with labels, and a collection."""
    rng = np.random.default_rng(0)
    for name, n in (("queries", 1000), ("small", 20_000), ("large", 500_000)):
        words = rng.integers(0, 2**64, (n, 1), dtype=np.uint64)
        labels = rng.integers(0, 10, n)
        np.savez(folder / f"{name}.npz", words=words, n_bits=64, labels=labels)
    with bt.store.create(folder / "c.bittern", 64) as made:
        made.add(bt.Codes(words[:1000], 64))


def command(folder: Path, *words: str, rounds: int = ROUNDS, **environment: str) -> float:
    """Processor seconds of a command of bittern."""
    return cost("-c", COMMAND, *words, folder=folder, rounds=rounds, **environment)


def cost(*words: str, folder: Path | None = None, rounds: int = ROUNDS, **more: str) -> float:
    """Processor seconds of a new interpreter with these arguments, the best of several."""
    environment = os.environ | ONE_THREAD | more
    return min(once(words, folder, environment) for _ in range(rounds))


def once(words: Sequence[str], folder: Path | None, environment: dict[str, str]) -> float:
    """Processor seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
