"""What is near: ``bittern search``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show
from bittern.cli.index import Place


class SearchFormat(StrEnum):
    """How answers are written."""

    table = "table"
    json = "json"


@app.command()
def search(
    name: Place,
    image: Annotated[
        list[Path] | None, typer.Option(help="A image to look for; several are examples.")
    ] = None,
    unlike: Annotated[
        list[Path] | None, typer.Option(help="A image that answers should not be like.")
    ] = None,
    row: Annotated[
        int | None, typer.Option(help="The item of this id, or this row of --vectors.")
    ] = None,
    vectors: Annotated[Path | None, typer.Option(help="A file of vectors, for --row.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many answers.")] = 20,
    radius: Annotated[
        int | None, typer.Option(help="All within this distance, instead of the k nearest.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="A condition like \"label = 'cat'\".")] = None,
    format: Annotated[
        SearchFormat, typer.Option(help="How the answers are written.")
    ] = SearchFormat.table,
    montage: Annotated[
        Path | None, typer.Option(help="Also draw the images found: .png, .jpg.")
    ] = None,
) -> None:
    """Search a collection: by a image, by a row, or by examples for and against."""
    from bittern.cli import searching

    question = searching.Question(
        images=tuple(image or ()),
        unlike=tuple(unlike or ()),
        row=row,
        vectors=vectors,
        k=k,
        radius=radius,
        where=where,
    )
    answer = searching.ask(name, question)
    show(searching.FORMATS[format](answer))
    if montage is not None:
        searching.draw_montage(answer, montage)
