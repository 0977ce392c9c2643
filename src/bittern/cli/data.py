"""Datasets: ``bittern data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, echo, handle_interrupt
from bittern.errors import InputError
from bittern.progress import Bar

data = typer.Typer(
    no_args_is_help=True, help="List, inspect, download, prepare and export datasets."
)
app.add_typer(data, name="data")

Root = Annotated[
    Path | None,
    typer.Option(
        help="Data folder, or the dataset's own (default: BITTERN_DATA or your user data folder)."
    ),
]


@data.command("list")
def list_data() -> None:
    """List all datasets by name."""
    from bittern.data import describe

    echo(describe.list_datasets())


Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="Option of the reader, like features=gist; may be repeated."),
]


@data.command()
def info(
    name: Annotated[str, typer.Argument(help="Name from 'bittern data list'.")],
    root: Root = None,
    option: Options = None,
) -> None:
    """Read a dataset; show its size, its statistics and what was checked."""
    from bittern.data import describe
    from bittern.data.catalogue import load, spec_of

    dataset = load(name, root, **describe.parse_options(option or []))
    echo(describe.describe(spec_of(name), dataset))


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Name from 'bittern data list'.")],
    root: Root = None,
) -> None:
    """Download a dataset from its publisher; keeps complete files and resumes partial ones."""
    from bittern.data.catalogue import spec_of
    from bittern.data.fetch import fetch as download

    with Bar("downloading") as progress:
        paths = download(
            spec_of(name), root, lambda file, done, total: progress(done, total or done)
        )
    echo("\n".join(map(str, paths)) or f"{name} needs no files.")


@data.command()
def prepare(
    name: Annotated[str, typer.Argument(help="A dataset with features to compute: cifar10.")],
    features: Annotated[
        str, typer.Option(help="Features to compute, separated by commas.")
    ] = "gist,cnn",
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Its own files: an archive or a folder (default: found, or downloaded)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "--root", help="Data folder (default: BITTERN_DATA or your user data folder)."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes (default: one per core).")
    ] = None,
) -> None:
    """Compute features of a dataset's images, as protocols use them.

    After Ctrl-C or a crash, run the same command again to continue where it stopped.
    """
    from bittern.data.catalogue import spec_of
    from bittern.data.readers.cifar10 import SPEC
    from bittern.features.cifar10 import prepare_cifar10

    if spec_of(name) is not SPEC:
        raise InputError(f"{name}: has no features to prepare; only {SPEC.name} has.")
    names = [one.strip() for one in features.split(",") if one.strip()]
    with handle_interrupt(), Bar("downloading") as progress:
        paths = prepare_cifar10(
            names,
            source=source,
            root=out,
            jobs=jobs,
            progress=lambda file, done, total: progress(done, total or done),
        )
    echo("\n".join(map(str, paths)))


@data.command()
def export(
    name: Annotated[str, typer.Argument(help="Name from 'bittern data list'.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    root: Root = None,
    option: Options = None,
) -> None:
    """Write a dataset's images as a folder of PNG files, with its labels, tags and captions."""
    from bittern.data.catalogue import load
    from bittern.data.describe import parse_options
    from bittern.data.export import write_folder

    n = write_folder(load(name, root, **parse_options(option or [])), folder)
    echo(f"{folder}: {n:,} {'image' if n == 1 else 'images'}.")


@data.command()
def split(
    protocol: Annotated[str, typer.Argument(help="TOML file, or name from 'bittern reproduce'.")],
    folder: Annotated[Path, typer.Argument(help="Folder for one .npz file for each run.")],
    run: Annotated[
        list[int] | None, typer.Option(help="Only this run; may be repeated (default: all).")
    ] = None,
    root: Root = None,
) -> None:
    """Write the training rows, queries and database of a protocol, for codes of your own."""
    from bittern.experiments.protocol import Protocol
    from bittern.experiments.split_files import write_splits
    from bittern.io.protocol_files import find_protocol

    found = Protocol.load(find_protocol(protocol))
    echo("\n".join(map(str, write_splits(found, folder, root=root, runs=run))))
