"""The recommended model as files: the model, a program that uses it, and the advice."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from bittern.errors import FileError
from bittern.experiments.advice.record import Advice
from bittern.experiments.advice.wording import name, rescored
from bittern.hashing import Hasher

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
    """The lines that search, for a hash function, the first columns, or another quantiser."""
    row, k = advice.recommended, advice.k
    distance = DISTANCES[advice.metric]
    again = [
        f'hits = bt.rerank(hits, queries, vectors, distance="{distance}")',
        f"hits = bt.Hits(hits.ids[:, :{k}], hits.distances[:, :{k}])",
    ]
    if isinstance(advice.model, Hasher):
        unit = "" if advice.metric == "euclidean" else "unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)"
        of = (lambda rows: rows) if not unit else (lambda rows: f"unit({rows})")
        return [
            "hasher = bt.hashing.load(path)",
            *([unit] if unit else []),
            f"index = bt.FlatIndex(hasher.encode({of('vectors')}))  # {row.n_bytes} bytes of each item",
            f"hits = index.search(hasher.encode({of('queries')}), {factor * k})",
            *(again if factor > 1 else []),
        ]
    lines = ["quantiser = bt.quantise.load(path)"]
    if row.columns is not None:
        return [
            *lines,
            f"index = bt.QuantisedIndex(quantiser, quantiser.encode(vectors[:, :{row.columns}]))",
            f"hits = index.search(queries[:, :{row.columns}], {factor * k})",
            *(again if factor > 1 else []),
        ]
    lines.append(
        f"index = bt.QuantisedIndex(quantiser, quantiser.encode(vectors))  # {row.n_bytes} bytes of each item"
    )
    found = "index" if factor == 1 else f"index.rescore(vectors, factor={factor})"
    return [*lines, f"hits = {found}.search(queries, {k})"]


def _write_folder(advice: Advice, folder: Path) -> None:
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        advice.model.save(made / MODEL)
        (made / PROGRAM).write_text(program(advice), encoding="utf-8")
        (made / "advice.json").write_text(advice.to_json(indent=1) + "\n", encoding="utf-8")
        (made / "advice.txt").write_text(f"{advice}\n", encoding="utf-8")
        made.chmod(0o755)
        made.rename(folder)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
