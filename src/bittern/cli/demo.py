"""A first look: ``bittern demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show
from bittern.progress import Bar


@app.command()
def demo(
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the table: .svg, .png or .pdf.")
    ] = None,
    random_state: Annotated[int, typer.Option(help="Seed of the split and the codes.")] = 0,
) -> None:
    """Show what ties do to average precision, on images that come with scikit-learn."""
    from bittern import demo as first_look
    from bittern.evaluation import check_outputs

    check_outputs(plot=plot)
    with Bar("code lengths") as progress:
        rows = first_look.run_demo(random_state, progress)
    show(first_look.table_of(rows))
    if plot is not None:
        first_look.draw(rows, plot)
        show(f"\nThe picture is in {plot}.")
