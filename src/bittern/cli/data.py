"""Datasets: ``bittern data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show
from bittern.progress import Bar

data = typer.Typer(no_args_is_help=True, help="Datasets: which there are, what is in them.")
app.add_typer(data, name="data")

Root = Annotated[
    Path | None,
    typer.Option(
        help="Folder of all data, or your own; default: BITTERN_DATA, else your data folder."
    ),
]


@data.command("list")
def list_data() -> None:
    """List every dataset by its name."""
    from bittern.data import describe

    show(describe.list_datasets())


@data.command()
def info(
    name: Annotated[str, typer.Argument(help="A name from 'bittern data list'.")],
    root: Root = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the reader, like features=gist; may be repeated."),
    ] = None,
) -> None:
    """Read a dataset and tell its size, its statistics and what was checked."""
    from bittern.data import describe
    from bittern.data.catalogue import load, spec_of

    dataset = load(name, root, **describe.parse_options(option or []))
    show(describe.describe(spec_of(name), dataset))


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name from 'bittern data list'.")],
    root: Root = None,
) -> None:
    """Download a dataset from its publisher; what is there already is kept or continued."""
    from bittern.data.catalogue import spec_of
    from bittern.data.fetch import fetch as download

    with Bar("downloading") as progress:
        paths = download(
            spec_of(name), root, lambda file, done, total: progress(done, total or done)
        )
    show("\n".join(map(str, paths)) or f"{name} needs no files.")
