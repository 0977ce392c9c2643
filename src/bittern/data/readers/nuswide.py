"""NUS-WIDE: 269,648 Flickr images with 81 concepts, visual words and their owners' tags.

The publisher's files below the folder:

- ``ImageList/Imagelist.txt``, and ``TrainImagelist.txt`` and ``TestImagelist.txt`` for the official
  sets;
- ``ConceptsList/Concepts81.txt``, the names and order of the concepts;
- ``Groundtruth/AllLabels/Labels_*.txt``, one 0 or 1 per line; or one table ``AllLabels81.txt``;
  or ``Groundtruth/TrainTestLabels/Labels_*_Train.txt`` and ``_Test.txt``, put in the order of the
  list;
- ``Low_Level_Features/BoW_int.dat``, 500 counts per line;
- ``NUS_WID_Tags``: ``AllTags1k.txt`` and ``AllTags81.txt``, tables of 0 and 1; for the 5,018 tags
  ``All_Tags.txt``, an id and words per line, of which those in ``Final_Tag_List.txt`` are used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.data.images import ImageFiles
from bittern.data.rows import Rows, SparseRows
from bittern.errors import FileError
from bittern.io.files import existing_file
from bittern.io.text import (
    read_bits,
    read_counts,
    read_lines,
    read_words,
)
from bittern.registry import Registry

N_IMAGES, N_CONCEPTS, N_VISUAL_WORDS = 269_648, 81, 500


@dataclass(frozen=True, slots=True)
class TagTable:
    """Tags for the second modality: their file, the list of names, and their number."""

    table: str
    names: str
    n_tags: int


TEXTS: Registry[TagTable] = Registry(
    "text of nuswide",
    {
        "tags81": TagTable("AllTags81.txt", "", 81),
        "tags1k": TagTable("AllTags1k.txt", "", 1000),
        "tags5018": TagTable("All_Tags.txt", "Final_Tag_List.txt", 5018),
    },
)


def load(
    folder: Path, *, concepts: int | None = None, text: str | None = None, image: str = "bow"
) -> Dataset:
    """Read NUS-WIDE; ``concepts=21`` and ``concepts=10`` are the papers' subsets.

    ``concepts=k`` keeps only the k most frequent concepts (ties by their order) and the items that
    have one of them.  ``text`` adds ``"tags1k"``, ``"tags5018"`` or ``"tags81"`` as a second
    modality of sparse rows; items without any of these tags lack it.  ``image`` is ``"bow"``, or
    ``"files"`` for the images themselves below ``Flickr``, which the publisher sends on request.
    """
    root = Path(folder)
    _find_list(root)
    ids = _names(root, "Imagelist.txt")
    tag_names, tags = _ground_truth(root, ids)
    notes = [f"{len(ids):,} images in the list; {N_IMAGES:,} were published."]
    keep = np.arange(len(ids))
    if concepts is not None:
        columns = _most_frequent(tags, check_count(concepts, "nuswide: concepts", 1, N_CONCEPTS))
        tags, tag_names = tags[:, columns], tuple(tag_names[c] for c in columns)
        keep = np.flatnonzero(tags.any(axis=1))
        notes.append(f"{len(keep):,} items have one of the {concepts} most frequent concepts.")
    modalities = {"image": _images(root, image, ids, keep)}
    present = {}
    if text is not None:
        words = _tag_rows(root, TEXTS[text], ids)
        rows = SparseRows(words if len(keep) == len(ids) else words[keep])
        modalities["text"], there = rows, np.diff(rows.matrix.indptr) > 0
        present = {} if there.all() else {"text": there}
        notes.append(
            f"text is {TEXTS[text].table}; images, labels and tags have one order; "
            f"{(~there).sum():,} items have no tag of it."
        )
    return Dataset(
        name="nuswide",
        modalities=modalities,
        present=present,
        ids=ids[keep],
        tags=tags[keep],
        tag_names=tag_names,
        official=_official(root, ids, keep),
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=tuple(notes),
    )


def _find(root: Path, modalities: Collection[str], options: Mapping[str, Any]) -> None:
    _find_list(root)
    existing_file(_place(root, "Concepts81.txt"))
    if options.get("image", "bow") == "bow":
        existing_file(_place(root, "BoW_int.dat"))
    if (text := options.get("text")) is not None:
        existing_file(_place(root, TEXTS[text].table))


def _find_list(root: Path) -> None:
    if not (images := _place(root, "Imagelist.txt")).is_file():
        raise FileError(f"{images}: no such file; nuswide needs {SPEC.layout}")


def _place(root: Path, name: str) -> Path:
    """The path of a file: in the publisher's folder, or in the folder itself."""
    folders = (
        ".",
        "ImageList",
        "ConceptsList",
        "Low_Level_Features",
        "NUS_WID_Low_Level_Features/Low_Level_Features",
        "NUS_WID_Tags",
        "Groundtruth",
        "NUS-WIDE/ConceptsList",
        "NUS-WIDE/Groundtruth",
    )
    places = [root / folder / name for folder in folders]
    return next((place for place in places if place.exists()), root / name)


