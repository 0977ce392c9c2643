"""Databases cut into shards: ``bittern shards``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import echo

from bittern.cli.app import Layout, app, handle_interrupt
from bittern.cli.fit import Key
from bittern.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from bittern.cli.evaluated_files import CodeOptions, GroundTruthFiles
    from bittern.profile import TieProfile

shards = typer.Typer(no_args_is_help=True, help="Create, encode, inspect and verify shards.")
app.add_typer(shards, name="shards")

Folder = Annotated[Path, typer.Argument(help="Folder of the sharded database.")]
Processes = Annotated[
    int | None, typer.Option(help="Work in so many processes of this machine instead of threads.")
]
Dask = Annotated[
    str | None, typer.Option(help="Work on a Dask cluster: its address, like tcp://127.0.0.1:8786.")
]


@shards.command("create")
def create_shards(
    folder: Folder,
    source: Annotated[
        Path, typer.Option("--from", help="File of codes; or of vectors, with --vectors.")
    ],
    vectors: Annotated[
        bool, typer.Option("--vectors", help="The file has vectors, to be encoded later.")
    ] = False,
    labels: Annotated[Path | None, typer.Option(help="Class of each item.")] = None,
    tags: Annotated[Path | None, typer.Option(help="Tags of each item as multi-hot rows.")] = None,
    key: Key = None,
    code_layout: Layout = None,
    shard_size: Annotated[int, typer.Option(help="Items of a shard.")] = 1_000_000,
) -> None:
    """Cut codes or vectors into shards of equal size, each in files of its own.

    Labels, tags and ids in the file come along. If this is stopped, the same command goes on.
    """
    from bittern.inputs import RowTable, read_classes, read_codes, read_tags, read_vectors
    from bittern.io.arrays import open_table
    from bittern.scale import Shards

    parts: dict[str, Any] = {}
    if vectors:
        file = read_vectors(source, key=key)
        parts["vectors"], rows = file.vectors, file.rows
    else:
        layout = None if code_layout is None else code_layout.value
        parts["codes"] = read_codes(source, layout=layout)
        rows = RowTable(open_table(source), len(parts["codes"]))
    parts |= {
        "labels": rows.labels if labels is None else read_classes(labels, "--tags"),
        "tags": rows.tags if tags is None else read_tags(tags),
        "ids": rows.ids,
    }
    with handle_interrupt():
        made = Shards.create(folder, **parts, shard_size=shard_size)
    echo(f"{folder}: {str(made).strip('<>')}.")


@shards.command("encode")
def encode_shards(
    folder: Folder,
    hasher: Annotated[Path, typer.Argument(help="A fitted hasher, from 'fit'.")],
    processes: Processes = None,
    dask: Dask = None,
) -> None:
    """Encode shards of vectors; if this is stopped, the same command goes on."""
    from bittern import scale

    with handle_interrupt(), executor_for(processes, dask) as executor:
        made = scale.encode(hasher, folder, executor=executor)
    echo(f"{folder}: {str(made).strip('<>')}.")


@shards.command("info")
def shards_info(folder: Folder) -> None:
    """Show what a sharded database holds."""
    from bittern.scale import Shards

    found = Shards.open(folder)
    facts = {
        "items": f"{found.n_items:,}",
        "shards": f"{len(found):,} of up to {found.shard_size:,} items",
        "holds": ", ".join(found.parts),
        "bits": "no codes yet" if found.n_bits is None else str(found.n_bits),
        "bytes": f"{found.n_bytes:,}",
        "codes made by": found.made_by.get("hasher", "not known"),
    }
    echo("\n".join(f"{name:<13}  {value}" for name, value in facts.items()))


@shards.command("verify")
def verify_shards(folder: Folder) -> None:
    """Read every file and compare it with its checksum; exit code 1 if one differs."""
    from bittern.scale import Shards

    found = Shards.open(folder)
    problems = found.verify()
    echo("\n".join(problems) if problems else f"{folder}: {len(found):,} shards are as written.")
    if problems:
        raise typer.Exit(1)


@contextmanager
def executor_for(processes: int | None, dask: str | None) -> Iterator[Executor | None]:
    """What runs the tasks: threads of this process (None), processes, or a cluster."""
    from bittern.checks import check_count

    if processes is not None and dask is not None:
        raise InputError("give --processes or --dask, not both.")
    if processes is not None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(
            check_count(processes, "--processes"), get_context("spawn")
        ) as pool:
            yield pool
    elif dask is not None:
        from bittern.scale.cluster import connect

        with connect(dask) as executor:
            yield executor
    else:
        yield None


def count_shards(
    queries: Path,
    folder: Path,
    truth: GroundTruthFiles,
    options: CodeOptions,
    executor: Executor | None,
) -> TieProfile:
    """The tie profile of a sharded database; labels, tags and vectors are in its shards."""
    from bittern import scale
    from bittern.inputs import has_array, read_classes, read_gains, read_tags, read_vectors
    from bittern.relevance import Relevance

    found = scale.Shards.open(folder)
    codes = options.read(queries)
    relevance: Any
    if truth.relevance is not None:
        relevance = Relevance.from_matrix(read_gains(truth.relevance))
    elif truth.neighbours is not None:
        vectors = read_vectors(truth.query_vectors or queries, key=truth.key)[:]
        relevance = scale.Neighbours(vectors, truth.neighbours, truth.distance or "euclidean")
    elif truth.has_tags or truth.graded:
        relevance = scale.Tags(read_tags(truth.query_tags or queries), truth.graded)
    elif truth.query_labels is not None or has_array(queries, "labels"):
        relevance = scale.Classes(read_classes(truth.query_labels or queries, "--query-tags"))
    else:
        raise InputError(
            "evaluate: there is no ground truth; give --query-labels, --query-tags, --relevance, "
            "or --neighbours with --query-vectors; the shards have the rest."
        )
    partial = folder / ".partial"
    return scale.profile(codes, found, relevance, executor=executor, partial=partial)
