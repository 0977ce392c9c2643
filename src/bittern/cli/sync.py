"""Keep a collection in step with a folder of images: ``bittern index sync``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bittern.cli.app import check_outputs, echo, handle_interrupt
from bittern.cli.features import MOST_SHOWN, OnError

if TYPE_CHECKING:
    from bittern.store.comparing import Changes
    from bittern.store.image_items import LeftOut

NOTHING = "nothing to do"
PLACES = (
    "A collection: a file, postgresql://user@host/database?collection=NAME, or "
    "milvus://host:port/NAME."
)
Table = Annotated[
    Path | None,
    typer.Option(
        "--metadata",
        help="A .csv or .jsonl file with a row for each image: the column file, and any others.",
    ),
]
Exif = Annotated[
    bool | None,
    typer.Option(
        "--exif/--no-exif",
        help="Store size, date, camera and place from the image files (default: yes).",
    ),
]
Captions = Annotated[
    str | None,
    typer.Option(
        help="Captions of the images: a .csv or .jsonl file with the columns file and caption, or "
        ".txt for a text file beside each image."
    ),
]
Skipped = Annotated[
    Path | None,
    typer.Option(help="Write the names of all files and rows that were left out to this .csv."),
]
Broken = Annotated[
    OnError | None,
    typer.Option(help="Stop at an image that cannot be read, or skip it (default: as created)."),
]


def sync_index(
    name: Annotated[str, typer.Argument(help=PLACES)],
    folder: Annotated[
        Path | None, typer.Argument(help="The folder of images (default: that of the last time).")
    ] = None,
    metadata: Table = None,
    exif: Exif = None,
    texts: Captions = None,
    on_error: Broken = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Remove all items if there are no images.")
    ] = False,
    skipped: Skipped = None,
) -> None:
    """Add the new images of a folder, encode changed ones again, remove those that are gone.

    Unchanged images are skipped, and none is there twice. The folder, the table of metadata, the
    captions and the other options are remembered from 'create' and from the last 'sync'. If it is
    interrupted, run it again.
    """
    from bittern import store
    from bittern.io.addresses import without_password
    from bittern.store.syncing import sync

    check_outputs(skipped)
    with handle_interrupt(), store.open(name, read_only=dry_run) as collection:
        done = sync(
            collection,
            folder,
            metadata=metadata,
            texts=texts,
            with_exif=exif,
            skip_broken=None if on_error is None else on_error is OnError.skip,
            allow_empty=allow_empty,
            dry_run=dry_run,
        )
        total = len(collection)
    if dry_run:
        echo("".join(f"{line}\n" for line in _list_changes(done)), nl=False)
    would = "would be " if dry_run else ""
    in_total = "" if dry_run else f"; {total:,} in total"
    echo(f"{without_password(name)}: {summary_of(done, would)}{in_total}.")
    show_left_out(done.left_out, skipped)


def summary_of(done: Changes, would: str = "") -> str:
    """Numbers of images."""
    said = [
        f"{len(done.added):,} {would}added",
        f"{len(done.encoded):,} changed and {would}encoded again",
        f"{len(done.described):,} {would}described again",
        f"{len(done.removed):,} {would}removed",
        f"{len(done.unchanged):,} unchanged",
    ]
    return ", ".join(part for part in said if not part.startswith("0 ")) or NOTHING


def show_left_out(left_out: Iterable[LeftOut], path: Path | None) -> None:
    """Name the first files and rows of each kind on stderr, and write all to a file."""
    listed = list(left_out)
    if path is not None:
        _write_csv(path, listed)
    for kind, group in groupby(sorted(listed, key=lambda one: one.kind), lambda one: one.kind):
        some = list(group)
        echo(f"{len(some):,} {_plural(kind) if len(some) > 1 else kind}:", err=True)
        for one in some[:MOST_SHOWN]:
            shown = one.reason if one.name in one.reason else f"{one.name}: {one.reason}"
            echo(f"  {_one_line(shown)}", err=True)
        if len(some) > MOST_SHOWN:
            where = "--skipped FILE.csv lists all" if path is None else f"{path} lists all"
            echo(f"  and {len(some) - MOST_SHOWN:,} more; {where}.", err=True)


def _list_changes(done: Changes) -> list[str]:
    """A line for each image: + added, ~ changed, - removed."""
    signs = (("+", done.added), ("~", (*done.encoded, *done.described)), ("-", done.removed))
    return [f"{sign} {_one_line(name)}" for sign, names in signs for name in names]


def _write_csv(path: Path, left_out: list[LeftOut]) -> None:
    from bittern.io.files import atomic_write

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([("kind", "file", "reason"), *left_out])
    with atomic_write(path) as file:
        file.write(text.getvalue().encode("utf-8", "backslashreplace"))


def _plural(kind: str) -> str:
    first, _, rest = kind.partition(" ")
    return f"{first}s {rest}".replace("that is not an image", "that are not images")


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r")
