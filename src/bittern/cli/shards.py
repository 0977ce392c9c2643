"""Databases cut into shards: ``bittern shards``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bittern.cli.app import CodeLayout, Layout, app, echo, handle_interrupt, whole
from bittern.cli.fit import Key
from bittern.cli.sharded import Dask, Processes, executor_for
from bittern.errors import InputError

shards = typer.Typer(no_args_is_help=True, help="Create, encode, inspect, verify and plan shards.")
app.add_typer(shards, name="shards")

Folder = Annotated[Path, typer.Argument(help="Folder of the sharded database.")]


@shards.command("create")
def create_shards(
    folder: Folder,
    source: Annotated[
        str,
        typer.Option(
            "--from", help="File of codes, or of vectors with --vectors; or a collection of codes."
        ),
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

    Labels, tags and ids in the file come along; from a collection, ids and the key 'label'. Codes
    may be .npy, .npz, or Parquet with a column of fixed-size binary, among others. If this is
    stopped, the same command goes on.
    """
    from bittern.inputs import read_classes, read_tags
    from bittern.io.kinds import describe
    from bittern.scale import Shards
    from bittern.store import is_address

    if is_address(source) or (Path(source).is_file() and "collection" in describe(Path(source))):
        parts = _parts_of_collection(source, vectors, key, code_layout)
    else:
        parts = _parts_of_file(Path(source), vectors, key, code_layout)
    if labels is not None:
        parts["labels"] = read_classes(labels, "--tags")
    if tags is not None:
        parts["tags"] = read_tags(tags)
    with handle_interrupt():
        made = Shards.create(folder, **parts, shard_size=shard_size)
    echo(f"{folder}: {str(made).strip('<>')}.")


def _parts_of_file(
    source: Path, vectors: bool, key: str | None, layout: CodeLayout | None
) -> dict[str, Any]:
    """Codes or vectors of a file, and what it says about them; mapped if the format allows."""
    from bittern.codes import Codes
    from bittern.inputs import RowTable, holds_codes, read_codes, read_vectors
    from bittern.io.arrays import open_table

    if vectors:
        file = read_vectors(source, key=key)
        rows, found = file.rows, {"vectors": file.vectors}
    else:
        is_ours = layout is None and source.suffix in (".npy", ".npz") and holds_codes(source)
        name = None if layout is None else layout.value
        codes = Codes.load(source, mmap=True) if is_ours else read_codes(source, layout=name)
        rows, found = RowTable(open_table(source), len(codes)), {"codes": codes}
    return {**found, "labels": rows.labels, "tags": rows.tags, "ids": rows.ids}


def _parts_of_collection(
    place: str, vectors: bool, key: str | None, layout: CodeLayout | None
) -> dict[str, Any]:
    """Codes and ids of a collection, in order of ids, and labels if every item has one."""
    import numpy as np

    from bittern import store

    if vectors or key is not None or layout is not None:
        raise InputError(
            "shards: a collection has codes; leave out --vectors, --key and --code-layout."
        )
    with store.open(place, read_only=True) as collection:
        items = collection.get(np.sort(collection.ids))
    labels = [known.get("label") for known in items.metadata]
    are_there = bool(labels) and all(label is not None for label in labels)
    return {"codes": items.codes, "ids": items.ids, "labels": labels if are_there else None}


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


@shards.command("plan")
def plan_shards(
    items: Annotated[float, typer.Argument(help="Number of items, such as 1e9.")],
    bits: Annotated[int, typer.Option(help="Bits of a code.")] = 64,
    queries: Annotated[int, typer.Option(help="Number of queries.")] = 1000,
    machines: Annotated[int, typer.Option(help="Number of machines.")] = 1,
    cores: Annotated[int, typer.Option(help="Cores of each machine.")] = 1,
    shard_size: Annotated[int, typer.Option(help="Items of a shard.")] = 1_000_000,
) -> None:
    """Say how long an evaluation with classes will take, and how much memory and disk it needs.

    The costs were measured on one machine; see the page on scale.
    """
    from bittern.scale import plan

    n = whole(items, "shards: the number of items")
    found = plan(n, bits, queries, machines, cores=cores, shard_size=shard_size)
    echo(str(found))
