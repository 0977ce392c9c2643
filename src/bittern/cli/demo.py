"""A first look: ``bittern demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show, telling_interruptions


@app.command()
def demo(
    out: Annotated[
        Path | None, typer.Option(help="Folder of records and page; by default results/demo.")
    ] = None,
    runs: Annotated[int, typer.Option(help="How often all is repeated.")] = 10,
    jobs: Annotated[
        int | None, typer.Option(help="Cells at a time; by default one a core.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw what ties do to LSH: .svg, .png or .pdf.")
    ] = None,
    random_state: Annotated[int, typer.Option(help="Seed of splits and methods.")] = 0,
) -> None:
    """Hash handwritten digits by four methods, compare them, and write a page: two minutes."""
    from bittern.cli import demonstration as first_look
    from bittern.cli.evaluation import check_outputs
    from bittern.cli.live import LiveView

    check_outputs(plot=plot)
    protocol = first_look.protocol_of(runs, random_state)
    folder = out or first_look.FOLDER
    show(first_look.introduction(protocol) + "\n")
    with telling_interruptions(), LiveView(protocol.main_metric) as live:
        records = first_look.run_demo(protocol, folder, jobs=jobs, watcher=live)
    show(first_look.closing(records, folder))
    if plot is not None:
        first_look.draw(records, plot)
        show(f"\nThe image is in {plot}.")
    if records.failures:
        raise typer.Exit(1)
