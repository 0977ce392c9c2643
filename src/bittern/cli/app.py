"""The command ``bittern``, and what its subcommands share."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from enum import StrEnum
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_name
from typer.models import CommandInfo, TyperInfo

import bittern
from bittern.errors import BitternError, FileError, InputError, printable, shortened

if TYPE_CHECKING:
    from bittern.metrics import MetricName

NO_CACHE = "cannot cache function"  # what numba says if no folder can be written
LONGEST = 500  # characters of a summary
COMPLETION = "_BITTERN_COMPLETE"  # the variable by which typer's completion asks


class PlainGroup(TyperGroup):
    """A group of commands that lists them as plain text, because rich takes 0.1 s to load."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; without any, show the help and fail."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the group."""
        self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the name and the summary of each command, wrapped and never cut."""
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(LONGEST)) for name, one in listed if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Make, search and honestly evaluate short binary codes.",
)


def main() -> None:
    """Run the command line; print our own errors as one sentence and exit with code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # some terminals cannot show our symbols
    try:
        _program(sys.argv[1:])(prog_name="bittern")
    except BitternError as error:
        _exit(_in_our_words(str(error)))
    except KeyboardInterrupt as stopped:
        typer.echo(f"bittern: {str(stopped) or 'stopped.'}", err=True)
        sys.exit(130)
    except MemoryError:
        _exit("not enough memory; evaluate shards of the database and add their profiles.")
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made
            typer.echo("bittern: stopped.", err=True)
            sys.exit(130)
        if NO_CACHE not in str(error):
            raise
        _exit(
            "compiled code cannot be kept, because no folder for it can be written; set the "
            "variable NUMBA_CACHE_DIR to one that can."
        )
    except OSError as error:
        _exit(f"{error.filename or 'the output'}: {error.strerror or error}.")


def echo(message: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text; on a terminal, codes in it that would command the terminal are shown instead.

    Labels, names of files and metadata may hold such codes, and files get them as they are.
    """
    stream = sys.stderr if err else sys.stdout
    typer.echo(printable(message, kept="\n\t") if stream.isatty() else message, err=err, nl=nl)


def _in_our_words(message: str) -> str:
    """The message with options instead of the arguments of functions."""
    from bittern.cli.wording import find_command, in_command_words

    return in_command_words(message, find_command(typer.main.get_command(app), sys.argv[1:]))


def _program(words: Sequence[str]) -> typer.Typer:
    """The program that runs the command these words ask for.

    Other commands are listed in it without their options, which would take 50 ms to make.
    """
    if COMPLETION in os.environ:  # the shell asks, and the words are in another variable
        return app
    asked = next((word for word in words if not word.startswith("-")), None)
    program = copy(app)
    program.registered_commands = [
        info if _name(info) == asked else _without_options(info) for info in app.registered_commands
    ]
    program.registered_groups = [
        info if info.name == asked else TyperInfo(typer.Typer(help=_help(info)), name=info.name)
        for info in app.registered_groups
    ]
    return program


def _name(info: CommandInfo) -> str:
    return info.name or get_command_name(info.callback.__name__)  # type: ignore[union-attr]


def _without_options(info: CommandInfo) -> CommandInfo:
    """A command that only stands in a list."""
    listed = copy(info)
    listed.name, listed.help, listed.callback = _name(info), getdoc(info.callback), lambda: None
    return listed


def _help(info: TyperInfo) -> str | None:
    return None if info.typer_instance is None else info.typer_instance.info.help


def _exit(sentence: str) -> None:
    typer.echo(f"bittern: {shortened(printable(sentence))}", err=True)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.")
    ] = False,
) -> None:
    if version:
        typer.echo(f"bittern {bittern.__version__}")
        raise typer.Exit


@app.command("help")
def show_help(
    command: Annotated[
        list[str] | None, typer.Argument(help="A command, like 'evaluate' or 'index create'.")
    ] = None,
) -> None:
    """Show the help of a command, or of all of them."""
    words = [*(command or ()), "--help"]
    _program(words)(words, prog_name="bittern", standalone_mode=False)


class Format(StrEnum):
    """Formats of scores."""

    table = "table"
    json = "json"
    csv = "csv"
    latex = "latex"


class BitOrder(StrEnum):
    """Orders of the bits in a byte, as NumPy calls them."""

    big = "big"
    little = "little"


class CodeLayout(StrEnum):
    """Layouts of codes in arrays; see bittern.io.code_layouts."""

    bits = "bits"
    signed = "signed"
    packed = "packed"
    words = "words"
    ubinary = "ubinary"
    binary = "binary"


Layout = Annotated[
    CodeLayout | None,
    typer.Option(
        help="How codes are laid out, if it cannot be recognised: numbers whose sign is the bit, "
        "packed bytes, or sentence-transformers' ubinary or binary embeddings."
    ),
]


class VectorMetric(StrEnum):
    """Distance between vectors."""

    euclidean = "euclidean"
    cosine = "cosine"


@contextmanager
def handle_interrupt() -> Iterator[None]:
    """On Ctrl-C, show the message of the interrupted work and exit with code 130."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        typer.echo(f"bittern: {str(stopped) or 'stopped.'}", err=True)
        raise typer.Exit(130) from None


def parse_metrics(names: str | None) -> tuple[MetricName, ...]:
    """Parse metric names separated by commas; None gives the default ones."""
    from bittern.metrics import DEFAULT_METRICS, parse

    listed = DEFAULT_METRICS if names is None else [name.strip() for name in names.split(",")]
    return tuple(map(parse, listed))


def whole(number: float, name: str) -> int:
    """A number of items that may be written as 1e9."""
    if not number.is_integer():
        raise InputError(f"{name} must be whole, got {number:g}.")
    return int(number)


def check_outputs(*files: Path | None, plot: Path | None = None) -> None:
    """Raise an error now if a file could not be written, or a plot not drawn, later; skip None."""
    if plot is not None:
        from bittern.report.plots import figure_format, require_matplotlib

        figure_format(plot)
        require_matplotlib("--plot")
    for path in (*files, plot):
        if path is None:
            continue
        if path.is_dir():
            raise FileError(f"{path}: is a folder; give the name of a file to write.")
        if path.is_symlink() or (path.exists() and not path.is_file()):
            # Writing replaces the whole file, and must not replace a device like /dev/stdout.
            raise FileError(f"{path}: is a link or a device; give the name of a file to write.")
        if not path.parent.is_dir():
            raise FileError(f"{path}: cannot be written, there is no folder {path.parent}.")
        if not os.access(path.parent, os.W_OK):
            raise FileError(f"{path}: cannot be written, the folder {path.parent} is read-only.")


def check_new_file(path: Path, *, force: bool, inputs: Iterable[Path | None]) -> None:
    """Raise an error now if a file could not be written later, or exists and ``force`` is false."""
    check_outputs(path)
    check_overwriting([path], inputs)
    if path.exists() and not force:
        raise FileError(f"{path}: exists already; choose another name, or replace it with --force.")


def check_overwriting(outputs: Iterable[Path | None], inputs: Iterable[Path | None]) -> None:
    """Raise InputError if an output is also an input or another output."""
    taken = {path.resolve() for path in inputs if path is not None}
    for output in (path.resolve() for path in outputs if path is not None):
        if output in taken:
            raise InputError(f"{output}: would be overwritten; choose another name.")
        taken.add(output)
