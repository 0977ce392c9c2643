"""Vectors out of a file, and an advice with its hasher into a folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.experiments.advising.record import Advice
from bittern.io.npz import stored_arrays

__all__ = ["check_export", "export", "map_vectors"]

VECTOR_NAMES = ("vectors", "features", "X")


def map_vectors(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The vectors of an ``.npy`` or ``.npz`` file, mapped: only the rows that are used are read."""
    stored = stored_arrays(Path(path))
    if not stored:
        raise FileError(f"{path}: has no arrays.")
    if len(stored) == 1:
        return next(iter(stored.values())).read()
    for name in VECTOR_NAMES:
        if name in stored:
            return stored[name].read()
    raise FileError(
        f"{path}: has no vectors; they are looked for under {', '.join(VECTOR_NAMES)}, and the "
        f"file has {', '.join(sorted(stored))}."
    )


def check_export(folder: Path) -> None:
    """Refuse, before the work, a folder that could not be made after it."""
    if folder.exists() or folder.is_symlink():
        raise FileError(f"{folder}: is there already; give the name of a folder to make.")
    if not folder.parent.is_dir():
        raise FileError(f"{folder}: cannot be made, there is no folder {folder.parent}.")
    if not os.access(folder.parent, os.W_OK):
        raise FileError(f"{folder}: cannot be made, the folder {folder.parent} is read-only.")


def export(advice: Advice, folder: Path) -> str:
    """Make a folder of ``hasher.npz``, ``advice.json`` and ``advice.txt``, whole or not at all.

    The hasher is the recommended one as it was measured: fitted on the training rows of the first
    split, not again on all rows, so that the figures are its own.  A sentence about it comes back.
    """
    check_export(folder)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        advice.hasher.save(made / "hasher.npz")
        (made / "advice.json").write_text(advice.to_json(indent=1) + "\n", encoding="utf-8")
        (made / "advice.txt").write_text(f"{advice}\n", encoding="utf-8")
        made.chmod(0o755)
        made.rename(folder)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    row = advice.recommended
    short = "" if advice.choice else ", which does not keep the target by itself"
    return (
        f"{folder} has hasher.npz, {row.method} with {row.n_bits} bits{short}, as it was measured: "
        f"fitted on {advice.sizes.train:,} rows; bt.hashing.load() reads it."
    )
