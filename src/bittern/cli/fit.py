"""Fit a hasher on vectors in files: ``bittern fit``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bittern.cli.app import app, check_new_file, echo, handle_interrupt
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.inputs import VectorFile

Vectors = Annotated[
    Path | None,
    typer.Option(help="Vectors (n, dim): .npy, .npz, .pt, .mat, .csv, .parquet or .h5."),
]
Images = Annotated[
    Path | None, typer.Option(help="Vectors of images, for a hasher of images and texts.")
]
Texts = Annotated[
    Path | None, typer.Option(help="Vectors of texts, which may be a sparse .npz of SciPy.")
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="Class of each row: an array, or text with one label per line (default: the array "
        "'labels' beside the vectors)."
    ),
]
Tags = Annotated[
    Path | None,
    typer.Option(
        help="Tags of each row as multi-hot rows (default: the array 'tags' beside the vectors)."
    ),
]
Key = Annotated[
    str | None,
    typer.Option(help="Name of the array of vectors, if the file has several; 'x*' joins columns."),
]
Seed = Annotated[
    int, typer.Option("--random-state", "--seed", help="Seed for the sample and the hasher.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]


@app.command()
def fit(
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="The model to write, an .npz file.")
    ],
    vectors: Vectors = None,
    images: Images = None,
    texts: Texts = None,
    key: Key = None,
    labels: Labels = None,
    tags: Tags = None,
    hasher: Annotated[str, typer.Option(help="Name of the hasher (see above).")] = "itq",
    bits: Annotated[int, typer.Option(help="Code length.")] = 64,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the hasher, as KEY=VALUE; may be repeated."),
    ] = None,
    fit_sample: Annotated[
        int | None, typer.Option(help="Learn from so many random rows (default: all).")
    ] = None,
    random_state: Seed = 0,
    force: Force = False,
) -> None:
    """Fit a hasher on vectors and write the model, for 'encode' and 'index create --hasher'.

    Hashers of vectors: agh, bre, csq, dbq, dpsh, dtsh, fasthash, grh, isohash, itq, itq-cca, klsh,
    ksh, lsh, machash, mhq, npq, p-stable, pcah, sdh, sh, sklsh, sth, structhash, talr, vbq. Of
    images and texts, with --images and --texts: cca-itq, cm-talr, cmfh, cmssh, crh, cvh, dch, dcmh,
    dlfh, imh, pdh, rcmh, scm-seq, scratch.
    """
    from bittern.extras import require
    from bittern.hashing.files import fit_files, make_hasher, read_targets
    from bittern.io.arrays import modules_to_read
    from bittern.io.toml import parse_change

    given = {"vectors": vectors, "images": images, "texts": texts}
    if output.suffix != ".npz":
        raise InputError(f"{output}: a model is an .npz file; choose such a name.")
    check_new_file(output, force=force, inputs=[*given.values(), labels, tags])
    changes = dict(parse_change(change, "n_iter=100") for change in settings or ())
    model = make_hasher(hasher, bits, changes, random_state=random_state)
    require({hasher: model.needs_modules} | modules_to_read(*given.values(), labels, tags))
    with _stoppable():
        files = read_files(given, key)
        targets = read_targets(labels, tags, next(iter(files.values())))
        y = next(iter(targets.values()), None)
        rows = fit_files(model, files, y, fit_sample=fit_sample)
        model.save(output)
    used = model._takes_y and y is not None
    about = f", with their {next(iter(targets))}" if used else ""
    unused = f" {hasher} does not use {next(iter(targets))}." if targets and not used else ""
    echo(f"{output}: {hasher} of {bits} bits, fitted on {len(rows):,} rows{about}.{unused}")


def read_files(given: dict[str, Path | None], key: str | None) -> dict[str, VectorFile]:
    """The files that options name, by option; at least one."""
    from bittern.inputs import read_vectors

    named = {side: path for side, path in given.items() if path is not None}
    if not named:
        raise InputError(
            "give --vectors; or for a hasher of images and texts, --images and --texts."
        )
    return {side: read_vectors(path, key=key) for side, path in named.items()}


@contextmanager
def _stoppable() -> Iterator[None]:
    """Show warnings as sentences; after Ctrl-C, say that nothing was written."""
    with handle_interrupt():
        try:
            with warnings.catch_warnings(record=True) as noted:
                warnings.simplefilter("default", UserWarning)
                yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt("fit: stopped; nothing was written.") from None
        for warning in noted:
            echo(f"bittern: {warning.message}", err=True)
