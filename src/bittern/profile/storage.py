"""Profiles on disk: one ``.npz`` of plain arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write, existing_file, reading

if TYPE_CHECKING:
    from bittern.profile.base import TieProfile

__all__ = ["damaged", "read", "write"]

ARRAYS = ("counts", "gains", "unretrieved", "distances", "query_ids")
TREC = "trec_"  # before the arrays of the ranking in trec_eval's order


def write(path: str | os.PathLike[str], profile: TieProfile) -> None:
    """Write all arrays of a profile."""
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: a profile is saved as .npz.")
    arrays: dict[str, Any] = {"is_compact": np.bool_(profile.is_compact)}
    for prefix, part in (("", profile), (TREC, profile.trec)):
        for name in ARRAYS:
            value = getattr(part, name, None)
            if value is not None:
                arrays[prefix + name] = value
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of a profile; those of the ranking in trec_eval's order under ``trec``."""
    source = existing_file(path)
    with (
        reading(source, "tie profile"),
        source.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        arrays = {name: archive[name] for name in archive.files}
    fields: dict[str, Any] = {n: a for n, a in arrays.items() if not n.startswith(TREC)}
    if "is_compact" not in fields or "counts" not in fields:
        raise FileError(f"{source}: not a tie profile; it has the arrays {sorted(arrays)}.")
    with reading(source, "tie profile"):
        fields["is_compact"] = bool(fields["is_compact"].item())
    trec = {n.removeprefix(TREC): a for n, a in arrays.items() if n.startswith(TREC)}
    return fields | ({"trec": trec} if trec else {})


def damaged(path: str | os.PathLike[str], error: Exception) -> FileError:
    """The error for a file that cannot be read as a profile."""
    return FileError(f"{path}: not a readable tie profile ({error}).")
