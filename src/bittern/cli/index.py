"""Collections of codes: ``bittern index``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show, telling_interruptions
from bittern.cli.features import OnBroken, OnError

index = typer.Typer(
    no_args_is_help=True,
    help="Collections of codes that last: make them, change them, take them elsewhere.",
)
app.add_typer(index, name="index")

Place = Annotated[str, typer.Argument(help="A collection: a file, or milvus://host:port/NAME.")]
Source = Annotated[
    Path, typer.Option("--from", help="A folder of images, or vectors in .npy or .npz.")
]


@index.command("create")
def create_index(
    name: Place,
    source: Source,
    features: Annotated[str, typer.Option(help="How images become vectors.")] = "deep",
    hasher: Annotated[str, typer.Option(help="How vectors become codes.")] = "itq",
    bits: Annotated[int, typer.Option(help="Length of the codes.")] = 64,
    fit_sample: Annotated[
        int, typer.Option(help="Items, drawn at random, that the hasher learns from.")
    ] = 20_000,
    random_state: Annotated[int, typer.Option(help="Seed of that sample and of the hasher.")] = 0,
    on_error: OnBroken = OnError.stop,
) -> None:
    """Describe images, or take vectors; fit a hasher; encode and store them all.

    Stopped or killed anywhere, the same command goes on where it was.
    """
    from bittern.cli import collecting

    plan = collecting.Plan(
        source=source,
        features=features,
        hasher=hasher,
        n_bits=bits,
        fit_sample=fit_sample,
        random_state=random_state,
        skips=on_error is OnError.skip,
    )
    with telling_interruptions():
        show(collecting.create(name, plan))


@index.command("add")
def add_to_index(
    name: Place,
    source: Source,
    on_error: OnBroken = OnError.stop,
) -> None:
    """Add images or vectors, encoded as the others were; all of them or none."""
    from bittern.cli import collecting

    with telling_interruptions():
        show(collecting.add_to(name, source, skips=on_error is OnError.skip))


@index.command("remove")
def remove_from_index(
    name: Place,
    id: Annotated[list[int] | None, typer.Option(help="An item; may be repeated.")] = None,
    where: Annotated[str | None, typer.Option(help="A condition like \"label = 'cat'\".")] = None,
) -> None:
    """Remove items by their ids, or all that meet a condition."""
    from bittern.cli import collecting

    show(collecting.remove_from(name, id or None, where))


@index.command("info")
def index_info(name: Place) -> None:
    """Tell what a collection holds and how its codes are made."""
    from bittern.cli import collecting

    show(collecting.describe(name))


@index.command("export")
def export_index(
    name: Place,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet, .npy (octets) or .faiss file.")
    ],
) -> None:
    """Write a collection's items for other programs."""
    from bittern.cli import collecting

    show(collecting.export(name, output))
