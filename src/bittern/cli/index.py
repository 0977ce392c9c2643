"""Collections of codes: ``bittern index``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bittern.cli.app import BitOrder, Layout, app, check_outputs, echo, handle_interrupt
from bittern.cli.exchange import write_items
from bittern.cli.features import OnBroken, OnError
from bittern.cli.fit import Key
from bittern.cli.sync import (
    NOTHING,
    PLACES,
    Broken,
    Captions,
    Exif,
    Skipped,
    Table,
    show_left_out,
    summary_of,
    sync_index,
)
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.store import Items
    from bittern.store.comparing import Changes

KINDS = {".npy": "npy", ".faiss": "faiss"}  # targets by the endings of their files

index = typer.Typer(
    no_args_is_help=True, help="Create, change, inspect and export collections of codes."
)
app.add_typer(index, name="index")
index.command("sync")(sync_index)

Place = Annotated[str, typer.Argument(help=PLACES)]
Source = Annotated[
    Path,
    typer.Option(
        "--from",
        help="A folder of images or of shards, a file of vectors, codes from 'encode' or as "
        "booleans, or with --code-layout codes of another program.",
    ),
]
Where = Annotated[str | None, typer.Option(help="A condition like \"label = 'cat'\".")]


@index.command("create")
def create_index(
    name: Place,
    source: Source,
    features: Annotated[
        str | None, typer.Option(help="Feature that turns images into vectors (default: deep).")
    ] = None,
    metadata: Table = None,
    exif: Exif = None,
    texts: Captions = None,
    text_features: Annotated[
        str, typer.Option(help="Feature that turns texts into vectors, with --texts.")
    ] = "bag-of-words",
    key: Key = None,
    code_layout: Layout = None,
    hasher: Annotated[
        str | None,
        typer.Option(
            help="Hasher that turns vectors into codes: a name to fit (default: itq, or with "
            "--texts cca-itq), the .npz file of a fitted one, or a perceptual hash of images "
            "(phash, dhash, ahash, whash, pdq)."
        ),
    ] = None,
    bits: Annotated[
        int | None, typer.Option(help="Code length (default: 64, or that of the hasher).")
    ] = None,
    fit_sample: Annotated[
        int, typer.Option(help="Number of random items that the hasher learns from.")
    ] = 20_000,
    random_state: Annotated[int, typer.Option(help="Seed for that sample and the hasher.")] = 0,
    on_error: OnBroken = OnError.stop,
    skipped: Skipped = None,
) -> None:
    """Create a collection from images, vectors or codes: fit a hasher, encode and store.

    Images are stored with their folder, what their files say (date, camera, size, place), and their
    row of --metadata; 'index sync' keeps the collection in step with the folder.
    With --texts, images and texts get codes that can be compared, so that words find images and
    images find words.  What a file has for each row (ids, labels, paths and other columns) is
    stored with the codes.  If it is interrupted, run the same command again to continue.
    """
    from bittern.io.addresses import without_password
    from bittern.store.building import build_collection, choose_recipe

    check_outputs(skipped)
    recipe = choose_recipe(
        source,
        hasher,
        bits,
        features=features,
        texts=None if texts is None else text_features,
        layout=code_layout,
        random_state=random_state,
    )
    with handle_interrupt():
        built = build_collection(
            name,
            source,
            recipe,
            metadata=metadata,
            with_exif=exif is not False,
            texts=texts,
            key=key,
            layout=code_layout,
            fit_sample=fit_sample,
            random_state=random_state,
            skip_broken=on_error is OnError.skip,
        )
    images = "image" if built.n_skipped == 1 else "images"
    n_skipped = f", {built.n_skipped:,} {images} skipped" if built.n_skipped else ""
    made = f"; {hasher} encoded them" if hasher is not None else ""
    if built.n_fitted:
        assert recipe.hasher is not None
        kind = "of them" if texts is None else "pairs"
        made = f"; {recipe.hasher.name} was fitted on {built.n_fitted:,} {kind}"
    items = f"{built.n_items:,} items of {built.n_bits} bits"
    echo(f"{without_password(name)}: {items}{n_skipped}{made}.")
    show_left_out(built.left_out, skipped)


@index.command("add")
def add_to_index(
    name: Place,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Images, and folders of images.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A folder of images, or a file of vectors or codes."),
    ] = None,
    metadata: Table = None,
    exif: Exif = None,
    texts: Captions = None,
    key: Key = None,
    code_layout: Layout = None,
    on_error: Broken = None,
    skipped: Skipped = None,
) -> None:
    """Add images, vectors or codes, encoded by the collection's feature and hasher; all or none.

    An image that is there already is not added again; if it changed, it is encoded again.
    """
    from bittern import store
    from bittern.io.addresses import without_password
    from bittern.store.syncing import add_files, add_from

    if bool(files) == (source is not None):
        raise InputError("index add: give images, or --from SOURCE.")
    check_outputs(skipped)
    skip = None if on_error is None else on_error is OnError.skip
    with handle_interrupt(), store.open(name) as collection:
        is_images = source is None or (source.is_dir() and collection.recipe.features is not None)
        if is_images and texts is None and not collection.recipe.is_crossmodal:
            images = files or [source or Path()]
            done = add_files(
                collection, images, metadata=metadata, with_exif=exif, skip_broken=skip
            )
            echo(f"{without_password(name)}: {_added(done)}, {len(collection):,} in total.")
            show_left_out(done.left_out, skipped)
        elif source is None or metadata is not None:
            raise InputError(
                f"{collection.place}: files and --metadata are for a collection of images alone."
            )
        else:
            n = add_from(
                collection,
                source,
                texts=texts,
                key=key,
                layout=code_layout,
                skip_broken=skip is True,
            )
            echo(f"{without_password(name)}: {n:,} items added, {len(collection):,} in total.")


def _added(done: Changes) -> str:
    """What was done, beginning with the number of new items."""
    others = summary_of(done._replace(added=()))
    return f"{len(done.added):,} items added" + ("" if others == NOTHING else f", {others}")


@index.command("remove")
def remove_from_index(
    name: Place,
    files: Annotated[list[Path] | None, typer.Argument(help="Images to remove.")] = None,
    id: Annotated[list[int] | None, typer.Option(help="Id of an item; may be repeated.")] = None,
    where: Where = None,
) -> None:
    """Remove items by image file, by id, or all that meet a condition; files stay on the disk."""
    from bittern import store
    from bittern.io.addresses import without_password
    from bittern.store.syncing import remove_files

    if sum((bool(files), bool(id), where is not None)) != 1:
        raise InputError("index remove: give images, --id or --where.")
    with store.open(name) as collection:
        n = remove_files(collection, files) if files else collection.delete(id or None, where=where)
        echo(f"{without_password(name)}: {n:,} items removed, {len(collection):,} left.")


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
    name: Annotated[
        str,
        typer.Argument(help="A collection, as for the other commands, or codes in .npz."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="A .parquet, .npy (packed bytes), .faiss, or .npz file (as from 'encode').",
        ),
    ],
    bitorder: Annotated[
        BitOrder | None,
        typer.Option(
            help="Order of the bits in the bytes of .npy and .faiss, as in np.packbits "
            "(default: big)."
        ),
    ] = None,
) -> None:
    """Export a collection's items, or a file of codes from 'encode', for other programs.

    A .faiss file keeps the ids; search it with bytes of the same order of bits. A .parquet file has
    ids, 64-bit words and metadata, and a .npz file is one as from 'encode'. A .npy file has bytes
    alone, without ids.
    """
    from bittern import store
    from bittern.store.code_items import is_code_file, read_any_items, write_code_file

    suffix = output.suffix.lower()
    if suffix not in (".parquet", ".npz", *KINDS):
        raise InputError(f"{output}: must end in .parquet, .npy, .faiss or .npz.")
    if suffix in (".parquet", ".npz") and bitorder is not None:
        raise InputError(f"index export: --bitorder is for bytes; a {suffix} file has words.")
    if suffix in KINDS:
        n, note = _export_bytes(read_any_items(name), output, bitorder or BitOrder.big)
        echo(f"{output}: {n:,} items{note}.")
        return
    if Path(name).is_file() and is_code_file(Path(name)):
        raise InputError(f"{output}: codes are exported to .npy or .faiss.")
    with store.open(name, read_only=True) as collection:
        if suffix == ".parquet":
            collection.export(output)
        else:
            write_code_file(output, collection.get(collection.ids))
        echo(f"{output}: {len(collection):,} items.")


def _export_bytes(items: Items, output: Path, bitorder: BitOrder) -> tuple[int, str]:
    """Write the codes; returns their number, and what the reader of the file must know."""
    kind = KINDS[output.suffix.lower()]
    lost = write_items(items, kind, output, bitorder)
    if kind == "faiss":
        note = f" with their ids; search it with Codes.to_packed({bitorder.value!r})"
        return len(items), note
    if "ids" in lost:
        echo(
            f"bittern: warning: {output} lacks the ids, which are not 0, 1, 2, …; export to .faiss "
            "or .parquet to keep them.",
            err=True,
        )
    return len(items), f", packed as np.packbits(…, bitorder={bitorder.value!r})"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:,}" if isinstance(value, int) else str(value)
