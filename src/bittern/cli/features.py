"""Features of images: ``bittern features``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show, telling_interruptions

features = typer.Typer(
    no_args_is_help=True, help="Features: which there are, and those of your images."
)
app.add_typer(features, name="features")


class OnError(StrEnum):
    """What a image that cannot be read does."""

    stop = "stop"
    skip = "skip"


OnBroken = Annotated[
    OnError, typer.Option(help="A image that cannot be read stops the work or is skipped.")
]


@features.command("list")
def list_features() -> None:
    """List every feature by its name, with what it takes."""
    from bittern.features import describe

    show(describe.list_features())


@features.command()
def extract(
    folder: Annotated[Path, typer.Argument(help="A folder of images; sub-folders are classes.")],
    features: Annotated[
        str, typer.Option(help="Names from 'bittern features list', like 'hsv-global,gist'.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz file to write.")],
    on_error: OnBroken = OnError.stop,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
    fit_sample: Annotated[
        int, typer.Option(help="Images, drawn at random, that features which learn learn from.")
    ] = 1000,
    random_state: Annotated[int, typer.Option(help="Seed of that sample.")] = 0,
    most_pixels: Annotated[
        int | None, typer.Option(help="Accept images of up to so many pixels.")
    ] = None,
) -> None:
    """Describe all images of a folder by features, into one file.

    Stopped by Ctrl-C, an error or a crash, the same command goes on where it stopped.
    """
    from bittern.features import describe
    from bittern.features.extract import extract as describe_all
    from bittern.features.workers import allow_pixels

    allow_pixels(most_pixels)
    with telling_interruptions():
        found = describe_all(
            folder,
            describe.parse_names(features),
            output,
            errors="skip" if on_error is OnError.skip else "raise",
            jobs=jobs,
            fit_sample=fit_sample,
            random_state=random_state,
        )
    show(describe.summarise(found, output))
