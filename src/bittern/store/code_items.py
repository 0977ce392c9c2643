"""Items of a collection to and from files of codes, as ``bittern encode`` writes them."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern import store
from bittern.checks import PositionArray, check_new_ids
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index.base import Index
from bittern.index.index_file import HEAD
from bittern.inputs import RowTable, holds_bits, holds_codes, read_codes
from bittern.io import code_files
from bittern.io.arrays import IDS, LABELS, open_table
from bittern.io.kinds import IS_DUCKDB, IS_NPZ, describe
from bittern.io.metadata import column_name, columns_of, rows_of
from bittern.io.npz import array_names
from bittern.store.base import Items
from bittern.store.recipe import Recipe

PLURALS = {"label": "labels", "path": "paths"}  # metadata that files of codes name so


@dataclass(frozen=True, slots=True, eq=False)
class CodeItems:
    """Codes that were made before, and their metadata as columns."""

    codes: Codes
    metadata: dict[str, Any]
    ids: NDArray[np.int64] | None = None
    left_out: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_bits(self) -> int:
        """Length of the codes."""
        return self.codes.n_bits

    @property
    def learnable(self) -> PositionArray:
        """None: a hasher learns from vectors."""
        return np.arange(0)

    def fitted(self, recipe: Recipe, rows: PositionArray) -> Recipe:
        """The recipe as it is."""
        return recipe

    def encode(self, recipe: Recipe, rows: slice) -> Codes:
        """Some of the codes."""
        return self.codes[rows]

    def digest(self) -> str:
        """A hash of the content and its order."""
        ids = None if self.ids is None else self.ids.tolist()
        known = json.dumps([self.codes.n_bits, self.metadata, ids]).encode()
        return hashlib.blake2b(known + self.codes.words.tobytes(), digest_size=16).hexdigest()


def is_code_file(source: Path, layout: str | None = None) -> bool:
    """Whether it is a file of codes: one that this package wrote, booleans, or of a given layout.

    Booleans are codes, as they are for ``bittern evaluate``.
    """
    if layout is not None:
        return source.is_file()
    is_numpy = source.suffix.lower() in (".npy", ".npz")
    return is_numpy and (holds_codes(source) or holds_bits(source))


def read_code_items(source: Path, recipe: Recipe, layout: str | None = None) -> CodeItems:
    """The items of a file of codes; a hasher in the recipe must be the one that made them.

    ``layout`` is that of codes of other programs (see :mod:`bittern.io.code_layouts`).
    """
    if recipe.is_crossmodal:
        raise InputError(f"{source}: holds codes; images and texts are stored from their vectors.")
    is_ours = layout is None and holds_codes(source)
    codes = Codes.load(source) if is_ours else read_codes(source, layout=layout)
    if recipe.hasher is not None and not recipe.is_fitted:
        raise InputError(
            f"{source}: holds codes; give the fitted model that made them (--hasher FILE.npz), or "
            "no hasher."
        )
    if recipe.hasher is not None and recipe.hasher.n_stored_bits != codes.n_bits:
        raise InputError(
            f"{source}: has codes of {codes.n_bits} bits, but the model makes codes of "
            f"{recipe.hasher.n_stored_bits}."
        )
    return CodeItems(codes, *about_rows(RowTable(open_table(source), len(codes))))


def about_rows(rows: RowTable) -> tuple[dict[str, Any], NDArray[np.int64] | None]:
    """Metadata as columns, and ids if the file has whole numbers; other ids become ``name``."""
    columns, ids = rows.columns(), rows.ids
    for name in (*LABELS, *IDS):
        columns.pop(name, None)
    metadata: dict[str, Any] = {}
    if "paths" in columns:
        metadata["path"] = columns.pop("paths").tolist()
    if rows.labels is not None:
        metadata["label"] = _class_names(rows.labels, rows.class_names)
    if ids is not None and ids.dtype.kind not in "iu":
        metadata["name"], ids = ids.tolist(), None
    metadata |= {column_name(name): column.tolist() for name, column in columns.items()}
    return metadata, None if ids is None else ids.astype(np.int64)


def is_collection_or_index(file: Path) -> bool:
    """Whether a file is a collection or a saved index, not a file of arrays."""
    if not file.is_file():
        return False
    kind = describe(file)
    return kind == IS_DUCKDB or (
        kind == IS_NPZ and {HEAD, "words", "ids"} <= set(array_names(file))
    )


def read_any_items(place: str) -> Items:
    """The items of a file of codes, of a saved index, or of a collection."""
    file = Path(place)
    if file.is_file() and file.suffix.lower() in (".npy", ".npz"):
        if is_code_file(file):
            known = read_code_items(file, Recipe())
            ids = np.arange(len(known)) if known.ids is None else known.ids
            return Items(
                check_new_ids(ids, len(known), place),
                known.codes,
                rows_of(columns_of(known.metadata, len(known), place), len(known)),
            )
        if not is_collection_or_index(file):
            raise FileError(
                f"{place}: holds neither codes nor a saved index; 'bittern encode' makes codes of "
                "vectors."
            )
        index = Index.load(file)
        return Items(index.ids, index.codes, [{} for _ in index.ids])
    with store.open(place, read_only=True) as collection:
        return collection.get(collection.ids)


def _class_names(labels: NDArray[Any], names: list[str]) -> list[Any]:
    """Labels as the names of classes, if there are names; -1 is no class."""
    if not names or labels.dtype.kind not in "iu":
        return labels.tolist()
    known = {**dict(enumerate(names)), -1: None}
    return [known.get(label, label) for label in labels.tolist()]


def write_code_file(path: str | os.PathLike[str], items: Items) -> None:
    """Write codes, ids, and the metadata that are numbers or text, to an ``.npz`` file."""
    about: dict[str, NDArray[Any]] = {"ids": items.ids}
    for name in dict.fromkeys(name for known in items.metadata for name in known):
        values = [known.get(name) for known in items.metadata]
        kinds = {type(value) for value in values}
        if kinds in ({str}, {int}, {float}, {bool}, {int, float}):
            about[PLURALS.get(name, name)] = np.array(values)
        elif kinds == {str, type(None)}:
            about[PLURALS.get(name, name)] = np.array([value or "" for value in values])
    code_files.write(path, items.codes.words, items.codes.n_bits, about)
