"""What ``bittern search`` does: a image, a row or several examples in, a list of items out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern import store
from bittern.codes import Codes
from bittern.data.decoding import read_image
from bittern.errors import InputError
from bittern.fusion.examples import similarity
from bittern.io.files import atomic_write
from bittern.io.npz import stored_arrays
from bittern.store import Collection

__all__ = ["FORMATS", "Answer", "Question", "ask", "draw_montage"]

CANDIDATES = 1000  # nearest to each example, that are ranked by all examples together
SIDE, MARGIN, CAPTION = 128, 8, 18  # pixels of the montage
PER_LINE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for: images, or a row of a file or of the collection itself."""

    images: tuple[Path, ...] = ()
    unlike: tuple[Path, ...] = ()  # images that the answers should not be like
    row: int | None = None
    vectors: Path | None = None  # the file that the row is of; else an item of the collection
    k: int = 20
    radius: int | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        if bool(self.images) == (self.row is not None):
            raise InputError("search: give --image, once or more, or --row.")
        if self.unlike and not self.images:
            raise InputError("search: --unlike goes with --image.")
        if self.vectors is not None and self.row is None:
            raise InputError("search: --vectors needs --row, the row of it that is the query.")
        if self.radius is not None and self._has_examples:
            raise InputError("search: --radius is for one query, not for several examples.")

    @property
    def _has_examples(self) -> bool:
        return len(self.images) + len(self.unlike) > 1


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Items found, best first, with what is known of each."""

    ids: NDArray[np.int64]
    values: NDArray[Any]  # Hamming distances, or similarities to several examples
    is_distance: bool
    metadata: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.ids)


def ask(place: str, question: Question) -> Answer:
    """The items that a collection has for a question."""
    with store.open(place, read_only=True) as collection:
        if question._has_examples:
            ids, values = _by_examples(collection, question)
        else:
            query = _query(collection, question)
            if question.radius is None:
                hits = collection.search(query, question.k, where=question.where)
            else:
                hits = collection.within(query, question.radius, where=question.where)
            ids, values = hits[0]
        return Answer(ids, values, not question._has_examples, collection.get(ids).metadata)


def _query(collection: Collection, question: Question) -> Codes:
    if question.images:
        return _encoded(collection, question.images)
    assert question.row is not None
    if question.vectors is None:
        return collection.get([question.row]).codes
    array = next(iter(stored_arrays(question.vectors).values())).load()
    if not 0 <= question.row < len(array):
        raise InputError(
            f"{question.vectors}: has {len(array):,} rows, counted from 0; there is no row "
            f"{question.row}."
        )
    return collection.recipe.encode(array[question.row : question.row + 1], "search: the row")


def _encoded(collection: Collection, images: tuple[Path, ...]) -> Codes:
    if collection.recipe.features is None:
        raise InputError(
            f"{collection.place}: was made from vectors, and cannot be searched by images; "
            "use --vectors and --row."
        )
    return collection.recipe.encode([str(path) for path in images], "search: the images")


def _by_examples(
    collection: Collection, question: Question
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Items near an example, by their likeness to all of them (2.2 of the evidence paper)."""
    wanted = _encoded(collection, question.images)
    unwanted = _encoded(collection, question.unlike) if question.unlike else None
    most = max(CANDIDATES, question.k)
    hits = collection.search(wanted, most, where=question.where)
    ids = np.unique(np.concatenate([hits[q][0] for q in range(len(wanted))]))
    bits = collection.get(ids).codes.to_bits().astype(np.float32)
    positives = wanted.to_bits().astype(np.float32)
    # Without negatives, the complement of an example stands for them: as far as can be.
    negatives = 1 - positives if unwanted is None else unwanted.to_bits().astype(np.float32)
    likeness = similarity(positives, negatives, bits, epsilon=1.0)
    order = np.lexsort((ids, -likeness))[: question.k]
    return ids[order], likeness[order]


def as_table(answer: Answer) -> str:
    """A line for each item."""
    what = "distance" if answer.is_distance else "likeness"
    keys = list(dict.fromkeys(key for known in answer.metadata for key in known))
    lines = [["id", what, *keys]]
    for id_, value, known in zip(answer.ids, answer.values, answer.metadata, strict=True):
        shown = str(value) if answer.is_distance else f"{value:.3g}"
        lines.append([str(id_), shown, *(str(known.get(key, "")) for key in keys)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def as_json(answer: Answer) -> str:
    """A list of objects."""
    what = "distance" if answer.is_distance else "likeness"
    rows = zip(answer.ids.tolist(), answer.values.tolist(), answer.metadata, strict=True)
    return json.dumps([{"id": i, what: v, **known} for i, v, known in rows], ensure_ascii=False)


FORMATS = {"table": as_table, "json": as_json}


def draw_montage(answer: Answer, path: Path) -> None:
    """A sheet of the images that were found, each with its distance."""
    from PIL import Image, ImageDraw

    paths = [known.get("path") for known in answer.metadata]
    if not all(paths):
        raise InputError("search: --montage needs items with a path; these were no images.")
    if not len(answer):
        raise InputError("search: nothing was found, so there is nothing to draw.")
    n_lines = -(-len(answer) // PER_LINE)
    step, line = SIDE + MARGIN, SIDE + CAPTION + MARGIN
    size = (MARGIN + step * min(PER_LINE, len(answer)), MARGIN + line * n_lines)
    sheet = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(sheet)
    for i, (source, value) in enumerate(zip(paths, answer.values, strict=True)):
        left, top = MARGIN + step * (i % PER_LINE), MARGIN + line * (i // PER_LINE)
        image = Image.fromarray(read_image(Path(str(source))))
        image.thumbnail((SIDE, SIDE))
        inset = (SIDE - image.width) // 2, (SIDE - image.height) // 2
        sheet.paste(image, (left + inset[0], top + inset[1]))
        shown = str(value) if answer.is_distance else f"{value:.3g}"
        pen.text((left + SIDE // 2, top + SIDE + 2), shown, fill="black", anchor="mt")
    with atomic_write(path) as file:
        sheet.save(file, format=_image_format(path))


def _image_format(path: Path) -> str:
    from PIL import Image

    known = Image.registered_extensions()
    if path.suffix.lower() not in known:
        raise InputError(f"{path}: must end as images do, like .png or .jpg.")
    return str(known[path.suffix.lower()])
