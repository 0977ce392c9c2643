"""The recommended model as files: the model, a program that uses it, and the advice."""

from __future__ import annotations

import os
from pathlib import Path

from bittern.errors import FileError
from bittern.experiments.advice.record import Advice
from bittern.experiments.advice.wording import name, rescored
from bittern.hashing import Hasher
from bittern.io.files import atomic_create

MODEL, PROGRAM = "model.npz", "search.py"
DISTANCES = {"euclidean": "l2", "cosine": "cosine"}  # of rerank


def check_export(folder: Path) -> None:
    """Raise FileError now if the folder or the ``.npz`` file could not be made later."""
    if folder.exists() or folder.is_symlink():
        kind = "file" if folder.suffix == ".npz" else "folder"
        raise FileError(f"{folder}: exists already; give the name of a new {kind}.")
    if not folder.parent.is_dir():
        raise FileError(f"{folder}: cannot be made, there is no folder {folder.parent}.")
    if not os.access(folder.parent, os.W_OK):
        raise FileError(f"{folder}: cannot be made, the folder {folder.parent} is read-only.")


def export(advice: Advice, folder: Path) -> str:
    """Write model, program, ``advice.json`` and ``advice.txt`` to a new folder, all or none.

    If the name ends in ``.npz``, it is a file, and has the model alone.

    The model is the recommended one as it was measured: fitted on the training rows of the first
    split, not on all rows, so that the figures hold for it.  Returns a sentence about it.
    """
    check_export(folder)
    alone = folder.suffix == ".npz"
    if alone:
        advice.model.save(folder)
    else:
        _write_folder(advice, folder)
    model = folder if alone else folder / MODEL
    short = "" if advice.rerank_choice else ", which does not keep the target"
    if isinstance(advice.model, Hasher):
        use = (
            "'bittern encode' and 'bittern index create --hasher' take it, and bt.hashing.load() "
            "reads it"
        )
    else:
        use = "bt.quantise.load() reads it"
    run = "" if alone else f" To see it search: python {folder / PROGRAM} VECTORS.npy"
    return (
        f"{model} has {name(advice.recommended)}{short}, as it was measured, fitted on "
        f"{advice.sizes.train:,} rows; {use}.{run}"
    )


def program(advice: Advice) -> str:
    """Python that loads the model, encodes vectors, searches, and rescores."""
    row, factor = advice.recommended, advice.factor
    what = f"{name(row)}{rescored(factor)}"
    lines = [
        f'"""Search by {what}: python {PROGRAM} VECTORS.npy"""',
        "",
        "import sys",
        "from pathlib import Path",
        "",
        "import numpy as np",
        "",
        "import bittern as bt",
        "",
        'vectors = np.load(sys.argv[1], mmap_mode="r")  # all items, one row each',
        "queries = np.asarray(vectors[:5])  # your queries",
        f'path = Path(__file__).with_name("{MODEL}")',
    ]
    return "\n".join([*lines, *_search(advice, factor), "print(hits.ids)", ""])


def _search(advice: Advice, factor: int) -> list[str]:
    """The lines that search, for a hash function or a quantiser."""
    row, k = advice.recommended, advice.k
    is_hasher = isinstance(advice.model, Hasher)
    if not is_hasher and row.columns is None:
        fine = "fine, quantiser=int8" if advice.store == "int8" else "vectors"
        found = "index" if factor == 1 else f"index.rescore({fine}, factor={factor})"
        return [
            *_fine(advice, factor),
            "quantiser = bt.quantise.load(path)",
            f"stored = quantiser.encode(vectors)  # {row.n_bytes} bytes of each item",
            "index = bt.QuantisedIndex(quantiser, stored)",
            f"hits = {found}.search(queries, {k})",
        ]
    lines = [*_coding(advice), f"hits = index.search(asked, {factor * k})"]
    if factor > 1:
        rows, distance = "vectors", DISTANCES[advice.metric]
        if advice.store == "int8":
            lines += [*_fine(advice, factor), "found = np.unique(hits.ids)"]
            rows = "int8.decode(fine[found]), ids=found"
        lines += [
            f'hits = bt.index.rerank(hits, queries, {rows}, distance="{distance}")',
            f"hits = bt.Hits(hits.ids[:, :{k}], hits.distances[:, :{k}])",
        ]
    return lines


def _fine(advice: Advice, factor: int) -> list[str]:
    """The lines that make vectors of int8, if these rescore."""
    if advice.store != "int8" or factor == 1:
        return []
    return [
        f'int8 = bt.quantise.Int8(metric="{advice.metric}").fit(vectors)',
        "fine = int8.encode(vectors)  # can be saved, and mapped from disk",
    ]


def _coding(advice: Advice) -> list[str]:
    """The lines that encode with a hash function, or a quantiser of the first columns."""
    row = advice.recommended
    size = f"  # {row.n_bytes} bytes of each item"
    if not isinstance(advice.model, Hasher):
        return [
            "quantiser = bt.quantise.load(path)",
            f"stored = quantiser.encode(vectors[:, :{row.columns}]){size}",
            "index = bt.QuantisedIndex(quantiser, stored)",
            f"asked = queries[:, :{row.columns}]",
        ]
    unit = " / np.linalg.norm({0}, axis=1, keepdims=True)" if advice.metric == "cosine" else ""
    return [
        "hasher = bt.hashing.load(path)",
        f"index = bt.FlatIndex(hasher.encode(vectors{unit.format('vectors')})){size}",
        f"asked = hasher.encode(queries{unit.format('queries')})",
    ]


def _write_folder(advice: Advice, folder: Path) -> None:
    with atomic_create(folder) as made:
        made.mkdir()
        advice.model.save(made / MODEL)
        (made / PROGRAM).write_text(program(advice), encoding="utf-8")
        (made / "advice.json").write_text(advice.to_json(indent=1) + "\n", encoding="utf-8")
        (made / "advice.txt").write_text(f"{advice}\n", encoding="utf-8")
