"""Wiki: 2,866 sections of Wikipedia's featured articles, each with an image.

Reads the first of three forms that exists:

- ``raw_features.mat`` (``I_tr``, ``T_tr``, ``I_te``, ``T_te``) with ``trainset_txt_img_cat.list``
  and ``testset_txt_img_cat.list`` (text id, image id, category 1…10, tab-separated), as published;
- ``wiki_data.mat`` (or ``wikiData.mat``), the same four with ``L_tr`` and ``L_te``;
- ``wiki.npz``, the same six.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_vectors
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.errors import FileError, InputError
from bittern.io.files import existing_file
from bittern.io.matlab import read_mat
from bittern.io.npz import read_arrays
from bittern.io.text import read_lines

# The publisher's categories.list, in the order of the numbers 1…10.
CATEGORIES = (
    "art", "biology", "geography", "history", "literature",
    "media", "music", "royalty", "sport", "warfare",
)  # fmt: skip
N_TRAIN, N_TEST, N_VISUAL_WORDS, N_TOPICS = 2173, 693, 128, 10
_FEATURES = ("I_tr", "T_tr", "I_te", "T_te")
_LABELS = ("L_tr", "L_te")


@dataclass(frozen=True, slots=True, eq=False)
class _Files:
    """The content of one form: six arrays, ids if it has them, and the path for errors."""

    arrays: dict[str, NDArray[Any]]
    path: Path
    ids: NDArray[np.str_] | None = None


def load(folder: Path) -> Dataset:
    """Read Wiki: modalities ``image`` (128 visual words) and ``text`` (10 topics), both sets."""
    root = Path(folder)
    files = _find(root)(root)
    vectors = {key: _vectors(files, key) for key in _FEATURES}
    labels = [_labels(files, key, len(vectors[f"I_{key[2:]}"])) for key in _LABELS]
    n_train, n_test = map(len, labels)
    return Dataset(
        name="wiki",
        modalities={
            "image": np.concatenate((vectors["I_tr"], vectors["I_te"])),
            "text": np.concatenate((vectors["T_tr"], vectors["T_te"])),
        },
        ids=files.ids,
        labels=np.concatenate(labels),
        class_names=CATEGORIES,
        official={"train": np.arange(n_train), "test": np.arange(n_train, n_train + n_test)},
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=(
            f"read from {files.path.name}: {n_train:,} training and {n_test:,} test pairs; "
            f"{N_TRAIN:,} and {N_TEST:,} were published.",
        ),
    )


def _find(root: Path, *_: object) -> Callable[[Path], _Files]:
    forms: dict[str, Callable[[Path], _Files]] = {
        "raw_features.mat": _published,
        "wiki_data.mat": lambda folder: _with_labels(folder / "wiki_data.mat", read_mat),
        "wikiData.mat": lambda folder: _with_labels(folder / "wikiData.mat", read_mat),
        "wiki.npz": lambda folder: _with_labels(folder / "wiki.npz", read_arrays),
    }
    for name, form in forms.items():
        if (root / name).exists():
            return form
    raise FileError(f"{root}: has none of {', '.join(forms)}.")


def _published(root: Path) -> _Files:
    path = root / "raw_features.mat"
    arrays = read_mat(path, _FEATURES)
    ids = []
    for key, part in (("L_tr", "train"), ("L_te", "test")):
        names, arrays[key] = _category_list(root / f"{part}set_txt_img_cat.list")
        ids.append(names)
    return _Files(arrays, path, np.concatenate(ids))


def _with_labels(path: Path, read: Callable[..., dict[str, NDArray[Any]]]) -> _Files:
    return _Files(read(path, (*_FEATURES, *_LABELS)), path)


def _category_list(path: Path) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Ids (text id and image id joined by a slash) and categories of a list file."""
    lines = read_lines(existing_file(path)).tolist()
    rows = [line.split() for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != 3 or row[2] not in _NUMBERS:
            raise FileError(
                f"{path}, line {number}: a line must be a text id, an image id and a category "
                f"1…{len(CATEGORIES)}, got {lines[number - 1][:60]!r}."
            )
    ids = np.array([f"{text}/{image}" for text, image, _ in rows], dtype=np.str_)
    return ids, np.array([int(category) for *_, category in rows], np.int64)


_NUMBERS = frozenset(str(number) for number in range(1, len(CATEGORIES) + 1))


def _vectors(files: _Files, key: str) -> NDArray[np.floating[Any]]:
    try:
        vectors = check_vectors(files.arrays[key], f"{files.path}: {key}")
    except InputError as error:
        raise FileError(str(error)) from error
    width = N_VISUAL_WORDS if key.startswith("I") else N_TOPICS
    if vectors.shape[1] != width:
        raise FileError(f"{files.path}: {key} must have {width} columns, got {vectors.shape[1]}.")
    n = len(files.arrays[f"I_{key[2:]}"])
    if len(vectors) != n:
        raise FileError(
            f"{files.path}: images and texts must come in pairs, "
            f"got {n} and {len(vectors)} rows in {key}."
        )
    return vectors


def _labels(files: _Files, key: str, n: int) -> NDArray[np.int64]:
    """Categories as 0…9, from a vector of 1…10 or from one-hot rows."""
    given = files.arrays[key]
    if given.ndim == 2 and given.shape == (n, len(CATEGORIES)) and _is_one_hot(given):
        return given.argmax(axis=1).astype(np.int64)
    numbers = given.reshape(-1)
    if len(numbers) != n:
        raise FileError(f"{files.path}: has {n} rows, but {key} labels {len(numbers)}.")
    if numbers.dtype.kind not in "fiu" or not np.isin(numbers, np.arange(1, 11)).all():
        raise FileError(f"{files.path}: {key} must be categories 1…{len(CATEGORIES)}.")
    return numbers.astype(np.int64) - 1


def _is_one_hot(rows: NDArray[Any]) -> bool:
    return bool(np.isin(rows, (0, 1)).all() and (rows.sum(axis=1) == 1).all())


SPEC = DatasetSpec(
    name="wiki",
    title="Wiki: 2,866 pairs of a text (10 topics) and an image (128 visual words), 10 categories",
    load=load,
    layout=(
        "raw_features.mat with trainset_txt_img_cat.list and testset_txt_img_cat.list from "
        "http://www.svcl.ucsd.edu/projects/crossmodal/, or wiki_data.mat, or wiki.npz."
    ),
    citation="Rasiwasia-2010",
    licence="Not stated by the publisher; texts are CC BY-SA, images as on Wikimedia Commons.",
    folder="wiki",
    find=_find,
)
