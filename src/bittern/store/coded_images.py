"""Codes of the images of a folder or the items of a collection, by name, for duplicates."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from bittern import store
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.features import PERCEPTUAL, extract
from bittern.features.base import ImagePaths, find_images
from bittern.features.extracted import NoImageError
from bittern.io.files import temporary_folder
from bittern.store.building import make_recipe
from bittern.store.queries import image_file
from bittern.store.recipe import Recipe

DEFAULT_HASHER = "phash"
Place = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, eq=False)
class CodedImages:
    """Items with their codes: names (paths, or ids without a path), files, and what made the codes.

    ``states`` are size and time of each file of a folder, to see later whether it has changed.
    """

    place: str
    names: tuple[str, ...]
    files: tuple[Path | None, ...]
    codes: Codes
    recipe: Recipe
    states: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()  # why images were skipped

    def __len__(self) -> int:
        return len(self.names)

    @property
    def hash_name(self) -> str:
        """The perceptual hash, or the feature and the hasher."""
        named = self.recipe.names()
        if named["features"] in PERCEPTUAL:
            return str(named["features"])
        return " + ".join(name for name in (named["features"], named["hasher"]) if name) or "codes"

    def take(self, rows: list[int]) -> CodedImages:
        """Some of the items."""
        names, files = tuple(self.names[i] for i in rows), tuple(self.files[i] for i in rows)
        states = tuple(self.states[i] for i in rows) if self.states else ()
        chosen = self.codes[np.array(rows, np.int64)]
        return CodedImages(self.place, names, files, chosen, self.recipe, states)


def read_coded(
    place: Place,
    *,
    hasher: str | None = None,
    like: CodedImages | None = None,
    known: dict[str, tuple[str, Codes]] | None = None,
    skip_broken: bool = False,
) -> CodedImages:
    """The images of a folder, hashed, or the items of a collection.

    ``hasher`` is a perceptual hash, for a folder.  ``like`` are other items, whose codes these must
    be comparable with: a folder is hashed as they were.  ``known`` has the state and the code of
    images by name, which are not read again if they have not changed.
    """
    if not store.is_address(place) and Path(place).is_dir():
        recipe = _folder_recipe(place, hasher, like)
        return _read_folder(Path(place), recipe, known or {}, skip_broken)
    if not store.exists(place):
        raise InputError(f"{place}: no such folder or collection.")
    if hasher is not None:
        raise InputError(f"{place}: is a collection, which has its codes; leave out --hasher.")
    found = _read_collection(place)
    if like is not None and not _is_same_recipe(found.recipe, like.recipe):
        raise InputError(
            f"{place}: its codes are of {found.hash_name}, and cannot be compared with those of "
            f"{like.place}, which are of {like.hash_name}."
        )
    return found


def _folder_recipe(place: Place, hasher: str | None, like: CodedImages | None) -> Recipe:
    if like is not None:
        if like.recipe.features is None or like.recipe.is_crossmodal:
            raise InputError(f"{place}: {like.place} was not made from images alone.")
        return like.recipe
    name = hasher or DEFAULT_HASHER
    if name not in PERCEPTUAL:
        raise InputError(
            f"{place}: {name} is not a perceptual hash ({', '.join(PERCEPTUAL)}); for other codes, "
            "make a collection ('bittern index create') and give that."
        )
    return make_recipe(name, None)


def _read_collection(place: Place) -> CodedImages:
    with store.open(place, read_only=True) as collection:
        items, recipe, folder = collection.get(collection.ids), collection.recipe, collection.folder
    files = tuple(image_file(known, folder) for known in items.metadata)
    names = tuple(
        str(known.get("path", known.get("name", f"id {id_}")))
        for id_, known in zip(items.ids.tolist(), items.metadata, strict=True)
    )
    return CodedImages(os.fspath(place), names, files, items.codes, recipe)


def _read_folder(
    root: Path, recipe: Recipe, known: dict[str, tuple[str, Codes]], skip_broken: bool
) -> CodedImages:
    """Hash the images whose state is not the known one."""
    found = find_images(root)
    states = {name: _state_of(found.root / name) for name in found.paths}
    codes = {
        name: known[name][1]
        for name in found.paths
        if name in known and known[name][0] == states[name]
    }
    unread = tuple(name for name in found.paths if name not in codes)
    skipped: tuple[str, ...] = ()
    if unread:
        fresh, skipped = _hash_images(found.root, unread, recipe, skip_broken)
        codes |= fresh
    names = tuple(name for name in found.paths if name in codes)
    if not names:
        raise FileError(f"{root}: no image could be read; {skipped[0]}")
    return CodedImages(
        os.fspath(root),
        names,
        tuple(found.root / name for name in names),
        Codes.concatenate([codes[name] for name in names]),
        recipe,
        tuple(states[name] for name in names),
        skipped,
    )


def _hash_images(
    root: Path, names: tuple[str, ...], recipe: Recipe, skip_broken: bool
) -> tuple[dict[str, Codes], tuple[str, ...]]:
    """Codes by name, and why images were skipped."""
    assert recipe.features is not None
    images = ImagePaths(root, names, None, ())
    errors: Literal["skip", "raise"] = "skip" if skip_broken else "raise"
    with temporary_folder() as folder:
        try:
            rows = extract(images, [recipe.features], Path(folder, "rows.npz"), errors=errors)
        except NoImageError as error:
            return {}, tuple(error.skipped.values())
        except KeyboardInterrupt:  # its message says where parts are kept, but here they are not
            raise KeyboardInterrupt from None
    codes = recipe.encode(rows[recipe.features.name], "duplicates: images")
    listed = {name: codes[i : i + 1] for i, name in enumerate(rows.paths)}
    return listed, tuple(rows.skipped.values())


def _state_of(file: Path) -> str:
    found = file.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _is_same_recipe(one: Recipe, other: Recipe) -> bool:
    return one is other or one.to_blobs() == other.to_blobs()
