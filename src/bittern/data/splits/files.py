"""Files of splits: ``.npz``, written whole and verified when read."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from bittern.data.splits.base import Split
from bittern.data.splits.corel import CorelSplit
from bittern.data.splits.trecvid import TrecvidSplit
from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write, existing_file
from bittern.registry import Registry

__all__ = ["read", "write"]

KINDS: Registry[type[Split]] = Registry(
    "kind of split", {kind.__name__: kind for kind in (Split, CorelSplit, TrecvidSplit)}
)


def write(path: str | os.PathLike[str], split: Split) -> None:
    """Write arrays as they are and all else as one text of JSON."""
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: a split is saved as .npz.")
    values = {one.name: getattr(split, one.name) for one in fields(split)}
    arrays = {name: v for name, v in values.items() if isinstance(v, np.ndarray)}
    rest = {name: v for name, v in values.items() if name not in arrays}
    text = json.dumps(
        {"kind": type(split).__name__, "fingerprint": split.fingerprint, "fields": rest}
    )
    with atomic_write(path) as file:
        np.savez_compressed(file, allow_pickle=False, split=np.array(text), **arrays)


def read(path: str | os.PathLike[str]) -> Split:
    """The split of a file; a file that was changed or damaged is refused by name."""
    source = existing_file(path)
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
        about = json.loads(str(arrays.pop("split")))
        split = KINDS[about["kind"]](**arrays, **about["fields"])
        fingerprint = about["fingerprint"]
    except Exception as error:  # zip, deflate, NumPy and JSON raise a dozen kinds on damaged files
        raise FileError(f"{source}: not a readable split ({error}).") from error
    if split.fingerprint != fingerprint:
        raise FileError(
            f"{source}: has the fingerprint {split.fingerprint}, {fingerprint} was written."
        )
    return split
