"""Codes for other programs, and back: ``bittern export`` and ``bittern import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bittern.cli.app import BitOrder, app, check_new_file, echo
from bittern.cli.fit import Force
from bittern.errors import InputError, UnknownNameError
from bittern.registry import Registry

if TYPE_CHECKING:
    from bittern.store import Items

RABITQ = "faiss-rabitq"  # beside the targets of codes
Order = Annotated[
    BitOrder | None,
    typer.Option(help="Order of the bits in a byte, as in np.packbits, if the target has none."),
]
Name = Annotated[
    str | None,
    typer.Option(help="Name of the table, collection or type of documents, where there is one."),
]
Quantiser = Annotated[
    Path | None, typer.Option(help=f"The fitted quantiser that made the bytes, for {RABITQ}.")
]


@app.command("export")
def export_codes(
    source: Annotated[
        str,
        typer.Argument(
            help="Codes (.npz or .npy), a saved index (.npz), or a collection (a file or an "
            "address)."
        ),
    ],
    output: Annotated[str, typer.Argument(help="The file, folder or address to write.")],
    to: Annotated[str, typer.Option("--to", help="The target (see above).")],
    bitorder: Order = None,
    name: Name = None,
    quantiser: Quantiser = None,
    force: Force = False,
) -> None:
    """Write codes, with ids and metadata, for another program.

    Targets: faiss, pgvector (.csv), pgvector-copy, sqlite-vec, usearch, lancedb (a folder
    NAME.lance), milvus (FILE.db, or milvus://host:port/NAME), vespa (.jsonl), parquet, arrow,
    huggingface (a folder), ubinary, binary and npy (.npy); and faiss-rabitq, for bytes of a
    quantiser.
    """
    from bittern.io.exchange import TARGETS
    from bittern.store.code_items import read_any_items

    _check_kind(to)
    if to == RABITQ:
        _check_output(output, source, force)
        _export_rabitq(Path(source), Path(output), quantiser)
        return
    _refuse_quantiser(quantiser)
    target = TARGETS[to]
    if not target.is_shared:
        _check_output(output, source, force)
    items = read_any_items(source)
    lost = write_items(items, to, output, bitorder, name)
    if lost:
        echo(f"bittern: warning: {output} has no place for {' and '.join(lost)}.", err=True)
    size = f"{len(items):,} codes of {items.codes.n_bits} bits"
    echo(f"{output}: {size}, {target.title}, bit order {bitorder or target.bitorder}.")


@app.command("import")
def import_codes(
    source: Annotated[str, typer.Argument(help="The file, folder or address to read.")],
    kind: Annotated[str, typer.Option("--from", help="The program that it is of (see above).")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Codes to write (.npz, or .npy without ids and metadata), or a new collection.",
        ),
    ],
    bits: Annotated[
        int | None,
        typer.Option("--bits", help="Code length, if the last byte is padded and nothing says it."),
    ] = None,
    bitorder: Order = None,
    name: Name = None,
    quantiser: Quantiser = None,
    force: Force = False,
) -> None:
    """Read codes, with ids and metadata, that 'export' or another program wrote.

    Programs: faiss, pgvector, pgvector-copy, sqlite-vec, usearch, lancedb, milvus, vespa, parquet,
    arrow, huggingface, ubinary, binary, npy; and faiss-rabitq, for bytes of a quantiser.
    """
    from bittern import store

    _check_kind(kind)
    _check_output(output, source, force)
    if kind == RABITQ:
        _import_rabitq(Path(source), Path(output), quantiser)
        return
    _refuse_quantiser(quantiser)
    items = store.read_items(kind, source, n_bits=bits, bitorder=_order(bitorder), name=name)
    _write_output(items, output, force=force)
    echo(f"{output}: {len(items):,} codes of {items.codes.n_bits} bits.")


def write_items(
    items: Items, kind: str, output: str | Path, bitorder: BitOrder | None, name: str | None = None
) -> list[str]:
    """Write what the target can hold; returns what it cannot."""
    from bittern.io.exchange import TARGETS, are_positions

    target = TARGETS[kind]
    lost = {
        "ids": not target.has_ids and not are_positions(items.ids),
        "metadata": not target.has_metadata and any(items.metadata),
    }
    items.codes.to(
        kind,
        output,
        ids=items.ids if target.has_ids else None,
        metadata=items.metadata if target.has_metadata else None,
        bitorder=_order(bitorder),
        name=name,
    )
    return [what for what, is_lost in lost.items() if is_lost]


def _check_kind(kind: str) -> None:
    """Raise an error that lists the targets, unless ``kind`` is one of them."""
    from bittern.io.exchange import TARGETS

    if kind != RABITQ and kind not in TARGETS:
        raise UnknownNameError(Registry("target", {**TARGETS, RABITQ: None}).refusal(kind))


def _order(bitorder: BitOrder | None) -> Literal["big", "little"] | None:
    return None if bitorder is None else bitorder.value


def _write_output(items: Items, output: str, *, force: bool) -> None:
    """Write codes, or make a collection."""
    from bittern import store
    from bittern.store.code_items import write_code_file

    suffix = Path(output).suffix.lower()
    if suffix == ".npz":
        write_code_file(output, items)
    elif suffix == ".npy":
        items.codes.save(output)
    else:
        if force and not store.is_address(output):
            Path(output).unlink(missing_ok=True)
        with store.create(output, items.codes.n_bits, draft="bittern import") as collection:
            collection.add(items.codes, items.ids, items.metadata)
            collection.finish()


def _export_rabitq(source: Path, output: Path, quantiser: Path | None) -> None:
    from bittern.index import QuantisedIndex, write_faiss_rabitq
    from bittern.io.npz import stored_arrays
    from bittern.quantise import QuantisedCodes
    from bittern.quantise import load as load_quantiser

    model = load_quantiser(_needed(quantiser))
    if "ids" in stored_arrays(source):
        index = QuantisedIndex.load(source, model)
    else:
        index = QuantisedIndex(model, QuantisedCodes.load(source))
    write_faiss_rabitq(output, index)
    echo(f"{output}: {len(index):,} items, FAISS IndexRaBitQ.")


def _import_rabitq(source: Path, output: Path, quantiser: Path | None) -> None:
    from bittern.index import read_faiss_rabitq
    from bittern.quantise import load as load_quantiser

    index = read_faiss_rabitq(source, load_quantiser(_needed(quantiser)))
    index.save(output)
    echo(f"{output}: {len(index):,} items of {index.quantiser.n_bytes_} bytes.")


def _needed(quantiser: Path | None) -> Path:
    if quantiser is None:
        raise InputError(f"{RABITQ}: give the fitted quantiser, --quantiser MODEL.npz.")
    return quantiser


def _refuse_quantiser(quantiser: Path | None) -> None:
    if quantiser is not None:
        raise InputError(f"--quantiser is for {RABITQ}.")


def _check_output(output: str, source: str, force: bool) -> None:
    if "://" not in output:
        check_new_file(Path(output), force=force, inputs=[Path(source)])
