"""Image files as items: what is stored about each file, and whether it has changed since."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from bittern.data import exif
from bittern.data.caption_files import is_suffix
from bittern.data.metadata_files import MetadataTable, read_metadata
from bittern.data.readers import folder
from bittern.errors import FileError, InputError
from bittern.features.base import ImagePaths
from bittern.io.files import existing_file
from bittern.io.metadata import column_name
from bittern.progress import track
from bittern.store.paths import STATE, located, stored_path
from bittern.store.recipe import IMAGE

OWN_KEYS = ("folder", "label", *exif.KEYS)  # a table of metadata may replace these
PROTECTED = ("path", "file", STATE, "modality")
DETAILS = (STATE, *(key for key in exif.KEYS if key != "taken"))  # not shown unless asked for
BROKEN, NO_IMAGE, NO_ROW, OTHER = (
    "image that cannot be read",
    "row without an image",
    "image without a row",
    "file that is not an image",
)


class LeftOut(NamedTuple):
    """A file or a row of a table that something was not done with, and why."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Origin:
    """A folder of images, and how they are read."""

    root: Path  # absolute, without links
    table: Path | None = None  # of metadata
    with_exif: bool = True
    skip_broken: bool = False
    columns: tuple[str, ...] = ()  # that the table has
    texts: str | None = None  # a file of captions, or the suffix of files beside the images

    def to_json(self, home: Path | None) -> dict[str, Any]:
        """Plain values, with paths as :func:`~bittern.store.paths.stored_path` gives them."""
        return {
            "folder": stored_path(self.root, home),
            "metadata": None if self.table is None else stored_path(self.table, home),
            "exif": self.with_exif,
            "skip_broken": self.skip_broken,
            "columns": list(self.columns),
            "texts": self.texts
            and (self.texts if is_suffix(self.texts) else stored_path(Path(self.texts), home)),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any], home: Path | None) -> Origin:
        """Read what :meth:`to_json` gave."""
        table, texts = given["metadata"], given.get("texts")
        return cls(
            located(given["folder"], home),
            None if table is None else located(table, home),
            given["exif"],
            given["skip_broken"],
            tuple(given["columns"]),
            texts and (texts if is_suffix(texts) else str(located(texts, home))),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ListedImages:
    """Images below a folder, what their table says, and the other files."""

    origin: Origin
    names: tuple[str, ...]  # relative, with "/", sorted, distinct
    classes: Mapping[str, str | None]
    table: Mapping[str, Mapping[str, Any]]
    left_out: tuple[LeftOut, ...]
    captions: Mapping[str, str] | None = None  # None in a collection of images alone

    def paths(self, names: Sequence[str]) -> ImagePaths:
        """Some of them, as features take them."""
        paths = tuple(sorted(names))
        labels, class_names = folder.class_numbers([self.label(path) for path in paths])
        return ImagePaths(self.origin.root, paths, labels, class_names)

    def label(self, name: str) -> str | None:
        """The class of an image: that of the table, if it has classes, or its folder."""
        if "label" not in self.origin.columns:
            return self.classes[name]
        said = self.table.get(name, {}).get("label")
        return None if said is None else str(said)

    def known(self, name: str, prefix: str) -> dict[str, Any]:
        """The metadata of an image, without what is in its file.

        ``prefix`` is the stored path of the folder.  A column of the table replaces what is known
        otherwise for all images, so that its values are of one type.
        """
        within, _, _ = name.rpartition("/")
        path = name if prefix == "." else f"{prefix}/{name}"
        own = {"path": path, "folder": within or None, "label": self.classes[name]}
        said = {} if self.captions is None else caption_of(self.captions.get(name), IMAGE)
        known = {**own, **self._replaced(), **self.table.get(name, {}), **said}
        return {key: value for key, value in known.items() if value is not None}

    def read(
        self, names: Sequence[str], prefix: str, states: Mapping[str, str | None]
    ) -> list[dict[str, Any]]:
        """All metadata of some images; reads their EXIF if that was asked for."""
        rows = []
        for name in track(names, "metadata", len(names)):
            facts = exif.read_facts(self.origin.root / name) if self.origin.with_exif else {}
            facts = {key: value for key, value in facts.items() if key not in self.origin.columns}
            state = {} if states[name] is None else {STATE: states[name]}
            rows.append({**self.known(name, prefix), **facts, **state})
        return rows

    def _replaced(self) -> dict[str, None]:
        return dict.fromkeys(key for key in OWN_KEYS if key in self.origin.columns)


def list_images(
    origin: Origin, names: Iterable[str] | None = None, *, own_files: Iterable[Path] = ()
) -> ListedImages:
    """The images of a folder, or some of them; ``own_files`` are not worth mentioning."""
    listed: tuple[str, ...]
    if names is None:
        found = folder.find_images(origin.root)
        own = {*map(str, own_files), str(origin.table)}
        captions = () if origin.texts is None else Path(origin.texts).name
        others = [
            name
            for name in found.others
            if str(origin.root / name) not in own and not name.endswith(captions)
        ]
        listed = found.paths
    else:
        listed, others = tuple(sorted(set(names))), []
    left_out = [
        LeftOut(OTHER, _shown(name), "its name does not end like that of an image")
        for name in others
    ]
    left_out += [
        LeftOut(BROKEN, _shown(name), "its name is not valid Unicode")
        for name in listed
        if not _is_text(name)
    ]
    if len(left_out) > len(others) and not origin.skip_broken:
        raise FileError(f"{origin.root}/{left_out[-1].name}: {left_out[-1].reason}; rename it.")
    listed = tuple(filter(_is_text, listed))
    _, classes = folder.classes_by_folder(listed)
    table = _read_table(origin, listed)
    if table is not None:
        origin = replace(origin, columns=table.columns)
        if names is None:
            left_out += [LeftOut(NO_IMAGE, *row) for row in table.unmatched]
            left_out += [
                LeftOut(NO_ROW, name, f"not in {origin.table}") for name in table.undescribed
            ]
    return ListedImages(
        origin,
        listed,
        dict(zip(listed, classes, strict=True)),
        {} if table is None else table.rows,
        tuple(left_out),
    )


def caption_of(text: str | None, modality: str) -> dict[str, str | None]:
    """What the metadata of an image with a text, or of that text, have beside those of images."""
    return {"modality": modality, "text": text or None}


def find_table(given: str | os.PathLike[str], root: Path) -> Path:
    """A table about the images, looked up in ``root`` if it is not in the current folder."""
    path = Path(given)
    if not path.exists() and (root / path).exists():
        path = root / path
    existing_file(path)
    return Path(os.path.realpath(path.parent), path.name)


def state_of(file: Path, known: str | None = None) -> str | None:
    """Size, time and hash of a file; None if it cannot be read.

    If size and time are those of the ``known`` state, the file is not read.
    """
    try:
        found = file.stat()
        start = f"{found.st_size} {found.st_mtime_ns} "
        if known is not None and known.startswith(start):
            return known
        with existing_file(file).open("rb") as content:
            return start + hashlib.file_digest(content, _hash).hexdigest()
    except (OSError, FileError):
        return None


def is_same_content(state: str, other: str) -> bool:
    """Whether two states have the same size and hash."""
    return state.split()[::2] == other.split()[::2]


def read_states(root: Path, names: Sequence[str]) -> dict[str, str | None]:
    """The state of each file."""
    return {name: state_of(root / name) for name in track(names, "files", len(names))}


def columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """A list for each key, with None where a row lacks it."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in keys}


def _read_table(origin: Origin, names: Sequence[str]) -> MetadataTable | None:
    return None if origin.table is None else read_metadata(origin.table, origin.root, names, _key)


def _key(column: str) -> str:
    """The key of a column: one of our own in our spelling, and never one that is protected."""
    plain = column_name(column)
    if plain.lower() in PROTECTED:
        return f"_{plain}"
    return plain.lower() if plain.lower() in OWN_KEYS else plain


def _hash() -> Any:
    return hashlib.blake2b(digest_size=16)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def check_takes_images(place: str, recipe: Any) -> None:
    """Raise InputError unless the recipe turns images into codes."""
    if recipe.hasher is None or recipe.features is None or recipe.features.takes != "images":
        raise InputError(f"{place}: was not made from images.")
