"""Search a collection: ``bittern search``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bittern.cli.app import CodeLayout, Layout, app, echo, handle_interrupt
from bittern.cli.fit import Key
from bittern.cli.index import Where
from bittern.cli.sharded import Dask, Processes, executor_for, search_shards
from bittern.cli.sync import PLACES
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.codes import Codes
    from bittern.scale import Shards
    from bittern.store.base import Collection
    from bittern.store.queries import Matches


class SearchFormat(StrEnum):
    """Formats of the results."""

    table = "table"
    json = "json"


@app.command()
def search(
    name: Annotated[
        str,
        typer.Argument(
            help=f"{PLACES} With --shards, a file of codes to search for.",
        ),
    ],
    image: Annotated[
        list[Path] | None, typer.Option(help="Image to search for; repeat it for several examples.")
    ] = None,
    unlike: Annotated[
        list[Path] | None,
        typer.Option(help="Image that results should not resemble; may be repeated."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Text to search for.")] = None,
    to: Annotated[
        str | None, typer.Option(help="What to find, if there are both: image (default) or text.")
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(help="Search for the item with this id, or this row of --vectors or --codes."),
    ] = None,
    vectors: Annotated[Path | None, typer.Option(help="File of vectors, for --row.")] = None,
    codes: Annotated[
        Path | None, typer.Option(help="File of codes, as 'evaluate' reads, for --row.")
    ] = None,
    key: Key = None,
    code_layout: Layout = None,
    k: Annotated[int, typer.Option("-k", help="Number of results.")] = 20,
    radius: Annotated[
        int | None, typer.Option(help="Return all items within this distance instead.")
    ] = None,
    where: Where = None,
    format: Annotated[SearchFormat, typer.Option(help="Output format.")] = SearchFormat.table,
    columns: Annotated[
        str | None,
        typer.Option(help="Metadata to show in the table, such as path,taken (default: most)."),
    ] = None,
    montage: Annotated[
        Path | None, typer.Option(help="Also draw the query and the images found: .png or .jpg.")
    ] = None,
    shards: Annotated[
        Path | None,
        typer.Option(help="Search a sharded database for every code of a file, or for one --row."),
    ] = None,
    processes: Processes = None,
    dask: Dask = None,
) -> None:
    """Search a collection by text, by image, by row, or by positive and negative examples.

    With --shards, search a sharded database for the codes of a file.
    """
    if shards is not None:
        others: dict[str, object] = {"--image": image, "--unlike": unlike, "--text": text}
        others |= {"--to": to, "--vectors": vectors, "--codes": codes, "--where": where}
        _check_unused(others | {"--montage": montage})
        asked_for = _queries(Path(name), code_layout, row)
        with handle_interrupt(), executor_for(processes, dask) as executor:
            rows = search_shards(asked_for, _shards(shards), k, radius, executor)
        echo(_shown(rows, row, columns, format))
        return
    if processes is not None or dask is not None:
        raise InputError("search: --processes and --dask are for --shards.")
    from bittern import store
    from bittern.store import queries

    _check_files(row, vectors, codes)
    _check_options(image or [], unlike or [], text, row, radius)
    wanted: dict[str, Any] = {"to": to, "k": k, "radius": radius, "where": where}
    with store.open(name, read_only=True) as collection:
        shown = _columns(columns, collection)
        if row is not None:
            files: dict[str, Any] = {"vectors": vectors, "codes": codes, "key": key}
            files["layout"] = code_layout
            found = queries.search_by_row(collection, row, **files, **wanted)
        elif text is not None:
            found = queries.search_by_text(collection, text, **wanted)
        else:
            found = queries.search_by_images(collection, image or [], unlike=unlike or [], **wanted)
        asked: list[Path | None] = [*(image or ())]
        if row is not None and vectors is None and codes is None:
            asked = [queries.image_file(collection.get([row]).metadata[0], collection.folder)]
    echo(_table(found, shown) if format is SearchFormat.table else _json(found))
    if montage is not None:
        from bittern.store.montage import draw_montage

        images = [file for file in asked if file is not None]
        draw_montage(found, montage, title=text or "", queries=images, unlike=unlike or ())


def _check_unused(others: dict[str, object]) -> None:
    for option, value in others.items():
        if value:
            raise InputError(
                f"search: {option} is not for --shards, which are searched by codes; give a file "
                "of codes, and --row for one of them."
            )


def _shards(folder: Path) -> Shards:
    from bittern.scale import Shards

    return Shards.open(folder)


def _queries(path: Path, layout: CodeLayout | None, row: int | None) -> Codes:
    """The codes of a file, or one of them."""
    from bittern.inputs import read_codes

    codes = read_codes(path, layout=None if layout is None else layout.value)
    if row is None:
        return codes
    if not 0 <= row < len(codes):
        raise InputError(f"search: --row must be from 0 to {len(codes) - 1}, got {row}.")
    return codes[row : row + 1]


def _shown(
    rows: list[dict[str, Any]], row: int | None, columns: str | None, format: SearchFormat
) -> str:
    """The hits of a sharded database as a table or JSON; the query is named if there are many."""
    keys = ["id", "distance"] if row is not None else ["query", "id", "distance"]
    more = ["label"] if rows and "label" in rows[0] else []
    wanted = more if columns is None else [name.strip() for name in columns.split(",")]
    for name in wanted:
        if name not in more:
            raise InputError(f"search: no item has {name!r}; items have {more or 'no metadata'}.")
    keys += wanted
    listed = [{key: one[key] for key in keys} for one in rows]
    if format is SearchFormat.json:
        return json.dumps(listed, ensure_ascii=False)
    return _aligned([keys, *([str(value) for value in one.values()] for one in listed)])


def _check_files(row: int | None, vectors: Path | None, codes: Path | None) -> None:
    if (vectors is not None or codes is not None) and row is None:
        raise InputError("search: --vectors and --codes need --row, the row to search for.")
    if vectors is not None and codes is not None:
        raise InputError("search: give --vectors or --codes, not both.")


def _check_options(
    images: list[Path],
    unlike: list[Path],
    text: str | None,
    row: int | None,
    radius: int | None,
) -> None:
    if sum((bool(images), row is not None, text is not None)) != 1:
        raise InputError("search: give --text, --row, or one or more --image.")
    if unlike and not images:
        raise InputError("search: --unlike needs --image.")
    if radius is not None and len(images) + len(unlike) > 1:
        raise InputError("search: --radius is for one query, not for several examples.")


def _columns(columns: str | None, collection: Collection) -> list[str] | None:
    """The columns to show, checked where the collection knows its columns; None for the default."""
    if columns is None:
        return None
    known = collection.info()["metadata"]
    names = [name.strip() for name in columns.split(",")]
    for name in names:
        if known is not None and name not in known:
            raise InputError(f"search: no item has {name!r}; items have {', '.join(known)}.")
    return names


def _table(found: Matches, columns: list[str] | None) -> str:
    """One line per item."""
    from bittern.store.image_items import DETAILS

    there = dict.fromkeys(key for metadata in found.metadata for key in metadata)
    keys = [key for key in there if key not in DETAILS] if columns is None else columns
    lines = [["id", _value_name(found), *keys]]
    for id_, value, metadata in zip(found.ids, found.values, found.metadata, strict=True):
        shown = str(value) if found.is_distance else f"{value:.3g}"
        known = (" / ".join(str(metadata.get(key, "")).splitlines()) for key in keys)
        lines.append([str(id_), shown, *known])
    return _aligned(lines)


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _json(found: Matches) -> str:
    """A list of objects; ``file`` is where the image is now."""
    name = _value_name(found)
    rows = zip(found.ids.tolist(), found.values.tolist(), found.metadata, found.files, strict=True)
    listed = [
        {"id": i, name: value, **known} | ({} if file is None else {"file": str(file)})
        for i, value, known, file in rows
    ]
    return json.dumps(listed, ensure_ascii=False)


def _value_name(found: Matches) -> str:
    return "distance" if found.is_distance else "likeness"
