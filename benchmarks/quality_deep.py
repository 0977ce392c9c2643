"""What hash functions trained by gradients reach from pixels: three experiments, one command each.

    python benchmarks/quality_deep.py steps     # what improves talr on network features
    python benchmarks/quality_deep.py pixels    # end to end from CIFAR-10 and Fashion-MNIST pixels
    python benchmarks/quality_deep.py end-to-end  # talr, dtsh and dpsh alike, both settings

with ``--root DATA``, ``--pixels FOLDER`` (the batches of CIFAR-10 and the files of Fashion-MNIST)
and ``--write docs/results/hashing.md``.  On network features, the methods are compared by
the protocols whose names begin with ``ties-``.
Every finished cell is stored under ``build/quality_deep``, so a stopped run resumes; a cell of
``pixels`` and of ``end-to-end`` resumes within its training.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from deep.end_to_end import end_to_end
from deep.pixels import pixels
from deep.scores import RUNS
from deep.steps import steps
from results import Section

EXPERIMENTS: dict[str, Callable[[argparse.Namespace], list[Section]]] = {
    "steps": steps,
    "pixels": pixels,
    "end-to-end": end_to_end,
}


def main() -> None:
    """Run one experiment and write its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--pixels", type=Path, help="folder of CIFAR-10 and Fashion-MNIST")
    parser.add_argument("--cells", type=Path, default=Path("build/quality_deep"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="0 measures nothing")
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS, choices=RUNS)
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    options = parser.parse_args()
    sections = EXPERIMENTS[options.experiment](options)
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        command = f"python benchmarks/quality_deep.py {options.experiment}"
        Section.write(options.write, f"deep-{options.experiment}", command, sections)
    raise SystemExit(0 if all(section.holds for section in sections) else 1)


if __name__ == "__main__":
    main()
