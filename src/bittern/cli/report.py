"""Reports of experiments: ``bittern report`` and ``bittern compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, check_outputs, echo
from bittern.errors import InputError
from bittern.io.files import write_text

PAGE = "report.html"


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder made by `bittern run`.")],
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML page.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write a LaTeX table.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a CSV table.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown section.")] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Write the values of every query as Parquet.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Write each figure of the page as SVG into this folder.")
    ] = None,
) -> None:
    """Show the table of an experiment, or write it as a page, LaTeX, CSV, Markdown or figures."""
    files = {"html": html, "latex": latex, "csv": csv, "markdown": markdown, "parquet": parquet}
    echo(write_reports(folder, figures=figures, **files))


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="Folder made by `bittern run`.")],
    second: Annotated[
        Path, typer.Argument(help="Folder to compare it with; must share some methods.")
    ],
    metric: Annotated[
        str | None, typer.Option(help="Metric to compare (default: the main metric of FIRST).")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown section.")] = None,
) -> None:
    """Compare two experiments, method by method."""
    echo(compare_folders(first, second, metric=metric, markdown=markdown))


def write_reports(folder: Path, *, figures: Path | None = None, **files: Path | None) -> str:
    """Write the given files and name them; without any, return the table."""
    from bittern.analysis import analyse
    from bittern.experiments import Records
    from bittern.report import to_csv, to_latex, to_markdown, to_text, write_figures, write_page

    given = {form: path for form, path in files.items() if path is not None}
    _check_places(folder, list(given.values()))
    records = Records.read(folder)
    analysis = analyse(records)
    texts = {"latex": to_latex, "csv": to_csv, "markdown": to_markdown}
    for form, path in given.items():
        if form in texts:
            write_text(path, texts[form](analysis))
        elif form == "html":
            write_page(analysis, path)
        else:
            records.write_parquet(path, per_query=True)
    written = [str(path) for path in given.values()]
    if figures is not None:
        written += map(str, write_figures(analysis, figures))
    return f"Written: {', '.join(written)}." if written else to_text(analysis)


def compare_folders(
    first: Path, second: Path, *, metric: str | None = None, markdown: Path | None = None
) -> str:
    """What changes from one experiment to another, as a table or as a file."""
    from bittern.analysis import compare_tasks
    from bittern.experiments import Records
    from bittern.report import differences_to_markdown, differences_to_text

    check_outputs(markdown)
    found = compare_tasks(Records.read(first), Records.read(second), metric)
    if markdown is None:
        return "\n".join(map(differences_to_text, found))
    write_text(markdown, "\n".join(map(differences_to_markdown, found)))
    return f"Written: {markdown}."


def _check_places(folder: Path, paths: Sequence[Path]) -> None:
    """Raise InputError for a path that is given twice, or that belongs to the experiment."""
    from bittern.experiments.records import FAILURES, PROTOCOL

    own = {(folder / name).resolve() for name in (PROTOCOL, FAILURES, "cells", "trials")}
    for i, path in enumerate(paths):
        check_outputs(path)
        if path.resolve() in {other.resolve() for other in paths[:i]}:
            raise InputError(f"{path}: is given for two reports; choose another name.")
        if own & {path.resolve(), *path.resolve().parents}:
            raise InputError(f"{path}: belongs to the experiment; choose another name.")
