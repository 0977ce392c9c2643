"""The papers' tables and figures: run what is lacking, and write them into docs/results.md.

    python benchmarks/reproduce.py [NAME …] [--root DATA] [--out results] [--jobs 2]
        [--write docs/results.md] [--only run=0] [--no-run]

Every shipped protocol by default, the quick ones first; stopped and started again, it goes on.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from results import Section

from bittern.analysis import compare_experiments
from bittern.cli.experimenting import Plan, write_reports
from bittern.experiments import Protocol, Records
from bittern.experiments.processes import Failed
from bittern.experiments.shipped import shipped
from bittern.report import differences_to_markdown, to_markdown, to_svg

IMAGES = ("parameter", "bits", "methods")  # the first that the records have
FIGURES = {  # what the paper draws, where it is not quality against length
    "methodology-figure-3-8": ("curves",),
    "methodology-tables": ("tables",),
    "ties-figure-1": ("ties",),
    "ties-figure-2": ("ties",),
}


SPLITS = ("methodology-standard-split", "methodology-improved-split")
AGAINST = "Methodology: what a database that was seen in training is worth"


class Lines:
    """Says each cell that ends, in a line."""

    def begin(self, cells, n_known):
        """How much there is to do."""
        self.n_cells, self.n_done = len(cells), 0
        print(f"  {n_known} cells known, {len(cells)} to measure", flush=True)

    def tell(self, outcome):
        """One is done."""
        self.n_done += 1
        said = outcome.reason if isinstance(outcome, Failed) else f"{outcome.value:.4f}"
        print(f"  {self.n_done}/{self.n_cells} {outcome.cell.name}: {said}", flush=True)


class Written(Section):
    """A section that is Markdown already."""

    def text(self) -> str:
        """The Markdown."""
        return self.title


def main() -> None:
    """Run, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="protocols; all of the papers' by default")
    parser.add_argument("--root", type=Path, help="folder of the data (else BITTERN_DATA)")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--no-run", action="store_true", help="only write what is recorded")
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    options = parser.parse_args()
    names = options.names or sorted(set(shipped()) - {"demo"}, key=minutes)
    for name in names if not options.no_run else []:
        plan = Plan.of(name, options.out / name)
        print(f"{name}: {plan.protocol.takes}", flush=True)
        plan.run(root=options.root, jobs=options.jobs, wanted=options.only, watcher=Lines())
        write_reports(plan.folder, html=plan.folder / "report.html")
    if options.write:
        write(options.write, options.out)


def minutes(name: str) -> float:
    """How long a protocol says it takes."""
    found = re.search(r"(\d+) (minute|hour)", Protocol.load(shipped()[name]).takes)
    return 0 if found is None else int(found[1]) * (60 if found[2] == "hour" else 1)


def write(path: Path, out: Path) -> None:
    """Put what is recorded between this benchmark's marks."""
    there = [name for name in shipped() if (out / name / "protocol.toml").exists()]
    found = {name: Records.read(out / name) for name in there if name != "demo"}
    sections = [
        Written(section(name, records, path.parent), ())
        for name, records in found.items()
        if len(records)
    ]
    if set(SPLITS) <= found.keys():
        differences = compare_experiments(*(found[name] for name in SPLITS))
        sections.append(Written(differences_to_markdown(differences, level=3, heading=AGAINST), ()))
    command = "python benchmarks/reproduce.py --write docs/results.md"
    Section.write(path, "reproduce", command, list(sections))


def section(name: str, records: Records, docs: Path) -> str:
    """The protocol's section, with its image beside the page."""
    drawn = next((svg for one in FIGURES.get(name, IMAGES) if (svg := to_svg(records, one))), None)
    place = Path("images") / "results" / f"{name}.svg"
    if drawn:
        (docs / place).parent.mkdir(parents=True, exist_ok=True)
        (docs / place).write_text(drawn, encoding="utf-8")
    return to_markdown(
        records,
        level=3,
        command=f"bittern reproduce {name}",
        images=[place.as_posix()] if drawn else [],
    )


if __name__ == "__main__":
    main()