def _names(root: Path, name: str) -> NDArray[np.str_]:
    """An image list; the publisher writes its paths with backslashes."""
    path = existing_file(_place(root, name))
    names = read_lines(path)
    if not len(names):
        raise FileError(f"{path}: lists no images.")
    if (np.strings.str_len(names) == 0).any():
        raise FileError(f"{path}: has a blank line among its images.")
    return np.strings.replace(names, "\\", "/")


def _ground_truth(root: Path, ids: NDArray[np.str_]) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Names of the concepts, and the concepts of each image."""
    path = existing_file(_place(root, "Concepts81.txt"))
    names = tuple(read_lines(path).tolist())
    if len(names) != N_CONCEPTS or len(set(names)) != N_CONCEPTS:
        raise FileError(f"{path}: must name {N_CONCEPTS} concepts, got {len(set(names))}.")
    if any("/" in name or "\\" in name for name in names):
        raise FileError(f"{path}: a concept's name must be part of a file's name.")
    table = _place(root, "AllLabels81.txt")
    parts = _place(root, "TrainTestLabels")
    if not _place(root, "AllLabels").is_dir():
        if table.is_file():
            return names, read_bits(table, N_CONCEPTS, len(ids)).toarray() > 0
        if parts.is_dir():
            return names, _from_parts(root, parts, names, ids)
    folder = _place(root, "AllLabels")
    tags = np.empty((len(ids), N_CONCEPTS), bool)
    for column, name in enumerate(names):
        tags[:, column] = _one_column(folder / f"Labels_{name}.txt", len(ids))
    return names, tags


def _from_parts(
    root: Path, folder: Path, names: tuple[str, ...], ids: NDArray[np.str_]
) -> NDArray[np.bool_]:
    """Labels of the official sets, put in the order of the image list."""
    tags = np.zeros((len(ids), N_CONCEPTS), bool)
    seen = np.zeros(len(ids), bool)
    for part in ("Train", "Test"):
        rows = _positions(root, f"{part}Imagelist.txt", ids)
        seen[rows] = True
        for column, name in enumerate(names):
            path = folder / f"Labels_{name}_{part}.txt"
            try:
                tags[rows, column] = _one_column(path, len(rows))
            except FileError as error:
                raise FileError(f"{error} Groundtruth/AllLabels has the same labels.") from error
    if not seen.all():
        raise FileError(
            f"{folder}: labels {seen.sum()} of {len(ids)} images, the first without any "
            f"is {ids[seen.argmin()]}."
        )
    return tags


def _one_column(path: Path, n_rows: int) -> NDArray[np.bool_]:
    bits = read_bits(path, 1, n_rows)
    return np.diff(bits.indptr) > 0


def _most_frequent(tags: NDArray[np.bool_], k: int) -> NDArray[np.intp]:
    """The columns with the most ones, ascending; ties go to the earlier column."""
    return np.sort(np.argsort(-tags.sum(axis=0), kind="stable")[:k])


def _images(root: Path, image: str, ids: NDArray[np.str_], keep: NDArray[np.intp]) -> Rows:
    readers: Registry[Any] = Registry("image of nuswide", {"bow": _counts, "files": _image_files})
    rows: Rows = readers[image](root, ids, keep)
    return rows


def _counts(root: Path, ids: NDArray[np.str_], keep: NDArray[np.intp]) -> NDArray[np.float32]:
    return read_counts(_place(root, "BoW_int.dat"), N_VISUAL_WORDS, len(ids), keep)


def _image_files(root: Path, ids: NDArray[np.str_], keep: NDArray[np.intp]) -> ImageFiles:
    flickr = root / "Flickr"
    if not flickr.is_dir():
        raise FileError(f"{flickr}: no such folder; the images are below it.")
    if any(".." in name.split("/") or name.startswith("/") for name in ids.tolist()):
        raise FileError(f"{root}: an image in the list is outside {flickr}.")
    return ImageFiles([f"{flickr.absolute()}/{name}" for name in ids[keep]])


def _tag_rows(root: Path, kind: TagTable, ids: NDArray[np.str_]) -> Any:
    path = existing_file(_place(root, kind.table))
    if not kind.names:
        return read_bits(path, kind.n_tags, len(ids))
    list_path = existing_file(_place(root, kind.names))
    names = read_lines(list_path).tolist()
    if len(names) != kind.n_tags:
        raise FileError(f"{list_path}: must name {kind.n_tags:,} tags, got {len(names):,}.")
    vocabulary = {name.encode(): column for column, name in reversed(list(enumerate(names)))}
    keys, words = read_words(path, vocabulary, len(ids))
    _refuse_other_order(path, keys, ids)
    words.resize(len(ids), kind.n_tags)  # the last name may repeat an earlier one
    return words


def _refuse_other_order(path: Path, keys: list[bytes], ids: NDArray[np.str_]) -> None:
    """Line i must start with the Flickr number of image i: ``0001_2124494179.jpg`` has the last."""
    stems = np.strings.rpartition(np.strings.rpartition(ids, "_")[2], ".")[0]
    given = np.array(keys).astype(np.bytes_)
    wrong = given != np.strings.encode(stems, "utf-8")
    if wrong.any():
        row = int(wrong.argmax())
        raise FileError(
            f"{path}: line {row + 1} is for image {keys[row].decode('latin-1')[:40]}, "
            f"but the image list has {PurePosixPath(ids[row]).name} there."
        )


def _positions(root: Path, name: str, ids: NDArray[np.str_]) -> NDArray[np.intp]:
    """Positions in ``ids`` of the names in an image list."""
    names = _names(root, name)
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, names, sorter=order), len(ids) - 1)
    found = order[place]
    wrong = ids[found] != names
    if wrong.any():
        raise FileError(f"{_place(root, name)}: {names[wrong.argmax()]} is not in Imagelist.txt.")
    return found


def _official(
    root: Path, ids: NDArray[np.str_], keep: NDArray[np.intp]
) -> dict[str, NDArray[np.intp]]:
    """Train and test positions among the kept items, if the lists exist."""
    lists = {"train": "TrainImagelist.txt", "test": "TestImagelist.txt"}
    if not all(_place(root, name).exists() for name in lists.values()):
        return {}
    sets = {part: _positions(root, name, ids) for part, name in lists.items()}
    return {part: np.flatnonzero(np.isin(keep, rows)) for part, rows in sets.items()}


SPEC = DatasetSpec(
    name="nuswide",
    title="NUS-WIDE: 269,648 Flickr images, 500 visual words, 81 concepts, up to 5,018 tags",
    load=load,
    layout=(
        "ImageList/Imagelist.txt, ConceptsList/Concepts81.txt, Groundtruth/AllLabels/Labels_*.txt, "
        "Low_Level_Features/BoW_int.dat and, for text, NUS_WID_Tags/AllTags1k.txt or All_Tags.txt "
        "with Final_Tag_List.txt, unpacked from the archives at "
        "https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html."
    ),
    citation="Chua-2009",
    licence="Research only; the images belong to their Flickr owners.",
    folder="nuswide",
    find=_find,
    steps=("l2", "centre"),
)
