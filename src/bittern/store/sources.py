"""What a collection is filled from: vectors or images, and the texts of images if there are any."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bittern.checks import PositionArray, check_labels, check_vectors
from bittern.codes import Codes
from bittern.data.caption_files import (
    Captions,
    captions_of_images,
    captions_of_rows,
    is_suffix,
)
from bittern.data.readers.folder import SUFFIX_LIST
from bittern.errors import FileError, InputError
from bittern.features import extract
from bittern.features.base import Feature, find_images
from bittern.features.extraction import fitted_on
from bittern.features.text import shared_words
from bittern.inputs import read_vectors
from bittern.store.code_items import about_rows, is_code_file, read_code_items
from bittern.store.image_items import (
    BROKEN,
    LeftOut,
    ListedImages,
    Origin,
    columns_of_rows,
    find_table,
    list_images,
    read_states,
)
from bittern.store.paths import stored_path
from bittern.store.recipe import IMAGE, TEXT, Recipe
from bittern.store.shard_items import ShardItems, is_sharded

BLOCK = 10_000  # rows hashed at once
Texts = str | os.PathLike[str]  # a file of captions, or the suffix of files beside the images


class Source(Protocol):
    """Items to store, in order; a recipe encodes them, and can learn from them."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What is known about each item, as columns."""
        ...

    @property
    def ids(self) -> NDArray[np.int64] | None:
        """The ids to store the items under; None numbers them from 0."""
        ...

    @property
    def learnable(self) -> PositionArray:
        """Positions of the items that a hasher can learn from."""
        ...

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Images that could not be read, other files, and rows of a table without an image."""
        ...

    def fitted(self, recipe: Recipe, rows: PositionArray) -> Recipe:
        """A copy of the recipe, fitted on the items at ``rows``."""
        ...

    def encode(self, recipe: Recipe, rows: slice) -> Codes:
        """The codes of some items."""
        ...

    def digest(self) -> str:
        """A hash of the content and its order."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class VectorItems:
    """Vectors of items, their metadata as columns, and the fitted feature that made the vectors."""

    vectors: NDArray[Any]  # (n, dim)
    metadata: dict[str, Any]
    labels: NDArray[Any] | None
    feature: Feature | None = None
    ids: NDArray[np.int64] | None = None
    left_out: tuple[LeftOut, ...] = ()
    names: tuple[str, ...] = ()  # of images, relative to their folder

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def learnable(self) -> PositionArray:
        """All positions."""
        return np.arange(len(self))

    def fitted(self, recipe: Recipe, rows: PositionArray) -> Recipe:
        """A copy of the recipe, fitted on the items at ``rows``; a fitted hasher stays as it is."""
        if recipe.is_fitted:
            return Recipe(recipe.hasher, self.feature)
        hasher = clone(recipe.hasher)
        labels = None if self.labels is None else self.labels[rows]
        if hasher.needs_y and labels is None:
            raise InputError(
                f"index: {hasher.name} learns from labels, but there are none; images get them "
                "from sub-folders or the column label of their metadata, an .npz file from its "
                "array 'labels'."
            )
        return Recipe(hasher.fit(self.vectors[rows], labels), self.feature)

    def encode(self, recipe: Recipe, rows: slice) -> Codes:
        """The codes of some items."""
        return recipe.encode(np.asarray(self.vectors[rows]), "index: vectors")

    def digest(self) -> str:
        """A hash of the content and its order."""
        content = hashlib.blake2b(digest_size=16)
        known = {**self.metadata, "labels": None if self.labels is None else self.labels.tolist()}
        known["ids"] = None if self.ids is None else self.ids.tolist()
        content.update(json.dumps([self.vectors.shape, known]).encode())
        for start in range(0, len(self.vectors), BLOCK):
            content.update(self.vectors[start : start + BLOCK].tobytes())
        return content.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class CaptionedItems:
    """Images, and then their texts: two items for an image with a caption.

    The metadata of an image has its text, and that of a text the path of its image;
    ``modality`` tells them apart.
    """

    images: VectorItems
    texts: tuple[str, ...]  # of each image, empty if it has none; then those without an image
    ids: None = None  # images and texts are numbered together

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Of the images."""
        return self.images.left_out

    def __len__(self) -> int:
        return len(self.images) + len(self._worded)

    @property
    def learnable(self) -> PositionArray:
        """The images that have a text."""
        return self._worded[self._worded < len(self.images)]

    @property
    def metadata(self) -> dict[str, Any]:
        """What is known about each item, as columns."""
        n, pairs = len(self.images), self._worded.tolist()
        columns = {
            name: [*column, *(column[i] if i < n else None for i in pairs)]
            for name, column in self.images.metadata.items()
        }
        said = [self.texts[i] or None for i in [*range(n), *pairs]]
        return {"modality": [IMAGE] * n + [TEXT] * len(pairs), **columns, "text": said}

    def fitted(self, recipe: Recipe, rows: PositionArray) -> Recipe:
        """A copy of the recipe, fitted on the pairs at ``rows``; a fitted hasher stays as it is.

        A hasher that needs classes or tags learns from the images' classes, or, if there are none,
        from the words that captions share.
        """
        if recipe.is_fitted:
            return Recipe(recipe.hasher, self.images.feature, recipe.texts)
        assert recipe.texts is not None and recipe.hasher is not None
        if not len(rows):
            raise InputError("index: no image has a text to learn from.")
        hasher, feature = clone(recipe.hasher), clone(recipe.texts)
        texts = [self.texts[i] for i in rows]
        feature.fit(texts)
        labels, options = self.images.labels, {}
        y = None if labels is None else labels[rows]
        if hasher.needs_y and y is None:
            y, words = shared_words(texts, f"index: {hasher.name}")
            if "words" in inspect.signature(hasher.fit).parameters:
                options["words"] = feature.transform(words)
        hasher.fit(self.images.vectors[rows], feature.transform(texts), y, **options)
        return Recipe(hasher, self.images.feature, feature)

    def encode(self, recipe: Recipe, rows: slice) -> Codes:
        """The codes of some items."""
        n, parts = len(self.images), []
        if rows.start < n:
            vectors = np.asarray(self.images.vectors[rows.start : min(rows.stop, n)])
            parts.append(recipe.encode(vectors, "index: images", modality=IMAGE))
        if rows.stop > n:
            some = self._worded[max(rows.start - n, 0) : rows.stop - n]
            texts = [self.texts[i] for i in some]
            parts.append(recipe.encode(texts, "index: texts", modality=TEXT))
        return Codes.concatenate(parts)

    def digest(self) -> str:
        """A hash of the content and its order."""
        content = json.dumps([self.images.digest(), self.texts])
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()

    @property
    def _worded(self) -> PositionArray:
        """Positions of the texts that are not empty."""
        return np.flatnonzero([bool(text) for text in self.texts])


def read_source(
    source: Path,
    recipe: Recipe,
    feature_file: Path,
    *,
    listed: ListedImages | None = None,
    home: Path | None = None,
    texts: Texts | None = None,
    key: str | None = None,
    layout: str | None = None,
) -> Source:
    """The images of a folder, its shards, or the vectors or codes of a file.

    ``texts`` are of the images.

    ``listed`` are the images of a folder, and ``home`` is the folder that their paths are relative
    to.  ``key`` names the array of vectors; ``layout`` says that a file holds codes, laid out so.
    Features of images go to ``feature_file`` as they are
    computed, and are found there again.
    """
    if not source.exists():
        raise InputError(f"{source}: no such file or folder.")
    if is_sharded(source):
        if texts is not None:
            raise InputError(f"{source}: holds codes; --texts go with images or their vectors.")
        return ShardItems.open(source, recipe)
    if source.is_dir():
        if recipe.features is None:
            raise InputError(f"{source}: images need a feature in the recipe.")
        listed = listed or list_images(origin_of(source, texts=texts))
        items = _read_images(listed, recipe.features, feature_file, home)
    elif is_code_file(source, layout):
        if texts is not None:
            raise InputError(f"{source}: holds codes; --texts go with images or their vectors.")
        return read_code_items(source, recipe, layout)
    else:
        items = _read_vectors(source, key)
    if not recipe.is_crossmodal:
        if texts is not None:
            raise InputError("index: texts need a cross-modal hasher, such as cca-itq.")
        return items
    if texts is None:
        return CaptionedItems(items, ("",) * len(items))
    return CaptionedItems(items, _read_texts(source, texts, items))


def origin_of(
    source: str | os.PathLike[str],
    *,
    metadata: str | os.PathLike[str] | None = None,
    with_exif: bool = True,
    skip_broken: bool = False,
    texts: Texts | None = None,
) -> Origin:
    """How a folder of images is read; ``metadata`` is a table about them, ``texts`` captions."""
    root = Path(os.path.realpath(source))
    table = None if metadata is None else find_table(metadata, root)
    said = None if texts is None else find_texts(texts, root)
    return Origin(root, table, with_exif, skip_broken, texts=said)


def find_texts(texts: Texts, root: Path) -> str:
    """A file of captions, looked up in ``root`` if it is not in the current folder; or a suffix."""
    return os.fspath(texts) if is_suffix(texts) else str(find_table(texts, root))


def _read_images(
    listed: ListedImages, feature: Feature, feature_file: Path, home: Path | None
) -> VectorItems:
    """Features of a folder; keeps partial files for a call that resumes."""
    root = listed.origin.root
    if not listed.names:
        raise FileError(f"{root}: has no images; an image's name ends in {SUFFIX_LIST}.")
    errors: Literal["skip", "raise"] = "skip" if listed.origin.skip_broken else "raise"
    images = listed.paths(listed.names)
    fitted = fitted_on(images, feature, feature_file, errors=errors)
    found = extract(images, [fitted], feature_file, errors=errors, keep_parts=True)
    states = read_states(root, found.paths)
    metadata = columns_of_rows(listed.read(found.paths, stored_path(root, home), states))
    broken = tuple(LeftOut(BROKEN, name, reason) for name, reason in found.skipped.items())
    return VectorItems(
        found[feature.name],
        metadata,
        found.labels,
        fitted,
        left_out=(*broken, *listed.left_out),
        names=found.paths,
    )


def _read_vectors(source: Path, key: str | None) -> VectorItems:
    file = read_vectors(source, key=key)
    vectors = check_vectors(file[:], f"{source}: vectors")
    labels = file.rows.labels
    if labels is not None:
        labels = check_labels(labels, f"{source}: labels", len(vectors))
    metadata, ids = about_rows(file.rows)
    return VectorItems(vectors, metadata, labels, ids=ids)


def _read_texts(source: Path, texts: Texts, items: VectorItems) -> tuple[str, ...]:
    """The text of each item, and the texts of none; an image that was skipped loses its text."""
    if not source.is_dir():
        return captions_of_rows(texts, source, len(items), None)
    paths = find_images(source).paths
    captions: Captions = captions_of_images(texts, source, paths)
    said = dict(zip(paths, captions.texts, strict=True))
    return (*(said[name] for name in items.names), *captions.others.values())
