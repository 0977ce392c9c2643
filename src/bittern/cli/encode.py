"""Encode vectors by a fitted hasher: ``bittern encode``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, check_new_file, echo, handle_interrupt
from bittern.cli.fit import Force, Images, Key, Labels, Tags, Texts, Vectors, read_files


@app.command()
def encode(
    model: Annotated[
        Path, typer.Argument(help="A fitted hasher, from 'fit' or 'advise --export'.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="The codes to write: .npz or .npy.")
    ],
    vectors: Vectors = None,
    images: Images = None,
    texts: Texts = None,
    key: Key = None,
    labels: Labels = None,
    tags: Tags = None,
    force: Force = False,
) -> None:
    """Encode vectors by a fitted hasher, for 'evaluate', 'search' and 'index create'.

    An .npz file of codes keeps what the file of vectors has for each row: labels, tags, ids, paths
    and other columns. Vectors in .npy, or in uncompressed .npz or HDF5, are read block by block.
    """
    from bittern.hashing import load
    from bittern.hashing.files import encode_file, read_targets
    from bittern.io import code_files

    given = {"vectors": vectors, "images": images, "texts": texts}
    check_new_file(output, force=force, inputs=[model, *given.values(), labels, tags])
    code_files.check_suffix(output)
    with handle_interrupt():
        try:
            hasher, files = load(model), read_files(given, key)
            file = next(iter(files.values()))
            about = file.rows.to_keep() | read_targets(labels, tags, file)
            codes = encode_file(hasher, files)
            code_files.write(output, codes.words, codes.n_bits, about)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("encode: stopped; nothing was written.") from None
    kept = f", with {', '.join(about)}" if about and output.suffix == ".npz" else ""
    echo(f"{output}: {len(codes):,} codes of {codes.n_bits} bits{kept}.")
