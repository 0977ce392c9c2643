"""Hash functions trained by gradients: six experiments, each one command.

    python benchmarks/quality_deep.py table1    # CIFAR-10 network features: Table 1 and Figure 2
    python benchmarks/quality_deep.py steps     # what improves talr on these features
    python benchmarks/quality_deep.py pixels    # end to end from CIFAR-10 and Fashion-MNIST pixels
    python benchmarks/quality_deep.py end-to-end  # talr, dtsh and dpsh alike, both settings
    python benchmarks/quality_deep.py graded    # NDCG on Corel-5K and on graded balls over GIST
    python benchmarks/quality_deep.py ablation  # form, bins, batch, α

with ``--root DATA`` (for pixels, end-to-end and steps also ``--pixels FOLDER`` with the batches of
CIFAR-10 and the files of Fashion-MNIST), ``--write docs/results/hashing.md`` and ``--figures
docs/images``.
Every finished cell is stored under ``build/quality_deep``, so a stopped run resumes; a cell of
``pixels`` and of ``end-to-end`` resumes within its training.

``table1`` chooses the hyper-parameters of dpsh, dtsh and talr from grids of one size, on a held-out
fifth of the training rows of run 0; it looks at no query and no other row.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from deep.ablation import ablation
from deep.end_to_end import end_to_end
from deep.graded import graded
from deep.pixels import pixels
from deep.scores import RUNS
from deep.steps import steps
from deep.table1 import table1
from results import Section

EXPERIMENTS: dict[str, Callable[[argparse.Namespace], list[Section]]] = {
    "table1": table1,
    "steps": steps,
    "pixels": pixels,
    "end-to-end": end_to_end,
    "graded": graded,
    "ablation": ablation,
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
    parser.add_argument("--figures", type=Path, help="draw into this folder")
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
