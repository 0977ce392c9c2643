"""Run the papers' protocols where cells are missing, and write docs/results from their records.

    python benchmarks/reproduce.py [NAME …] [--root DATA] [--out results] [--jobs 2]
        [--write docs/results] [--only run=0] [--no-run]

Runs every shipped protocol whose data is there by default, quick ones first. Stop it and start it
again: it resumes. --write replaces the sections of these protocols whose records are there, and
keeps all others. benchmarks/ground_truths.py writes the page about ground truths.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from results import Section

from bittern.analysis import analyse, compare_experiments
from bittern.cli.report import write_reports
from bittern.errors import FileError
from bittern.experiments import Protocol, Records, run
from bittern.experiments.measure import Failed
from bittern.io.protocol_files import find_protocol, shipped
from bittern.report import differences_to_markdown, to_markdown, to_svg

PAPERS = ("methodology", "ties", "evidence", "crossmodal", "duplicates")  # pages, as names begin
DEFAULT_FIGURES = ("tasks", "parameter", "bits", "methods")  # the first that the records have
FIGURES = {  # protocols whose paper draws something else
    "methodology-figure-3-8": ("curves",),
    "methodology-tables": ("tables",),
    "ties-figure-1": ("ties-boxes",),
    "ties-figure-2": ("ties",),
}
SPLITS = ("methodology-standard-split", "methodology-improved-split")
AGAINST = "Methodology: what a database seen in training is worth"
AREAS = "Methodology, section 3.6.5: where AUPRC and mAP differ"
VARIANTS = ("-digits", "-shapes")  # on data that everyone has


class Lines:
    """Prints a line for each finished cell."""

    def begin(self, cells, n_known):
        """Print how many cells there are."""
        self.n_cells, self.n_done = len(cells), 0
        print(f"  {n_known} cells done, {len(cells)} left", flush=True)

    def tell(self, outcome):
        """Print one finished cell."""
        self.n_done += 1
        said = outcome.reason if isinstance(outcome, Failed) else f"{outcome.value:.4f}"
        print(f"  {self.n_done}/{self.n_cells} {outcome.cell.name}: {said}", flush=True)


class Written(Section):
    """A section that is already Markdown."""

    def text(self) -> str:
        """Return the Markdown."""
        return self.title


def main() -> None:
    """Run the protocols and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="protocols (default: all of the papers')")
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--no-run", action="store_true", help="write the pages, measure nothing")
    parser.add_argument("--write", type=Path, help="write the pages into this folder")
    options = parser.parse_args()
    of_papers = [name for name in shipped() if name != "demo" and not name.endswith(VARIANTS)]
    names = options.names or sorted(of_papers, key=minutes)
    for name in names if not options.no_run else []:
        path, folder = find_protocol(name), options.out / name
        print(f"{name}: {Protocol.load(path).takes}", flush=True)
        chosen = dict(root=options.root, jobs=options.jobs, wanted=options.only)
        try:
            run(path, folder, watcher=Lines(), **chosen)
        except FileError as error:
            if options.names:
                raise
            print(f"  skipped: {error}", flush=True)
            continue
        write_reports(folder, html=folder / "report.html")
    if options.write:
        write(options.write, options.out, names, whole=not options.names)


def minutes(name: str) -> float:
    """Minutes that a protocol says it takes."""
    found = re.search(r"(\d+) (minute|hour)", Protocol.load(shipped()[name]).takes)
    return 0 if found is None else int(found[1]) * (60 if found[2] == "hour" else 1)


def write(folder: Path, out: Path, names: list[str], whole: bool) -> None:
    """Write a page for each paper: new sections from records in ``out``, and the old others.

    The comparison of AUPRC and mAP over all experiments is written only if the ``whole`` is.
    """
    recorded = [name for name in names if (out / name / "protocol.toml").exists()]
    read = {name: Records.read(out / name) for name in recorded}
    found = {name: records for name, records in read.items() if len(records)}
    for paper in PAPERS:
        path = folder / f"{paper}.md"
        new = {
            name: section(name, records, folder)
            for name, records in found.items()
            if name.startswith(paper)
        }
        if paper == "methodology" and set(SPLITS) <= found.keys():
            differences = compare_experiments(*(found[name] for name in SPLITS))
            new[AGAINST] = differences_to_markdown(differences, level=2, heading=AGAINST)
        if paper == "methodology" and whole and (compared := areas(found)).cells:
            new[AREAS] = compared.text().removeprefix("#")  # level 2
        if new:
            write_page(path, f"reproduce-{paper}", new)


def write_page(path: Path, mark: str, new: dict[str, str]) -> None:
    """Write the sections of a page in the order of the protocols; keep those that are not new."""
    old = old_sections(path.read_text(encoding="utf-8"), mark)
    others = [name for name in old | new if name not in shipped()]
    known = [name for name in (*shipped(), *others) if name in old or name in new]
    kept = [name for name in known if name not in new]
    texts = [new[name] if name in new else old[name] for name in known]
    if kept:
        texts.insert(0, f"Measured earlier, and kept: {', '.join(kept)}.")
    command = "python benchmarks/reproduce.py --write docs/results"
    Section.write(path, mark, command, [Written(text, ()) for text in texts])


def old_sections(page: str, mark: str) -> dict[str, str]:
    """The sections between the marks, by the protocol in their command or else by their title."""
    block = re.search(rf"<!-- begin {mark} -->(.*?)<!-- end {mark} -->", page, re.DOTALL)
    found = {}
    for text in re.split(r"^(?=## )", block[1] if block else "", flags=re.MULTILINE)[1:]:
        command = re.search(r"^bittern reproduce (\S+)$", text, re.MULTILINE)
        title = text.partition("\n")[0].removeprefix("## ")
        found[command[1] if command else title] = text.rstrip() + "\n"
    return found


def areas(found: dict[str, Records]) -> Section:
    """Where AUPRC and mAP differ most in each experiment that has both, and how skewed it is."""
    header = ("protocol", "variation of relevant items", "widest", "AUPRC", "mAP", "least τ")
    compared = Section(AREAS, header)
    for name, records in found.items():
        if not ({"ap", "auprc"} <= set(records.protocol.metrics) and len(records)):
            continue
        values = analyse(records).areas
        if (widest := values.widest) is None:
            continue
        least = min((tau for tau in values.tau.values() if tau == tau), default=float("nan"))
        whose = widest.method + ("" if widest.n_bits is None else f", {widest.n_bits} bits")
        numbers = (f"{one:.4f}" for one in (widest.auprc, widest.ap))
        compared.row(name, f"{values.skew.variation:.2f}", whose, *numbers, f"{least:.2f}")
    compared.note(
        "The section says that the two differ only where the number of relevant items is skewed "
        "over queries. With a variation of 0.00 every query has equally many, and they still "
        "differ: AUPRC pools all queries at each Hamming distance, where one query has found much "
        "and another little, while mAP follows each query down its own ranking. Skew is one "
        "reason, not the only one. τ is Kendall's, between the two orders of the methods."
    )
    return compared


def section(name: str, records: Records, folder: Path) -> str:
    """Return the protocol's section, after writing its figure."""
    figures = FIGURES.get(name, DEFAULT_FIGURES)
    drawn = next((svg for figure in figures if (svg := to_svg(records, figure))), None)
    place = Path("../images/results") / f"{name}.svg"
    if drawn:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(drawn, encoding="utf-8")
    return to_markdown(
        records,
        level=2,
        command=f"bittern reproduce {name}",
        images=[place.as_posix()] if drawn else [],
    )


if __name__ == "__main__":
    main()
