"""Find near-duplicates, and leaks between two folders: ``bittern duplicates``."""

from __future__ import annotations

import csv
import io
import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bittern.cli.app import app, check_outputs, echo, handle_interrupt
from bittern.cli.features import OnBroken, OnError
from bittern.cli.sharded import Dask, Processes, executor_for
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.store.duplicates import Duplicates, Leaks

MOST_SHOWN = 5  # reasons of skipped images that are listed
DETAILS = ("width", "height", "n_bytes", "taken", "sharpness", "quality")


class DuplicateFormat(StrEnum):
    """Formats of groups and pairs."""

    table = "table"
    csv = "csv"
    json = "json"


class LinkName(StrEnum):
    """How near items become groups."""

    complete = "complete"
    connected = "connected"


class KeepName(StrEnum):
    """Which item of a group to keep."""

    largest = "largest"
    sharpest = "sharpest"
    oldest = "oldest"
    first = "first"


@app.command()
def duplicates(
    place: Annotated[str | None, typer.Argument(help="A folder of images or a collection.")] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Another folder or collection, such as the test images: find what is in both."
        ),
    ] = None,
    radius: Annotated[
        int | None,
        typer.Option(help="Most bits in which two codes differ (default: 6, for pdq 31)."),
    ] = None,
    hasher: Annotated[
        str | None,
        typer.Option(
            help="Perceptual hash for a folder: phash (default), dhash, ahash, whash or pdq."
        ),
    ] = None,
    link: Annotated[
        LinkName,
        typer.Option(
            help="complete: every two items of a group are near; connected: a chain of near items "
            "is enough."
        ),
    ] = LinkName.complete,
    keep: Annotated[
        KeepName | None,
        typer.Option(help="Item of a group to keep (default: largest, or first without images)."),
    ] = None,
    least_quality: Annotated[
        int, typer.Option(help="Leave out images of a lower quality, with pdq; 50 is usual.")
    ] = 0,
    known: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file of what was found before, made if it is not there: only new images "
            "are read and compared."
        ),
    ] = None,
    format: Annotated[DuplicateFormat, typer.Option(help="Output format.")] = DuplicateFormat.table,
    page: Annotated[
        Path | None, typer.Option(help="Also write an .html page that shows the images.")
    ] = None,
    on_error: OnBroken = OnError.stop,
    shards: Annotated[
        Path | None, typer.Option(help="Compare the codes of a sharded database instead.")
    ] = None,
    processes: Processes = None,
    dask: Dask = None,
) -> None:
    """Find near-duplicates among images, and which to keep; with --against, leaks.

    All pairs of codes within the radius are found, exactly. Nothing is deleted.
    """
    check_outputs(page, known)
    if known is not None and known.suffix != ".npz":
        raise InputError(f"{known}: must end in .npz.")
    skip = on_error is OnError.skip
    of_groups: dict[str, Any] = {"--keep": keep, "--known": known, "--least-quality": least_quality}
    with handle_interrupt():
        if shards is not None:
            of_groups["--keep"] = None if keep is KeepName.first else keep
            others = {"PLACE": place, "--against": against, "--hasher": hasher, **of_groups}
            _check_unused({**others, "--on-error": skip})
            found: Duplicates | Leaks = _of_shards(shards, radius, link, processes, dask)
        elif place is None or processes is not None or dask is not None:
            raise InputError(
                "duplicates: give a folder of images or a collection; or --shards, which "
                "--processes and --dask are for."
            )
        elif against is None:
            found = _of_place(place, radius, hasher, link, of_groups, skip)
        else:
            found = _of_two_places(place, against, radius, hasher, of_groups, skip)
    _show(found, format)
    if page is not None:
        from bittern.report.duplicates_page import write_duplicates_page

        write_duplicates_page(found, page)


