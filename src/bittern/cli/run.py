"""Experiments: ``bittern run``, ``reproduce``, ``verify`` and ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show, telling_interruptions

Root = Annotated[
    Path | None, typer.Option(help="Folder of the data; else BITTERN_DATA says where it is.")
]
Out = Annotated[Path | None, typer.Option(help="Folder of the records; by default results/NAME.")]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Only some cells: method=itq,lsh or bits=32 or run=0; may be repeated."),
]
Jobs = Annotated[int | None, typer.Option(help="Cells at a time; by default one a core.")]


@app.command()
def run(
    protocol: Annotated[str, typer.Argument(help="A TOML file, or a protocol's name.")],
    out: Out = None,
    only: Only = None,
    jobs: Jobs = None,
    root: Root = None,
) -> None:
    """Run what a protocol still lacks, and show its table.

    Each cell (a method at a length in a run) is stored as it finishes; stopped and started again,
    the command goes on.  `bittern report` makes a page of the folder.
    """
    from bittern.cli import experimenting
    from bittern.cli.live import LiveView

    plan = experimenting.Plan.of(protocol, out)
    with telling_interruptions(), LiveView(plan.protocol.main_metric) as live:
        records = plan.run(root=root, jobs=jobs, wanted=only or [], watcher=live)
    show(experimenting.told(records, plan.folder))
    if records.failures:
        raise typer.Exit(1)


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="A table or figure of the papers; without, a list.")
    ] = None,
    out: Out = None,
    only: Only = None,
    jobs: Jobs = None,
    root: Root = None,
) -> None:
    """Run a protocol of the papers, and write its page."""
    from bittern.cli import experimenting
    from bittern.cli.live import LiveView

    if name is None:
        show(experimenting.listing())
        return
    plan = experimenting.Plan.of(name, out)
    show(plan.introduction)
    with telling_interruptions(), LiveView(plan.protocol.main_metric) as live:
        records = plan.run(root=root, jobs=jobs, wanted=only or [], watcher=live)
    experimenting.write_reports(plan.folder, html=plan.folder / "report.html")
    show(experimenting.told(records, plan.folder))
    if records.failures:
        raise typer.Exit(1)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A folder that `bittern run` made.")],
    only: Only = None,
    random_state: Annotated[
        int | None, typer.Option(help="Seed of the choice of the cell; else chance.")
    ] = None,
    root: Root = None,
) -> None:
    """Measure a random cell again, and say whether it is the same to the last bit."""
    from bittern.experiments import verify as verify_cell

    with telling_interruptions():
        found = verify_cell(folder, root=root, wanted=tuple(only or ()), random_state=random_state)
    show(str(found))
    if not found.is_same:
        raise typer.Exit(1)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A folder that `bittern run` made.")],
    second: Annotated[Path, typer.Argument(help="Another, with some of the same methods.")],
    metric: Annotated[
        str | None, typer.Option(help="Another metric than the first's main one.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown section.")] = None,
) -> None:
    """Show what changes from one experiment to another, method by method."""
    from bittern.cli import experimenting

    show(experimenting.compared(first, second, metric=metric, markdown=markdown))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `bittern run` made.")],
    html: Annotated[Path | None, typer.Option(help="Write a page that needs no network.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write a LaTeX table.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a CSV table.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown section.")] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Write every value of every query as Parquet.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Write each figure of the page as SVG into this folder.")
    ] = None,
) -> None:
    """Show the table of an experiment, or write it as a page, LaTeX, CSV, Markdown, figures."""
    from bittern.cli import experimenting

    show(
        experimenting.write_reports(
            folder,
            html=html,
            latex=latex,
            csv=csv,
            markdown=markdown,
            parquet=parquet,
            figures=figures,
        )
    )
