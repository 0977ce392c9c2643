"""Audit an index that someone else runs: ``bittern audit``."""

from __future__ import annotations

import csv
import io
import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bittern.cli.app import BitOrder, Layout, VectorMetric, app, echo, handle_interrupt
from bittern.cli.evaluated_files import CodeOptions
from bittern.cli.fit import Key
from bittern.cli.sharded import Dask, Processes, executor_for
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.engines import Audit

SHOWN = ("query", "needed", "found", "recall", "expected_recall", "limit", "tied", "returned")
TOTALS = ("lost", "missing", "farther", "repeated", "unknown", "unordered")


class AuditFormat(StrEnum):
    """Formats of an audit."""

    table = "table"
    json = "json"
    csv = "csv"


@app.command()
def audit(
    queries: Annotated[
        Path, typer.Argument(help="Codes of the queries; or their vectors, with --metric.")
    ],
    database: Annotated[
        str,
        typer.Argument(
            help="Codes of the database, a folder of shards, or a collection; or vectors, with "
            "--metric."
        ),
    ],
    hits: Annotated[
        Path,
        typer.Argument(
            help="What the engine found: ids and distances (.npz), ids (.npy), rows of query, id, "
            "distance and rank (.csv, .parquet), or a TREC run."
        ),
    ],
    k: Annotated[
        int | None, typer.Option("-k", help="Number of hits asked for (default: those returned).")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="The engine was asked for all items within this distance.")
    ] = None,
    metric: Annotated[
        VectorMetric | None, typer.Option(help="The files have vectors, with this distance.")
    ] = None,
    key: Key = None,
    bits: Annotated[
        int | None, typer.Option(help="Code length, if bytes or words are padded.")
    ] = None,
    code_layout: Layout = None,
    bitorder: Annotated[
        BitOrder | None,
        typer.Option(help="Order of the bits in packed bytes, as in np.packbits (default: big)."),
    ] = None,
    query_ids: Annotated[
        bool,
        typer.Option(
            "--query-ids", help="Queries in rows and runs have the ids in QUERIES, not positions."
        ),
    ] = False,
    positions: Annotated[
        bool,
        typer.Option("--positions", help="Hits are positions in DATABASE, though it has ids."),
    ] = False,
    worst: Annotated[
        int, typer.Option(help="Number of queries with the least recall to show.")
    ] = 5,
    format: Annotated[
        AuditFormat, typer.Option(help="Output format; csv has a row for each query.")
    ] = AuditFormat.table,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with code 1 if the recall is lower than this.")
    ] = None,
    processes: Processes = None,
    dask: Dask = None,
) -> None:
    """Say how much of the exact answer an engine finds, ties counted fairly, and what is wrong.

    An item as far as the last one of an exact list is as right as that one. The hits may come from
    FAISS, Milvus, pgvector, usearch or any other engine.
    """
    from bittern.checks import check_count
    from bittern.engines import audit as compare
    from bittern.engines import read_hits

    check_count(worst, "--worst", least=0)
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise InputError(f"--fail-under must be between 0 and 1, got {fail_under:g}.")
    options = CodeOptions(bits, False, code_layout, bitorder)
    asked, asked_ids = _read(queries, options, metric, key)
    items, ids = _database(database, options, metric, key)
    if query_ids and asked_ids is None:
        raise InputError(f"{queries}: has no ids of queries; leave out --query-ids.")
    ids = None if positions else ids
    names = ids if ids is not None and ids.dtype.kind not in "iu" else None
    found = read_hits(hits, len(asked), query_ids=asked_ids if query_ids else None, names=names)
    with handle_interrupt(), executor_for(processes, dask) as executor:
        audited = compare(
            asked,
            items,
            found,
            k=k,
            radius=radius,
            ids=ids if names is None else None,
            metric=None if metric is None else metric.value,
            executor=executor,
        )
    echo(_shown(audited, format, worst))
    if fail_under is not None and not audited.means["recall"] >= fail_under:
        raise typer.Exit(1)


def _read(
    path: Path, options: CodeOptions, metric: VectorMetric | None, key: str | None
) -> tuple[Any, Any]:
    """The codes or vectors of a file, and their ids if it has some."""
    from bittern.inputs import RowTable, read_vectors
    from bittern.io.arrays import open_table

    if metric is not None:
        file = read_vectors(path, key=key)
        return file[:], file.rows.ids
    codes = options.read(path)
    return codes, RowTable(open_table(path), len(codes)).ids


def _database(
    place: str, options: CodeOptions, metric: VectorMetric | None, key: str | None
) -> tuple[Any, Any]:
    """The items that the engine searched, and their ids."""
    from bittern.io.addresses import is_address
    from bittern.scale.shards import MANIFEST, Shards
    from bittern.store.code_items import is_collection_or_index, read_any_items

    path = Path(place)
    if is_address(place) or is_collection_or_index(path):
        items = read_any_items(place)
        return items.codes, items.ids
    if (path / MANIFEST).is_file():
        return Shards.open(path), None
    return _read(path, options, metric, key)


def _shown(audited: Audit, format: AuditFormat, worst: int) -> str:
    if format is AuditFormat.json:
        listed = {**audited.to_dict(), "worst": audited.rows(audited.worst(worst))}
        return json.dumps(listed, ensure_ascii=False, indent=1)
    if format is AuditFormat.csv:
        text = io.StringIO()
        rows = audited.rows()
        writer = csv.DictWriter(text, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().removesuffix("\n")
    lines = [*audited.sentences(), "", *_summary(audited)]
    if len(chosen := audited.worst(worst)):
        lines += ["", "Queries with the least recall:", *_table(audited.rows(chosen))]
    return "\n".join(lines)


def _summary(audited: Audit) -> list[str]:
    """The means, the totals and the values reported, a line each."""
    means, told = audited.means, audited.to_dict()
    values = audited.reported
    lines = {
        "recall": f"{means['recall']:.4f}  any item at the last distance is right",
        "expected": f"{means['expected_recall']:.4f}  against an exact list with random ties",
        "worst": f"{means['worst_recall']:.4f}  against the least favourable exact list",
        "complete": f"{told['complete_queries']:,} of {told['queries']:,} queries",
    }
    if told["undefined_queries"]:
        lines["undefined"] = f"{told['undefined_queries']:,} queries, which need nothing"
    lines |= {name: f"{told[name]:,}" for name in TOTALS if told[name]}
    lines["reported"] = (
        f"{values.formula}; {values.n_wrong:,} of {values.n:,} values differ"
        if values.n
        else "no distances"
    )
    return [f"{name:<10}  {value}" for name, value in lines.items()]


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Aligned columns."""
    cells = [[name.replace("_recall", "") for name in SHOWN]]
    for row in rows:
        values = (row[name] for name in SHOWN)
        cells.append(
            [f"{v:.4g}" if isinstance(v, float) else f"{v}" for v in values],
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]
