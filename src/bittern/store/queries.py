"""Search a collection by images, examples for and against, texts, or one of its items."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_choice
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.inputs import read_codes, read_vectors
from bittern.store.base import Collection
from bittern.store.paths import located
from bittern.store.recipe import IMAGE, TEXT

CANDIDATES = 1000  # nearest items of each example; all examples together rank them
FilePath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Items found, best first, with their metadata."""

    ids: NDArray[np.int64]
    values: NDArray[Any]  # Hamming distances, or similarities to several examples
    is_distance: bool
    metadata: list[dict[str, Any]]
    folder: Path | None = None  # where relative paths in the metadata start

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def files(self) -> list[Path | None]:
        """The image of each item; None if it has no path."""
        return [image_file(known, self.folder) for known in self.metadata]


def image_file(known: Mapping[str, Any], folder: Path | None) -> Path | None:
    """The image of an item with these metadata; None if it has no path."""
    path = known.get("path")
    return None if path is None else located(str(path), folder)


def search_by_images(
    collection: Collection,
    images: Sequence[FilePath | NDArray[np.uint8]],
    *,
    unlike: Sequence[FilePath] = (),
    to: str | None = None,
    k: int = 20,
    radius: int | None = None,
    where: str | None = None,
) -> Matches:
    """The items nearest to an image, or most similar to several examples and not to ``unlike``.

    ``images`` are files, or pixels ``(h, w, 3)``.
    With one image, gives the ``k`` nearest items by Hamming distance, or all within ``radius``.  In
    a collection of images and texts, ``to`` says what to find: ``"image"`` (the default) or
    ``"text"``.
    """
    if not images:
        raise InputError("search: needs at least one image.")
    where = _only(collection, to, where)
    if len(images) + len(unlike) == 1:
        return _nearest(collection, _encode(collection, images), k, radius, where)
    if radius is not None:
        raise InputError("search: radius is for one query, not for several examples.")
    return _most_similar(collection, images, unlike, k, where)


def search_by_text(
    collection: Collection,
    text: str,
    *,
    to: str | None = None,
    k: int = 20,
    radius: int | None = None,
    where: str | None = None,
) -> Matches:
    """The items nearest to a text: images, or with ``to="text"`` texts."""
    recipe = collection.recipe
    takes_texts = recipe.features is not None and recipe.features.takes == "texts"
    if recipe.texts is None and not takes_texts:
        raise InputError(
            f"{collection.place}: was made without texts, and cannot be searched by a text; "
            "'bittern index create --texts' makes a collection that can."
        )
    if not text.strip():
        raise InputError("search: the text must have at least one word.")
    check_words(text, recipe.texts or recipe.features)
    where = _only(collection, to, where)
    code = recipe.encode([text], "search: the text", modality=TEXT)
    return _nearest(collection, code, k, radius, where)


def check_words(text: str, feature: Any) -> None:
    """Refuse words that the collection's texts do not have: their order would mean nothing."""
    from bittern.features.text import TextFeature

    if isinstance(feature, TextFeature) and not feature.knows(text):
        raise InputError(
            f"search: no text of this collection has any word of {text[:80]!r}; try other words, "
            "or make the collection with --text-features sentence, which compares meanings."
        )


def search_by_row(
    collection: Collection,
    row: int,
    *,
    vectors: FilePath | None = None,
    codes: FilePath | None = None,
    key: str | None = None,
    layout: str | None = None,
    to: str | None = None,
    k: int = 20,
    radius: int | None = None,
    where: str | None = None,
) -> Matches:
    """The items nearest to the item with id ``row``, or to that row of ``vectors`` or ``codes``.

    These are files; ``key`` names the array of vectors, and ``layout`` says how codes are laid out
    (see :mod:`bittern.io.code_layouts`), if that cannot be recognised.
    """
    where = _only(collection, to, where)
    if codes is not None:
        code = _row_of(read_codes(codes, layout=layout), row, codes)
        if code.n_bits != collection.n_bits:
            raise InputError(
                f"{codes}: has codes of {code.n_bits} bits, but {collection.place} of "
                f"{collection.n_bits}."
            )
    elif vectors is not None:
        vector = _row_of(read_vectors(vectors, key=key), row, vectors)
        modality = IMAGE if collection.recipe.is_crossmodal else None
        code = collection.recipe.encode(vector, f"{vectors}", modality=modality)
    else:
        code = collection.get([row]).codes
    return _nearest(collection, code, k, radius, where)


def _row_of(rows: Any, row: int, path: FilePath) -> Any:
    if not 0 <= row < len(rows):
        raise InputError(f"{path}: has {len(rows):,} rows, counted from 0; there is no row {row}.")
    return rows[row : row + 1]


def _nearest(
    collection: Collection, code: Codes, k: int, radius: int | None, where: str | None
) -> Matches:
    if radius is None:
        hits = collection.search(code, k, where=where)
    else:
        hits = collection.within(code, radius, where=where)
    ids, distances = hits[0]
    return Matches(ids, distances, True, collection.get(ids).metadata, collection.folder)


def _most_similar(
    collection: Collection,
    images: Sequence[FilePath | NDArray[np.uint8]],
    unlike: Sequence[FilePath],
    k: int,
    where: str | None,
) -> Matches:
    """Items near an example, ranked by similarity to all of them (2.2 of the evidence paper)."""
    from bittern.fusion.examples import similarity  # which takes long

    wanted = _encode(collection, images)
    unwanted = _encode(collection, unlike) if unlike else None
    hits = collection.search(wanted, max(CANDIDATES, k), where=where)
    ids = np.unique(np.concatenate([hits[q][0] for q in range(len(wanted))]))
    items = collection.get(ids)
    bits = items.codes.to_bits().astype(np.float32)
    positives = wanted.to_bits().astype(np.float32)
    # Without negatives, use the complements of the examples, the codes farthest from them.
    negatives = 1 - positives if unwanted is None else unwanted.to_bits().astype(np.float32)
    values = similarity(positives, negatives, bits, epsilon=1.0)
    order = np.lexsort((ids, -values))[:k]
    known = [items.metadata[i] for i in order]
    return Matches(ids[order], values[order], False, known, collection.folder)


def _encode(collection: Collection, images: Sequence[FilePath | NDArray[np.uint8]]) -> Codes:
    if collection.recipe.features is None:
        raise InputError(
            f"{collection.place}: was made from vectors, and cannot be searched by images; "
            "search by a row of a file of vectors."
        )
    given = [one if isinstance(one, np.ndarray) else str(one) for one in images]
    return collection.recipe.encode(given, "search: the images", modality=IMAGE)


def _only(collection: Collection, to: str | None, where: str | None) -> str | None:
    """The condition, and that items are of the modality ``to``, by default images."""
    if not collection.recipe.is_crossmodal:
        if to is not None:
            raise InputError(
                f"{collection.place}: does not hold both images and texts; leave out 'to'."
            )
        return where
    kind = check_choice(to or IMAGE, "search: to", (IMAGE, TEXT))
    return f"modality = '{kind}'" + ("" if where is None else f" AND ({where})")
