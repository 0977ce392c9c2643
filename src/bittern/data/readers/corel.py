"""Corel: images by category, as folders, as numbered JPEGs with a label file, or inside a zip.

Reads the first of these that exists:

- ``labels.npz`` and one ``.zip`` of numbered JPEGs, or the loose JPEGs.  With ``label`` and
  ``names`` it is Corel-1000, where the class is ``id // 100``; with ``image_id``, ``category``,
  ``is_test``, ``annot`` and ``words`` it is Corel-5K, with tags and official sets;
- ``manifest.csv`` or ``manifest.jsonl``, as in :mod:`bittern.data.readers.folder`;
- images numbered 0…999 without labels: Corel-1000;
- category folders at any depth: the category is the folder that holds the image.

Features in the same folder (``*efflite0*.npz``, array ``feat``) become the modality ``cnn``; an
image's words can become the modality ``text``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.data.images import ImageFiles, ZipImages, list_images
from bittern.data.readers import folder as folders
from bittern.data.rows import Rows, SparseRows, Texts
from bittern.errors import FileError, InputError
from bittern.io.npz import read_arrays, require_names
from bittern.registry import Registry

FEATURE_FILES = "*efflite0*.npz"
PER_CLASS = 100  # of Corel-1000
COREL1000_NAMES = (
    "africa", "beach", "buildings", "buses", "dinosaurs",
    "elephants", "flowers", "horses", "mountains", "food",
)  # fmt: skip
_COREL5K_KEYS = ("image_id", "category", "is_test", "annot", "words")


def load(
    folder: Path,
    *,
    collection: str | None = None,
    min_images: int = 90,
    categories: int | Sequence[str] | None = None,
    text: str | None = None,
) -> Dataset:
    """Read a Corel collection, without categories of fewer than ``min_images`` images.

    ``categories=63`` keeps the 63 largest (ties by name).  The evidence paper selected its 63 from
    the Gallery by hand and does not list them; if you know them, pass their names.  ``collection``,
    ``"corel1000"`` or ``"corel5k"``, selects the sub-folder of that name.

    ``text`` adds the words of an image, if there are any, as the modality ``text``: ``"tags"``
    gives rows of 0 and 1 with a column per word, as the tags have them, and ``"words"`` the words
    as a text.
    """
    root = _collection(Path(folder), collection)
    dataset = _with_features(root, _read(root))
    if text is not None:
        dataset = _with_text(root, dataset, text)
    return _selected(root, dataset, check_count(min_images, "corel: min_images"), categories)


def _collection(root: Path, collection: str | None) -> Path:
    names = ("corel1000", "corel5k")
    if collection is not None:
        known = Registry("collection of corel", {name: root / name for name in names})
        return known[collection] if known[collection].is_dir() else root
    there = [name for name in names if (root / name).is_dir()]
    if len(there) > 1:
        raise InputError(
            f"corel: {root} has {' and '.join(there)}; pass collection='corel5k' or the other."
        )
    return root / there[0] if there else root


def _find(folder: Path, modalities: Collection[str], options: Mapping[str, Any]) -> None:
    """Look for the files of a collection; category folders must be read to find out."""
    if (collection := options.get("collection")) is not None:
        _find_labelled(_collection(folder, collection), modalities)


def _find_labelled(root: Path, modalities: Collection[str], *_: object) -> None:
    if not (root / "labels.npz").is_file():
        raise FileError(f"{root / 'labels.npz'}: no such file; it belongs to the images.")
    if "cnn" in modalities and not any(root.glob(FEATURE_FILES)):
        raise FileError(f"{root / FEATURE_FILES}: no such file of network features.")


def _read(root: Path) -> Dataset:
    if (root / "labels.npz").exists():
        return _labelled(root, _images(root))
    if any((root / name).exists() for name in folders.MANIFESTS):
        return replace(folders.load(root), **_about("corel"))
    images = _images(root)
    if images.numbers is not None and len({name.parent for name in images.names}) == 1:
        return _corel1000(images, COREL1000_NAMES)
    if isinstance(images.rows, ImageFiles):
        return _by_folder(root, images)
    raise FileError(f"{root}: has a zip file of images but no labels.npz.")


@dataclass(frozen=True, slots=True, eq=False)
class _Images:
    """Images ordered by number, or by name if the names are not numbers."""

    names: tuple[PurePosixPath, ...]
    numbers: NDArray[np.int64] | None
    rows: Rows
    source: Path


def _images(root: Path) -> _Images:
    zips = sorted(root.glob("*.zip"))
    if len(zips) > 1:
        raise FileError(f"{root}: has more than one zip file, {zips[0].name} and {zips[1].name}.")
    if zips:
        members = {member.filename: member for member in list_images(zips[0])}
        order, numbers = _in_order(zips[0], list(members))
        rows: Rows = ZipImages(zips[0], [members[name] for name in order])
        return _Images(tuple(map(PurePosixPath, order)), numbers, rows, zips[0])
    if not root.is_dir():
        raise FileError(f"{root}: no such folder.")
    order, numbers = _in_order(root, list(folders.find_images(root).paths))
    rows = ImageFiles([f"{root.absolute()}/{name}" for name in order])
    return _Images(tuple(map(PurePosixPath, order)), numbers, rows, root)


def _in_order(source: Path, names: list[str]) -> tuple[list[str], NDArray[np.int64] | None]:
    if not names:
        raise FileError(f"{source}: has no images.")
    stems = {name: PurePosixPath(name).stem for name in names}
    if not all(s.isascii() and s.isdigit() and len(s) < 18 for s in stems.values()):
        return sorted(names), None
    order = sorted(names, key=lambda name: (int(stems[name]), name))
    return order, np.array([int(stems[name]) for name in order], np.int64)


def _labelled(root: Path, images: _Images) -> Dataset:
    path = root / "labels.npz"
    if images.numbers is None:
        raise FileError(f"{images.source}: images that {path.name} labels must be numbered.")
    arrays = read_arrays(path, (), ("label", "names", "category_cd", *_COREL5K_KEYS))
    if "image_id" in arrays:
        return _corel5k(path, images, arrays)
    if not {"label", "names"} <= arrays.keys():
        raise FileError(f"{path}: has neither label and names nor {', '.join(_COREL5K_KEYS)}.")
    dataset = _corel1000(images, tuple(map(str, arrays["names"].reshape(-1))))
    if dataset.labels is None or not np.array_equal(arrays["label"], dataset.labels):
        raise FileError(f"{path}: label must be the image's number // {PER_CLASS}, in order.")
    return dataset


def _corel1000(images: _Images, names: tuple[str, ...]) -> Dataset:
    numbers = images.numbers
    if numbers is None or not np.array_equal(numbers, np.arange(len(numbers))):
        raise FileError(f"{images.source}: images must be numbered 0, 1, 2, … without a gap.")
    labels = numbers // PER_CLASS
    if labels.max() >= len(names):
        raise FileError(
            f"{images.source}: numbers up to {numbers[-1]} need {labels.max() + 1} classes of "
            f"{PER_CLASS}, but there are {len(names)} names; add labels.npz or category folders."
        )
    return Dataset(
        modalities={"image": images.rows},
        ids=numbers.astype(np.str_),
        labels=labels,
        class_names=names,
        notes=(f"{len(numbers):,} images; class = number // {PER_CLASS}.",),
        **_about("corel1000"),
    )


def _corel5k(path: Path, images: _Images, arrays: dict[str, NDArray[Any]]) -> Dataset:
    _refuse_odd_shapes(path, arrays)
    numbers, category = arrays["image_id"], arrays["category"].astype(np.int64)
    if images.numbers is None or not np.array_equal(numbers, images.numbers):
        raise FileError(
            f"{path}: image_id must be the numbers of the images of {images.source.name}, "
            f"ascending; there are {len(numbers)} and {len(images.names)}."
        )
    cds = arrays.get("category_cd")
    names = range(category.max() + 1) if cds is None else cds.reshape(-1)
    if category.min() < 0 or category.max() >= len(names):
        raise FileError(f"{path}: category must lie in 0…{len(names) - 1}.")
    is_test = arrays["is_test"].astype(bool)
    annotation = arrays["annot"].astype(bool)
    return Dataset(
        modalities={"image": images.rows},
        ids=numbers.astype(np.str_),
        labels=category,
        class_names=tuple(map(str, names)),
        tags=annotation,
        tag_names=tuple(map(str, arrays["words"])),
        official={"train": np.flatnonzero(~is_test), "test": np.flatnonzero(is_test)},
        notes=(
            f"{len(numbers):,} images as labels.npz has them; class names are numbers of CDs; "
            f"{annotation.sum(axis=1).mean():.2f} words per image.",
        ),
        **_about("corel5k"),
    )


def _refuse_odd_shapes(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    require_names(path, _COREL5K_KEYS, arrays)
    n = arrays["image_id"].size
    n_words = arrays["words"].size
    shapes = {"image_id": (n,), "category": (n,), "is_test": (n,), "annot": (n, n_words)}
    for key, shape in shapes.items():
        array = arrays[key]
        if array.shape != shape or array.dtype.kind not in "biu" or not n:
            raise FileError(
                f"{path}: {key} must be whole numbers of shape {shape}, "
                f"got {array.dtype} of shape {array.shape}."
            )
    if arrays["words"].ndim != 1 or arrays["words"].dtype.kind != "U":
        raise FileError(f"{path}: words must be a list of text, got {arrays['words'].dtype}.")


def _by_folder(root: Path, images: _Images) -> Dataset:
    """The category of an image is the folder that holds it."""
    names = sorted(str(name) for name in images.names)
    parents = [str(PurePosixPath(name).parent) for name in names]
    if "." in parents:
        raise FileError(
            f"{root}: {names[parents.index('.')]} is in no category folder; give the images "
            "folders, a manifest.csv or a labels.npz."
        )
    labels, class_names = folders.class_numbers(parents)
    return Dataset(
        modalities={"image": ImageFiles([f"{root.absolute()}/{name}" for name in names])},
        ids=np.array(names, dtype=np.str_),
        labels=labels,
        class_names=class_names,
        notes=(f"{len(names):,} images in {len(class_names)} category folders.",),
        **_about("corel"),
    )


def _with_features(root: Path, dataset: Dataset) -> Dataset:
    """Add the modality ``cnn`` if there is a file of features with the images."""
    paths = sorted(root.glob(FEATURE_FILES))
    if not paths:
        return dataset
    arrays = read_arrays(paths[0], ("feat",), ("label", "category", "image_id"))
    features = arrays.pop("feat")
    if features.ndim != 2 or len(features) != len(dataset) or features.dtype.kind != "f":
        raise FileError(
            f"{paths[0]}: feat must be one row of floats for each of {len(dataset)} images, "
            f"got {features.dtype} of shape {features.shape}."
        )
    if not np.isfinite(features).all():
        raise FileError(f"{paths[0]}: feat must be finite.")
    known: dict[str, Any] = {"label": dataset.labels, "category": dataset.labels}
    known["image_id"] = None if dataset.ids is None else dataset.ids.astype(object)
    for key, given in arrays.items():
        same = given.astype(np.str_).astype(object) if key == "image_id" else given
        if not np.array_equal(same, known[key]):
            raise FileError(f"{paths[0]}: {key} differs from that of the images.")
    modalities = {**dataset.modalities, "cnn": features.astype(np.float32)}
    return dataset.with_note(f"cnn is feat of {paths[0].name}.", modalities=modalities)


def _with_text(root: Path, dataset: Dataset, text: str) -> Dataset:
    """Add the modality ``text``; an image without words lacks it."""
    forms: Registry[Callable[[Any, tuple[str, ...]], Rows]] = Registry(
        "text of corel", {"tags": _tag_rows, "words": _tag_texts}
    )
    form = forms[text]
    if dataset.tags is None:
        raise FileError(f"{root}: text={text!r} needs words, and these images have none.")
    there = np.asarray(dataset.tags.sum(axis=1)).ravel() > 0
    n_without = int((~there).sum())
    have = "image has" if n_without == 1 else "images have"
    return dataset.with_note(
        f"text is the words of each image; {n_without:,} {have} none.",
        modalities={**dataset.modalities, "text": form(dataset.tags, dataset.tag_names)},
        present={} if there.all() else {"text": there},
    )


def _tag_rows(tags: Any, names: tuple[str, ...]) -> Rows:
    from scipy.sparse import issparse

    return SparseRows(tags.astype(np.float32)) if issparse(tags) else tags.astype(np.float32)


def _tag_texts(tags: Any, names: tuple[str, ...]) -> Rows:
    from scipy.sparse import csr_array

    rows = csr_array(tags)
    columns = np.split(rows.indices, rows.indptr[1:-1])
    return Texts([" ".join(names[column] for column in sorted(some)) for some in columns])


def _selected(
    root: Path, dataset: Dataset, min_images: int, categories: int | Sequence[str] | None
) -> Dataset:
    """Only the chosen categories that are large enough, renumbered."""
    if dataset.labels is None:
        return dataset
    sizes = np.bincount(dataset.labels[dataset.labels >= 0], minlength=len(dataset.class_names))
    large = np.flatnonzero(sizes >= min_images)
    if not len(large):
        raise FileError(
            f"{root}: no category has min_images={min_images} images; the largest has "
            f"{sizes.max()}."
        )
    chosen = _chosen(root, dataset.class_names, sizes, large, categories)
    if len(chosen) == len(sizes):
        return dataset
    number = np.full(len(sizes) + 1, -1)  # the last entry is for label -1
    number[chosen] = np.arange(len(chosen))
    keep = number[dataset.labels] >= 0
    new = np.cumsum(keep) - 1
    official = {name: new[rows[keep[rows]]] for name, rows in dataset.official.items()}
    taken = dataset.take(np.flatnonzero(keep))
    return taken.with_note(
        f"{len(chosen)} of {len(sizes)} categories kept, of at least {min_images} images each.",
        labels=number[dataset.labels[keep]],
        class_names=tuple(dataset.class_names[c] for c in chosen),
        official=official,
    )


def _chosen(
    root: Path,
    names: tuple[str, ...],
    sizes: NDArray[np.intp],
    large: NDArray[np.intp],
    categories: int | Sequence[str] | None,
) -> NDArray[np.intp]:
    if categories is None:
        return large
    if isinstance(categories, int):
        k = check_count(categories, "corel: categories")
        if k > len(large):
            raise FileError(
                f"{root}: has only {len(large)} categories that are large enough, not {k}."
            )
        return np.sort(large[np.argsort(-sizes[large], kind="stable")[:k]])
    known = Registry("category that is large enough", {names[c]: c for c in large.tolist()})
    return np.sort(np.array([known[name] for name in dict.fromkeys(categories)], np.intp))


def _about(name: str) -> dict[str, Any]:
    citations = {"corel": "Yavlinsky-2004", "corel1000": "Wang-2001", "corel5k": "Duygulu-2002"}
    return {"name": name, "citation": citations[name], "licence": _LICENCE}


_LICENCE = "Research only; the photographs are Corel's and may not be passed on."
_NUMBERED = "a zip file of JPEGs, or the numbered JPEGs, with labels.npz"

SPEC = DatasetSpec(
    name="corel",
    title="Corel photographs by category: the Gallery, Corel-1000 or Corel-5K",
    load=load,
    layout=f"category folders of images; or {_NUMBERED} or manifest.csv.",
    citation="Yavlinsky-2004",
    licence=_LICENCE,
    folder="corel",
    find=_find,
)
COREL1000 = replace(
    SPEC,
    name="corel1000",
    title="Corel-1000: 10 categories of 100 photographs",
    layout=f"{_NUMBERED}; class = number // {PER_CLASS}.",
    citation="Wang-2001",
    folder="corel1000",
    find=None,
)
COREL5K = replace(
    SPEC,
    name="corel5k",
    title="Corel-5K: 4,999 photographs, 50 categories, 374 words",
    layout=f"{_NUMBERED} ({', '.join(_COREL5K_KEYS)}).",
    citation="Duygulu-2002",
    folder="corel5k",
    find=_find_labelled,
)
