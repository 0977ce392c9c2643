"""Search a collection by images, examples for and against, texts, or one of its items."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_choice
from bittern.codes import Codes
from bittern.data.images import read_image
from bittern.errors import InputError
from bittern.fusion.examples import similarity
from bittern.inputs import read_codes, read_vectors
from bittern.io.files import atomic_write
from bittern.store.base import Collection
from bittern.store.recipe import IMAGE, TEXT

CANDIDATES = 1000  # nearest items of each example; all examples together rank them
SIDE, MARGIN, CAPTION, TITLE = 128, 8, 18, 34  # pixels of the montage
FRAME = "#3b6fb6"  # of items at the same distance
PER_LINE = 5
FilePath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Items found, best first, with their metadata."""

    ids: NDArray[np.int64]
    values: NDArray[Any]  # Hamming distances, or similarities to several examples
    is_distance: bool
    metadata: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.ids)


def search_by_images(
    collection: Collection,
    images: Sequence[FilePath],
    *,
    unlike: Sequence[FilePath] = (),
    to: str | None = None,
    k: int = 20,
    radius: int | None = None,
    where: str | None = None,
) -> Matches:
    """The items nearest to an image, or most similar to several examples and not to ``unlike``.

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
    _check_known(text, recipe.texts or recipe.features)
    where = _only(collection, to, where)
    code = recipe.encode([text], "search: the text", modality=TEXT)
    return _nearest(collection, code, k, radius, where)


def _check_known(text: str, feature: Any) -> None:
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


def draw_montage(matches: Matches, path: FilePath, *, title: str = "") -> None:
    """Write a sheet of the images found, each with its distance or similarity.

    A frame holds images at the same distance: their order among each other means nothing.  It is
    open on the side where the tie continues on another line.  ``title``, such as the text that
    was searched for, stands above.
    """
    from PIL import Image, ImageDraw, ImageFont

    paths = [known.get("path") for known in matches.metadata]
    if not all(paths):
        raise InputError("search: a montage needs items with a path; these are not images.")
    if not len(matches):
        raise InputError("search: nothing was found, so there is nothing to draw.")
    n_lines = -(-len(matches) // PER_LINE)
    step, line, head = SIDE + MARGIN, SIDE + CAPTION + MARGIN, TITLE if title else 0
    size = (MARGIN + step * min(PER_LINE, len(matches)), head + MARGIN + line * n_lines)
    sheet = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(sheet)
    if title:
        font = ImageFont.load_default(TITLE * 3 // 5)
        while len(title) > 1 and font.getlength(title) > size[0] - 2 * MARGIN:
            title = f"{title[:-2]}…"
        pen.text((size[0] // 2, MARGIN), title, fill="black", anchor="mt", font=font)
    for i, (source, value) in enumerate(zip(paths, matches.values, strict=True)):
        left, top = MARGIN + step * (i % PER_LINE), head + MARGIN + line * (i // PER_LINE)
        image = Image.fromarray(read_image(Path(str(source))))
        image.thumbnail((SIDE, SIDE))
        inset = (SIDE - image.width) // 2, (SIDE - image.height) // 2
        sheet.paste(image, (left + inset[0], top + inset[1]))
        caption = str(value) if matches.is_distance else f"{value:.3g}"
        pen.text((left + SIDE // 2, top + SIDE + 2), caption, fill="black", anchor="mt")
        if matches.is_distance:
            _frame(pen, (left, top), *_ties(matches.values, i))
    with atomic_write(path) as file:
        sheet.save(file, format=_image_format(Path(path)))


def _ties(values: NDArray[Any], i: int) -> tuple[bool, bool]:
    """Whether item i is at the same distance as the one before it, and as the one after it."""
    before = i > 0 and values[i - 1] == values[i]
    after = i + 1 < len(values) and values[i + 1] == values[i]
    return bool(before), bool(after)


def _frame(pen: Any, corner: tuple[int, int], before: bool, after: bool) -> None:
    """Draw an item's part of the frame around a tie, if it is in one."""
    if not (before or after):
        return
    half = MARGIN // 2
    left, top = corner[0] - half + 1, corner[1] - half + 1
    right, bottom = corner[0] + SIDE + half - 1, corner[1] + SIDE + CAPTION + half - 2
    pen.line((left - before * 2, top, right + after * 2, top), fill=FRAME, width=2)
    pen.line((left - before * 2, bottom, right + after * 2, bottom), fill=FRAME, width=2)
    if not before:
        pen.line((left, top, left, bottom), fill=FRAME, width=2)
    if not after:
        pen.line((right, top, right, bottom), fill=FRAME, width=2)


def _nearest(
    collection: Collection, code: Codes, k: int, radius: int | None, where: str | None
) -> Matches:
    if radius is None:
        hits = collection.search(code, k, where=where)
    else:
        hits = collection.within(code, radius, where=where)
    ids, distances = hits[0]
    return Matches(ids, distances, True, collection.get(ids).metadata)


def _most_similar(
    collection: Collection,
    images: Sequence[FilePath],
    unlike: Sequence[FilePath],
    k: int,
    where: str | None,
) -> Matches:
    """Items near an example, ranked by similarity to all of them (2.2 of the evidence paper)."""
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
    return Matches(ids[order], values[order], False, [items.metadata[i] for i in order])


def _encode(collection: Collection, images: Sequence[FilePath]) -> Codes:
    if collection.recipe.features is None:
        raise InputError(
            f"{collection.place}: was made from vectors, and cannot be searched by images; "
            "search by a row of a file of vectors."
        )
    paths = [str(path) for path in images]
    return collection.recipe.encode(paths, "search: the images", modality=IMAGE)


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


def _image_format(path: Path) -> str:
    from PIL import Image

    known = Image.registered_extensions()
    if path.suffix.lower() not in known:
        raise InputError(f"{path}: must be an image file, for example .png or .jpg.")
    return str(known[path.suffix.lower()])
