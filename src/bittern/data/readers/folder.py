"""Your own images: a folder, its sub-folders as classes, and a manifest if you have one.

A manifest is ``manifest.csv`` (comma-separated, with a header) or ``manifest.jsonl`` (one object
per line) in the folder, or any such file that you name.  Only the first of these columns is
required, and other columns are ignored:

- ``path``: the image, relative to the folder, without repetitions;
- ``label``: its class; with this column, every row needs one;
- ``tags``: words separated by ``;``, or a JSON list of words; may be empty;
- ``text``: a caption, which becomes the modality ``text``; may be empty.

Captions may also be in files of their own; see :mod:`bittern.data.caption_files`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bittern.data.caption_files import Captions, captions_of_images, present_texts
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.data.images import ImageFiles
from bittern.data.manifest import ManifestRow, read_manifest
from bittern.data.rows import Texts
from bittern.errors import FileError

# fmt: off
SUFFIXES = frozenset((
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp",
    ".ppm", ".pgm", ".pbm", ".heic", ".heif",
))
# fmt: on
SUFFIX_LIST = ", ".join(sorted(SUFFIXES))
MANIFESTS = ("manifest.csv", "manifest.jsonl")
NO_IMAGE = "(no image)"  # instead of a path, for an item that has only a text
_SETS = frozenset(("train", "val", "validation", "test"))


def load(
    folder: Path,
    *,
    manifest: str | os.PathLike[str] | Literal[False] | None = None,
    texts: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Read a folder of images; the images themselves are read on demand.

    Without a manifest the class of an image is the first sub-folder on its path, and items are
    sorted by path; images in the folder itself have no class (-1).  If all images are below
    ``train`` and ``test`` or ``val``, those are the official sets, and the next folder is the
    class.  With a manifest, its rows are the items, in its order, and its labels, if it has any,
    are the classes.  ``manifest=False`` ignores the manifest.

    ``texts`` names a file of captions, such as ``"captions.csv"``, or is the suffix of a text file
    beside each image, such as ``".txt"``.  Captions without an image are items that follow the
    images, without a class.
    """
    root = _existing_folder(folder)
    found = find_images(root)
    table = _manifest_in(root, manifest)
    rows = None if table is None else read_manifest(table, root)
    paths = found.paths if rows is None else tuple(row.path for row in rows)
    if not paths:
        raise FileError(f"{root}: has no images; an image's name ends in {SUFFIX_LIST}.")
    notes = [f"{len(paths):,} images; {found.skipped()}."]
    sets, classes = classes_by_folder(paths)
    tags: dict[str, Any] = {}
    if rows is not None:
        notes.append(_about_manifest(table, rows, found))
        if rows[0].label is not None:
            sets, classes = {}, [row.label for row in rows]
        tags = _tags(rows)
    captions = _captions(root, texts, paths, rows)
    others = captions.others if captions else {}
    labels, class_names = class_numbers([*classes, *[None] * len(others)])
    if tags:
        tags["tags"].resize(len(paths) + len(others), len(tags["tag_names"]))
    files = [*(f"{root.absolute()}/{path}" for path in paths), *[NO_IMAGE] * len(others)]
    if captions:
        notes.append(captions.note)
    return Dataset(
        name=root.resolve().name or "folder",
        **_modalities(ImageFiles(files), captions),
        ids=np.array([*paths, *others], dtype=np.str_),
        labels=labels,
        class_names=class_names,
        official=sets,
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=tuple(notes),
        **tags,
    )


@dataclass(frozen=True, slots=True)
class FoundImages:
    """Images below a folder, as sorted paths relative to it, and the other files."""

    paths: tuple[str, ...]
    others: tuple[str, ...] = ()
    n_hidden: int = 0

    def skipped(self) -> str:
        """A phrase about the files that are not images."""
        return f"{self.n_hidden} hidden and {len(self.others)} other files skipped"


def find_images(root: Path) -> FoundImages:
    """Images at any depth, recognised by suffix; follows each link to a folder once."""
    paths: list[str] = []
    others: list[str] = []
    n_hidden = 0
    seen: set[str] = set()
    stack = [(root, "")]
    while stack:
        folder, prefix = stack.pop()
        if (real := os.path.realpath(folder)) in seen:
            continue
        seen.add(real)
        for entry in _entries(folder):
            if entry.name.startswith((".", "__MACOSX")):
                n_hidden += 1
            elif Path(entry).is_dir():
                stack.append((folder / entry.name, f"{prefix}{entry.name}/"))
            elif Path(entry.name).suffix.lower() in SUFFIXES and Path(entry).is_file():
                paths.append(f"{prefix}{entry.name}")
            elif prefix or entry.name not in MANIFESTS:
                others.append(f"{prefix}{entry.name}")
    return FoundImages(tuple(sorted(paths)), tuple(sorted(others)), n_hidden)


