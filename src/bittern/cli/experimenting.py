"""What ``bittern run``, ``reproduce`` and ``report`` do: a protocol in, tables and pages out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bittern.analysis import compare_experiments
from bittern.cli.evaluation import check_outputs
from bittern.errors import InputError
from bittern.experiments import Protocol, Records, Watcher, run
from bittern.experiments.records import FAILURES, PROTOCOL
from bittern.experiments.shipped import find_protocol, listing
from bittern.io.files import atomic_write
from bittern.report import (
    differences_to_markdown,
    differences_to_text,
    to_csv,
    to_latex,
    to_markdown,
    to_text,
    write_figures,
    write_page,
)

__all__ = ["Plan", "compared", "listing", "told", "write_reports"]

RESULTS = Path("results")


@dataclass(frozen=True, slots=True)
class Plan:
    """A protocol and the folder of its records."""

    path: Path
    protocol: Protocol
    folder: Path

    @staticmethod
    def of(name: str, out: Path | None) -> Plan:
        """The protocol of that name or file; by default its records go to ``results/NAME``."""
        path = find_protocol(name)
        return Plan(path, Protocol.load(path), out or RESULTS / path.stem)

    @property
    def introduction(self) -> str:
        """What it is, and how long it takes."""
        p = self.protocol
        said = (p.title, p.reproduces, p.differs and f"Differs: {p.differs}", p.takes)
        return "\n".join(line for line in said if line)

    def run(
        self,
        *,
        root: str | os.PathLike[str] | None = None,
        jobs: int | None = None,
        wanted: Sequence[str] = (),
        watcher: Watcher | None = None,
    ) -> Records:
        """Measure what is lacking."""
        return run(self.path, self.folder, root=root, jobs=jobs, wanted=wanted, watcher=watcher)


def told(records: Records, folder: Path) -> str:
    """The table, what failed, and what to do next."""
    lines = [to_text(records).rstrip()] if len(records) else ["Nothing was measured."]
    for name, reason in (records.failures or {}).items():
        lines.append(f"failed: {name}: {reason}")
    page = folder / "report.html"
    if page.exists():
        lines.append(f"\nThe page is {page}.")
    elif len(records):
        lines.append(f"\nA page of it: bittern report {folder} --html {page}")
    return "\n".join(lines)


def write_reports(
    folder: Path,
    *,
    html: Path | None = None,
    latex: Path | None = None,
    csv: Path | None = None,
    markdown: Path | None = None,
    parquet: Path | None = None,
    figures: Path | None = None,
) -> str:
    """Write what was asked for, and say so; the table if nothing was."""
    _check_places(folder, (html, latex, csv, markdown, parquet))
    records = Records.read(folder)
    texts = {latex: to_latex, csv: to_csv, markdown: to_markdown}
    for path, form in texts.items():
        if path is not None:
            _write(path, form(records))
    if html is not None:
        write_page(records, html)
    if parquet is not None:
        records.write_parquet(parquet, per_query=True)
    written = [str(path) for path in (html, latex, csv, markdown, parquet) if path is not None]
    if figures is not None:
        written += map(str, write_figures(records, figures))
    return f"Written: {', '.join(written)}." if written else to_text(records)


def _check_places(folder: Path, paths: Sequence[Path | None]) -> None:
    """Refuse a file that is asked for twice, or that the experiment itself needs."""
    own = {(folder / name).resolve() for name in (PROTOCOL, FAILURES, "cells")}
    given = [path for path in paths if path is not None]
    for i, path in enumerate(given):
        check_outputs(per_query=path)
        if path.resolve() in {other.resolve() for other in given[:i]}:
            raise InputError(f"{path}: is to hold two reports; give each a name of its own.")
        if own & {path.resolve(), *path.resolve().parents}:
            raise InputError(f"{path}: belongs to the experiment; give another name.")


def compared(
    first: Path, second: Path, *, metric: str | None = None, markdown: Path | None = None
) -> str:
    """What changes from one experiment to another, as a table or as a file."""
    check_outputs(per_query=markdown)
    found = compare_experiments(Records.read(first), Records.read(second), metric)
    if markdown is None:
        return differences_to_text(found)
    _write(markdown, differences_to_markdown(found))
    return f"Written: {markdown}."


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