def _check_unused(of_images: dict[str, object]) -> None:
    """Raise InputError if an option would be ignored."""
    for option, value in of_images.items():
        if value:
            raise InputError(
                f"duplicates: {option} is for images and collections; leave it out beside --shards."
            )


def _of_shards(
    shards: Path, radius: int | None, link: LinkName, processes: int | None, dask: str | None
) -> Duplicates:
    from bittern.scale import Shards
    from bittern.store.duplicates import shard_duplicates

    opened = Shards.open(shards)
    if radius is None:
        raise InputError(f"{shards}: give --radius, the most bits in which two codes differ.")
    with executor_for(processes, dask) as executor:
        return shard_duplicates(opened, radius=radius, link=link.value, executor=executor)


def _of_place(
    place: str,
    radius: int | None,
    hasher: str | None,
    link: LinkName,
    of_groups: dict[str, Any],
    skip: bool,
) -> Duplicates:
    from bittern.store.duplicates import duplicates as find_duplicates

    keep = of_groups["--keep"]
    return find_duplicates(
        place,
        radius=radius,
        hasher=hasher,
        link=link.value,
        keep=None if keep is None else keep.value,
        least_quality=of_groups["--least-quality"],
        known=of_groups["--known"],
        skip_broken=skip,
    )


def _of_two_places(
    place: str,
    against: str,
    radius: int | None,
    hasher: str | None,
    of_groups: dict[str, Any],
    skip: bool,
) -> Leaks:
    from bittern.store.duplicates import leaks

    if any(value for value in of_groups.values()):
        raise InputError(
            "duplicates: --against lists pairs; leave out --keep, --known and --least-quality."
        )
    return leaks(place, against, radius=radius, hasher=hasher, skip_broken=skip)


def _show(found: Duplicates | Leaks, format: DuplicateFormat) -> None:
    from bittern.store.duplicates import Leaks

    rows = _leak_rows(found) if isinstance(found, Leaks) else _group_rows(found)
    if format is DuplicateFormat.json:
        echo(json.dumps(rows, ensure_ascii=False))
    elif format is DuplicateFormat.csv:
        echo(_csv(rows, _COLUMNS[isinstance(found, Leaks)]), nl=False)
    else:
        from bittern.report.duplicates_page import summary

        echo("\n".join([summary(found), *_table(rows)]))
    if found.skipped:
        n = len(found.skipped)
        echo(f"Skipped {n:,} image{'' if n == 1 else 's'}:", err=True)
        for reason in found.skipped[:MOST_SHOWN]:
            echo(f"  {reason}", err=True)


_COLUMNS = {
    False: ["group", "keep", "distance", "name", "file", *DETAILS],
    True: ["distance", "first", "second", "first_file", "second_file"],
}


def _group_rows(found: Duplicates) -> list[dict[str, Any]]:
    """A row for each item of a group."""
    return [
        {
            "group": number,
            "keep": i == 0,
            "distance": item.distance,
            "name": item.name,
            "file": None if item.file is None else str(item.file),
            **{key: getattr(item, key) for key in DETAILS},
        }
        for number, group in enumerate(found.groups, start=1)
        for i, item in enumerate(group)
    ]


def _leak_rows(found: Leaks) -> list[dict[str, Any]]:
    return [
        {
            "distance": pair.distance,
            "first": pair.name,
            "second": pair.other,
            "first_file": None if pair.file is None else str(pair.file),
            "second_file": None if pair.other_file is None else str(pair.other_file),
        }
        for pair in found.pairs
    ]


def _csv(rows: list[dict[str, Any]], columns: list[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "keep": int(row["keep"])} if "keep" in row else row)
    return text.getvalue()


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Lines of a table, without columns that are empty or only for programs."""
    keys = [
        key
        for key in (rows[0] if rows else ())
        if not key.endswith("file") and any(row[key] is not None for row in rows)
    ]
    lines = [keys, *([_cell(key, row[key]) for key in keys] for row in rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key == "keep":
        return "keep" if value else ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)