def classes_by_folder(
    paths: Sequence[str],
) -> tuple[dict[str, NDArray[np.intp]], list[str | None]]:
    """The official sets, if the first folders name them, and the class of each image or None."""
    parts = [path.split("/")[:-1] for path in paths]
    firsts = {part[0] if part else "" for part in parts}
    if not ("train" in firsts and len(firsts) > 1 and firsts <= _SETS):
        return {}, [part[0] if part else None for part in parts]
    validation = "validation_queries" if "test" in firsts else "test"
    roles = {"train": "train", "test": "test", "val": validation, "validation": validation}
    member = np.array([roles[part[0]] for part in parts])
    sets = {name: np.flatnonzero(member == name) for name in np.unique(member).tolist()}
    return sets, [part[1] if len(part) > 1 else None for part in parts]


def class_numbers(
    classes: Sequence[str | None],
) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Labels and class names; no labels if all classes are None, -1 if some are.

    Names are sorted, as numbers if all of them are.
    """
    distinct = {name for name in classes if name is not None}
    if not distinct:
        return None, ()
    all_numbers = all(name.isascii() and name.isdigit() and len(name) < 10 for name in distinct)
    names = sorted(distinct, key=(lambda name: (int(name), name)) if all_numbers else None)
    numbers: dict[str | None, int] = {name: number for number, name in enumerate(names)}
    return np.array([numbers.get(name, -1) for name in classes], np.int64), tuple(names)


def _existing_folder(folder: Path) -> Path:
    root = Path(folder)
    if not root.is_dir():
        what = "is a file, not a folder" if root.exists() else "no such folder"
        raise FileError(f"{root}: {what}.")
    return root


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise FileError(f"{folder}: cannot be listed ({error.strerror}).") from error


def _manifest_in(
    root: Path, manifest: str | os.PathLike[str] | Literal[False] | None
) -> Path | None:
    if manifest is False:
        return None
    if manifest is not None:
        return root / manifest
    there = [root / name for name in MANIFESTS if (root / name).exists()]
    if len(there) > 1:
        raise FileError(f"{root}: has {' and '.join(MANIFESTS)}; choose one: manifest=NAME.")
    return there[0] if there else None


def _captions(
    root: Path,
    texts: str | os.PathLike[str] | None,
    paths: Sequence[str],
    rows: Sequence[ManifestRow] | None,
) -> Captions | None:
    """The captions asked for, or those of the manifest; None if there are none."""
    if texts is not None:
        return captions_of_images(texts, root, paths)
    given = tuple(row.text for row in rows or ())
    return Captions(given, {}, "text is from the manifest.") if any(given) else None


def _modalities(images: ImageFiles, captions: Captions | None) -> dict[str, Any]:
    """``modalities`` and ``present`` of the dataset."""
    if captions is None:
        return {"modalities": {"image": images}}
    texts = [*captions.texts, *captions.others.values()]
    present = present_texts(texts)
    if captions.others:
        present["image"] = np.arange(len(texts)) < len(captions.texts)
    return {"modalities": {"image": images, "text": Texts(texts)}, "present": present}


def _about_manifest(table: Path | None, rows: Sequence[ManifestRow], found: FoundImages) -> str:
    n_left = len(set(found.paths) - {row.path for row in rows})
    name = "" if table is None else table.name
    return f"rows, labels and tags as in {name}; {n_left} images not in it were skipped."


def _tags(rows: Sequence[ManifestRow]) -> dict[str, Any]:
    """Multi-hot tags as a sparse array, columns sorted by name; empty if no row has tags."""
    from scipy.sparse import csr_array

    names = sorted({tag for row in rows for tag in row.tags})
    if not names:
        return {}
    numbers = {name: number for number, name in enumerate(names)}
    columns = [numbers[tag] for row in rows for tag in sorted(row.tags)]
    indptr = np.cumsum([0, *(len(row.tags) for row in rows)])
    ones = np.ones(len(columns), bool)
    tags = csr_array((ones, np.array(columns), indptr), (len(rows), len(names)))
    return {"tags": tags, "tag_names": tuple(names)}


SPEC = DatasetSpec(
    name="folder",
    title="Your own images: a folder, its sub-folders as classes, or a manifest",
    load=load,
    layout=(
        "a folder of images, one sub-folder per class; or manifest.csv or manifest.jsonl in it, "
        "with the columns path, label, tags and text; captions in it or in a file of their own."
    ),
    citation="",
    licence="Your own.",
)
