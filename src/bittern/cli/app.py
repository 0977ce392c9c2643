"""The command ``bittern``, and what its subcommands share."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from enum import StrEnum
from inspect import getdoc
from pathlib import Path
from traceback import walk_tb
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
    except KeyboardInterrupt as stopped:
        _stop(str(stopped))
    except Exception as error:
        if _was_interrupted(error):
            _stop()
        sentence = _sentence_of(error)
        if sentence is None:
            raise
        _exit(sentence)


def _stop(said: str = "") -> None:
    echo(f"bittern: {said or 'stopped.'}", err=True)
    sys.exit(130)


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether somebody made this error of a Ctrl-C, as Python does while it makes a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        is_ours = isinstance(error, BitternError)  # then it is the news, after Ctrl-C too
        error = error.__cause__ or (None if is_ours else error.__context__)
    return error is not None


def _sentence_of(error: Exception) -> str | None:
    """What went wrong; None if that is a mistake of ours."""
    if isinstance(error, BitternError):
        return _in_our_words(str(error))
    if isinstance(error, MemoryError):
        return "not enough memory; evaluate shards of the database and add their profiles."
    if isinstance(error, OSError):
        return f"{error.filename or _nameless()}: {error.strerror or error}."
    if isinstance(error, RuntimeError) and NO_CACHE in str(error):
        return (
            "compiled code cannot be kept, because no folder for it can be written; set the "
            "variable NUMBA_CACHE_DIR to one that can."
        )
    if (folder := _damaged_code(error)) is not None:
        return f"{folder}: compiled code is damaged; delete this folder, and try again."
    return None


def _damaged_code(error: BaseException) -> str | None:
    """The folder of compiled code that numba was reading when it raised the error."""
    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == "numba.core.caching":
            return getattr(frame.f_locals.get("self"), "_cache_path", None)
    return None


def _nameless() -> str:
    """What an error of the system is about if it names no file."""
    try:
        Path.cwd()
    except OSError:
        return "the current folder"
    return "the output"


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
    echo(f"bittern: {shortened(sentence)}", err=True)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.")
    ] = False,
) -> None:
    if version:
        echo(f"bittern {bittern.__version__}")
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
        echo(f"bittern: {str(stopped) or 'stopped.'}", err=True)
        raise typer.Exit(130) from None


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text to be read; names in it cannot steer the terminal."""
    typer.echo(printable(text, kept="\n\t"), err=err, nl=nl)


def echo_data(text: str, *, nl: bool = True) -> None:
    """Print text for programs, to the letter."""
    typer.echo(text, nl=nl, color=True)  # or it leaves out what looks like a colour


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Print JSON; numbers stand for what would steer a terminal or what the output cannot show."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
        is_shown = all(line.isprintable() for line in text.split("\n"))
    except UnicodeEncodeError:
        is_shown = False
    echo_data(text if is_shown else json.dumps(value, indent=indent))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


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
    from bittern.io.kinds import is_collection

    if plot is not None:
        from bittern.report.plots import figure_format, require_matplotlib

        figure_format(plot)
        require_matplotlib("--plot")
    for path in filter(None, (*files, plot)):
        _check_place(path)
        if path.is_file() and is_collection(path):
            raise FileError(f"{path}: is a collection, which is not replaced; choose another name.")


def _check_place(path: Path) -> None:
    """Raise FileError if no file could be written there."""
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
    _check_place(path)
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
