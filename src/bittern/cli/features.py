"""List features, and extract them from a folder of images: ``bittern features``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bittern.cli.app import app, echo, handle_interrupt
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.features import Extracted

MOST_SHOWN = 5  # skipped images that are listed by name

features = typer.Typer(
    no_args_is_help=True, help="List features, and extract them from your images."
)
app.add_typer(features, name="features")


class OnError(StrEnum):
    """What to do with an image that cannot be read."""

    stop = "stop"
    skip = "skip"


OnBroken = Annotated[
    OnError, typer.Option(help="Stop at an image that cannot be read, or skip it.")
]


@features.command("list")
def list_features() -> None:
    """List every feature with its input and a summary."""
    from bittern.features.catalogue import FEATURES, listed

    width = max(map(len, FEATURES), default=0)
    for name, takes, summary in listed():
        echo(f"{name:<{width}}  {takes:<6}  {summary}")


@features.command()
def extract(
    folder: Annotated[Path, typer.Argument(help="A folder of images; sub-folders are classes.")],
    features: Annotated[
        str,
        typer.Option(help="Names from 'bittern features list', for example 'hsv-global,gist'."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz file to write.")],
    on_error: OnBroken = OnError.stop,
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes (default: one per core).")
    ] = None,
    fit_sample: Annotated[
        int, typer.Option(help="Number of random images to fit learned features on.")
    ] = 1000,
    random_state: Annotated[int, typer.Option(help="Seed for drawing these images.")] = 0,
    most_pixels: Annotated[
        int | None, typer.Option(help="Largest number of pixels of an image.")
    ] = None,
) -> None:
    """Compute features of all images in a folder and write them to one file.

    After Ctrl-C, an error or a crash, run the same command again to continue where it stopped.
    """
    from bittern.features.chunks import allow_pixels
    from bittern.features.extraction import extract as extract_folder

    allow_pixels(most_pixels)
    with handle_interrupt():
        found = extract_folder(
            folder,
            _parse_names(features),
            output,
            errors="skip" if on_error is OnError.skip else "raise",
            jobs=jobs,
            fit_sample=fit_sample,
            random_state=random_state,
        )
    echo(_summary(found, output))


def _parse_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("--features takes names separated by commas, like 'hsv-global,gist'.")
    return names


def _summary(found: Extracted, path: Path) -> str:
    """Numbers of images and classes, lengths of rows, and the skipped images."""
    n, n_classes = len(found), len(found.class_names)
    classes = f" of {n_classes:,} class{'es' * (n_classes > 1)}" if n_classes else ""
    lines = [f"{path}: {n:,} image{'s' * (n != 1)}{classes}"]
    width = max(map(len, found.features))
    lines += [f"  {name:<{width}}  {rows.shape[1]:,}" for name, rows in found.features.items()]
    if found.fitted_on:
        lines.append(f"Fitted on {len(found.fitted_on):,} of these images, drawn at random.")
    if found.skipped:
        lines.append(f"Skipped {len(found.skipped):,} image{'s' * (len(found.skipped) > 1)}:")
        lines += [f"  {reason}" for reason in list(found.skipped.values())[:MOST_SHOWN]]
        left = len(found.skipped) - MOST_SHOWN
        lines += [f"  and {left:,} more, listed in the file."] if left > 0 else []
    return "\n".join(lines)
