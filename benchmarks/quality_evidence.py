"""Combining evidence: the evidence paper's tables and figure on Corel-5K, and beyond them.

    python benchmarks/quality_evidence.py [--root DATA] [--write docs/results.md]
        [--figures docs/images] [--runs 3]

Features are computed once and kept under ``build/quality_evidence``.  k and the number of negative
examples are chosen on training queries of run 0; weights are learned on the training partition.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from evidence.corel import choose, corel
from evidence.topics import topics
from evidence.vectors import picture_vectors
from results import Section

import bittern as bt
from bittern.features import NINE


def main() -> None:
    """Measure, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, help="folder of the data (else BITTERN_DATA)")
    parser.add_argument("--cells", type=Path, default=Path("build/quality_evidence"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    parser.add_argument("--figures", type=Path, help="draw into this folder")
    options = parser.parse_args()
    dataset = bt.load("corel5k", options.root)
    vectors = picture_vectors(dataset, (*NINE, "deep"), options.cells)
    settings, chosen = choose(dataset, vectors)
    sections = [chosen]
    sections += corel(dataset, vectors, settings, range(options.runs), options.figures)
    sections += topics(dataset, vectors, settings, range(options.runs))
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        command = f"python benchmarks/quality_evidence.py --runs {options.runs}"
        Section.write(options.write, "evidence", command, sections)


if __name__ == "__main__":
    main()
