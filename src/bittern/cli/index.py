"""Collections of codes: ``bittern index``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import echo

from bittern.cli.app import BitOrder, app, handle_interrupt
from bittern.cli.features import OnBroken, OnError
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.store import Collection

index = typer.Typer(
    no_args_is_help=True, help="Create, change, inspect and export collections of codes."
)
app.add_typer(index, name="index")

Place = Annotated[str, typer.Argument(help="A collection: a file, or milvus://host:port/NAME.")]
Source = Annotated[
    Path, typer.Option("--from", help="A folder of images, or vectors in .npy or .npz.")
]
Captions = Annotated[
    str | None,
    typer.Option(
        help="Captions of the images: a .csv or .jsonl file with the columns file and caption, or "
        ".txt for a text file beside each image."
    ),
]
Where = Annotated[str | None, typer.Option(help="A condition like \"label = 'cat'\".")]


@index.command("create")
def create_index(
    name: Place,
    source: Source,
    features: Annotated[str, typer.Option(help="Feature that turns images into vectors.")] = "deep",
    texts: Captions = None,
    text_features: Annotated[
        str, typer.Option(help="Feature that turns texts into vectors, with --texts.")
    ] = "bag-of-words",
    hasher: Annotated[
        str | None,
        typer.Option(
            help="Hasher that turns vectors into codes (default: itq, or with --texts cca-itq)."
        ),
    ] = None,
    bits: Annotated[int, typer.Option(help="Code length.")] = 64,
    fit_sample: Annotated[
        int, typer.Option(help="Number of random items that the hasher learns from.")
    ] = 20_000,
    random_state: Annotated[int, typer.Option(help="Seed for that sample and the hasher.")] = 0,
    on_error: OnBroken = OnError.stop,
) -> None:
    """Create a collection from images or vectors: fit a hasher, encode and store.

    With --texts, images and texts get codes that can be compared, so that words find images and
    images find words.  If it is interrupted, run the same command again to continue.
    """
    from bittern.store.building import build_collection, make_recipe

    chosen = hasher or ("itq" if texts is None else "cca-itq")
    recipe = make_recipe(
        chosen,
        bits,
        features=features if source.is_dir() else None,
        texts=None if texts is None else text_features,
        random_state=random_state,
    )
    with handle_interrupt():
        built = build_collection(
            name,
            source,
            recipe,
            texts=texts,
            fit_sample=fit_sample,
            random_state=random_state,
            skip_broken=on_error is OnError.skip,
        )
    skipped = f", {built.n_skipped:,} images skipped" if built.n_skipped else ""
    echo(
        f"{name}: {built.n_items:,} items of {bits} bits{skipped}; {chosen} was fitted on "
        f"{built.n_fitted:,} {'of them' if texts is None else 'pairs'}."
    )


@index.command("add")
def add_to_index(
    name: Place, source: Source, texts: Captions = None, on_error: OnBroken = OnError.stop
) -> None:
    """Add images or vectors, encoded by the collection's feature and hasher; all or none."""
    from bittern import store
    from bittern.store.building import add_from

    with handle_interrupt(), store.open(name) as collection:
        n = add_from(collection, source, texts=texts, skip_broken=on_error is OnError.skip)
        echo(f"{name}: {n:,} items added, {len(collection):,} in total.")


@index.command("remove")
def remove_from_index(
    name: Place,
    id: Annotated[list[int] | None, typer.Option(help="Id of an item; may be repeated.")] = None,
    where: Where = None,
) -> None:
    """Remove items by id, or all that meet a condition."""
    from bittern import store

    with store.open(name) as collection:
        n = collection.delete(id or None, where=where)
        echo(f"{name}: {n:,} items removed, {len(collection):,} left.")


@index.command("info")
def index_info(name: Place) -> None:
    """Show what a collection holds and how its codes are made."""
    from bittern import store

    with store.open(name, read_only=True) as collection:
        facts = collection.info()
    width = max(map(len, facts))
    echo("\n".join(f"{fact:<{width}}  {_shown(value)}" for fact, value in facts.items()))


@index.command("export")
def export_index(
    name: Place,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet, .npy (packed bytes) or .faiss file.")
    ],
    bitorder: Annotated[
        BitOrder | None,
        typer.Option(
            help="Order of the bits in the bytes of .npy and .faiss, as in np.packbits "
            "(default: big)."
        ),
    ] = None,
) -> None:
    """Export a collection's items for other programs.

    A .faiss file keeps the ids; search it with bytes of the same order of bits. A .parquet file has
    ids, 64-bit words and metadata. A .npy file has bytes alone, without ids.
    """
    from bittern import store

    suffix = output.suffix.lower()
    if suffix not in (".parquet", ".npy", ".faiss"):
        raise InputError(f"{output}: must end in .parquet, .npy or .faiss.")
    if suffix == ".parquet" and bitorder is not None:
        raise InputError("index export: --bitorder is for bytes; a .parquet file has words.")
    with store.open(name, read_only=True) as collection:
        if suffix == ".parquet":
            collection.export(output)
            note = ""
        else:
            note = _export_bytes(collection, output, (bitorder or BitOrder.big).value)
        echo(f"{output}: {len(collection):,} items{note}.")


def _export_bytes(collection: Collection, output: Path, bitorder: Literal["big", "little"]) -> str:
    """Write the codes; return what the reader of the file must know."""
    from bittern.index.exchange import are_positions, write_bytes, write_faiss

    ids = collection.ids
    codes = collection.get(ids).codes
    if output.suffix.lower() == ".faiss":
        write_faiss(output, codes, ids=ids, bitorder=bitorder)
        return f" with their ids; search it with Codes.to_packed({bitorder!r})"
    write_bytes(output, codes, bitorder=bitorder)
    if not are_positions(ids):
        echo(
            f"bittern: warning: {output} lacks the ids, which are not 0, 1, 2, …; export to .faiss "
            "or .parquet to keep them.",
            err=True,
        )
    return f", packed as np.packbits(…, bitorder={bitorder!r})"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:,}" if isinstance(value, int) else str(value)
