"""Write a fitted hasher as an ONNX graph: ``bittern onnx``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bittern.cli.app import app, check_new_file, echo
from bittern.cli.fit import Force
from bittern.errors import InputError


@app.command()
def onnx(
    model: Annotated[
        Path, typer.Argument(help="A fitted hasher, from 'fit' or 'advise --export'.")
    ],
    output: Annotated[Path, typer.Argument(help="The graph to write, an .onnx file.")],
    modality: Annotated[
        str | None,
        typer.Option(help="For a hasher of images and texts: which of them, 'images' or 'texts'."),
    ] = None,
    bitorder: Annotated[
        str, typer.Option(help="Where the first bit of a byte is: 'big' or 'little'.")
    ] = "big",
    logits: Annotated[
        bool, typer.Option("--logits", help="Also output the numbers whose signs are the bits.")
    ] = False,
    dtype: Annotated[
        str, typer.Option(help="Type of the vectors: 'float32' or 'float64'.")
    ] = "float32",
    force: Force = False,
) -> None:
    """Write a fitted hasher as an ONNX graph, for runtimes without Python.

    The graph turns vectors, or images, into the packed bytes that 'encode' gives, and computes in
    double precision inside, so that no bit depends on how sums are rounded. It does not check its
    input: rows must be finite.
    """
    from bittern.hashing import load
    from bittern.hashing.crossmodal import CrossModalHasher

    if output.suffix != ".onnx":
        raise InputError(f"{output}: a graph is an .onnx file; choose such a name.")
    check_new_file(output, force=force, inputs=[model])
    hasher: Any = load(model)
    options: dict[str, Any] = dict(bitorder=bitorder, logits=logits, dtype=dtype)
    if isinstance(hasher, CrossModalHasher):
        if modality is None:
            raise InputError(
                f"{hasher.name} hashes images and texts: give --modality images or --modality "
                f"texts; each has a graph of its own."
            )
        options["modality"] = modality
    elif modality is not None:
        raise InputError(f"{hasher.name} hashes vectors of one kind: it has no --modality.")
    hasher.to_onnx(output, **options)
    n_bits, n_bytes = hasher.n_stored_bits, -(-hasher.n_stored_bits // 8)
    size = "1 byte" if n_bytes == 1 else f"{n_bytes} bytes"
    echo(f"{output}: {hasher.name}, from rows to codes of {n_bits} bits in {size}.")
