"""The command itself, and what its parts share."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

import bittern
from bittern.errors import BitternError

__all__ = ["Format", "app", "main", "show", "telling_interruptions"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Short binary codes: made, searched, and honestly evaluated.",
)


def main() -> None:
    """Run the command line; what we raise on purpose is one sentence and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without our lines and signs
    try:
        app(prog_name="bittern")
    except BitternError as error:
        _stop(str(error))
    except MemoryError:
        _stop("there is not enough memory for this; evaluate shards of the database and add them.")
    except OSError as error:
        _stop(f"{error.filename or 'the output'}: {error.strerror or error}.")


class Format(StrEnum):
    """How scores are written."""

    table = "table"
    json = "json"
    csv = "csv"
    latex = "latex"


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"bittern {bittern.__version__}")
        raise typer.Exit


def show(text: str) -> None:
    """Write what was asked for."""
    typer.echo(text)


@contextmanager
def telling_interruptions() -> Iterator[None]:
    """Ctrl-C ends the command with the sentence that the work has about it."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        typer.echo(f"bittern: {str(stopped) or 'stopped.'}", err=True)
        raise typer.Exit(130) from None


def _stop(sentence: str) -> None:
    typer.echo(f"bittern: {sentence}", err=True)
    sys.exit(2)
