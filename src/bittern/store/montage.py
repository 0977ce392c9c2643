"""A sheet of the images that a search found: the query first, then rank, name and distance."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bittern.data.images import read_image
from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write
from bittern.store.queries import Matches

SIDE, MARGIN, LINE, TITLE = 144, 8, 15, 34  # pixels
CAPTION = 2 * LINE + 4
SMALL, LARGE = 11, 20  # sizes of letters
FRAME, RULE, EMPTY = "#3b6fb6", "#999999", "#e4e4e4"  # of a tie, below queries, no image
PER_LINE = 5
FilePath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class _Tile:
    """An image and the two lines below it."""

    file: Path
    first: str
    second: str


def draw_montage(
    matches: Matches,
    path: FilePath,
    *,
    title: str = "",
    queries: Sequence[FilePath] = (),
    unlike: Sequence[FilePath] = (),
) -> None:
    """Write a sheet of the images found, each with its rank, name, and distance or similarity.

    The images that were searched for, and those that results should not resemble, come first, above
    a line.  A frame holds images at the same distance: their order among each other means nothing.
    It is open on the side where the tie continues on another line.  ``title``, such as the text
    that was searched for, stands above.  Instead of an image that cannot be read, there is a grey
    square that says so.
    """
    from PIL import Image, ImageDraw

    if not len(matches):
        raise InputError("search: nothing was found, so there is nothing to draw.")
    found = _found(matches)
    asked = [_Tile(Path(file), "query", Path(file).name) for file in queries]
    asked += [_Tile(Path(file), "unlike", Path(file).name) for file in unlike]
    step, line, head = SIDE + MARGIN, SIDE + CAPTION + MARGIN, TITLE if title else 0
    above = _n_lines(asked) * line + (MARGIN if asked else 0)
    width = MARGIN + step * min(PER_LINE, max(len(found), len(asked)))
    sheet = Image.new("RGB", (width, head + above + MARGIN + line * _n_lines(found)), "white")
    pen = ImageDraw.Draw(sheet)
    if title:
        text = _shortened(title, LARGE, width - 2 * MARGIN, middle=False)
        pen.text((width // 2, MARGIN), text, fill="black", anchor="mt", font=_font(LARGE))
    for i, tile in enumerate(asked):
        _draw(sheet, pen, tile, _corner(i, head))
    if asked:
        rule = head + above
        pen.line((MARGIN, rule, width - MARGIN, rule), fill=RULE)
    for i, tile in enumerate(found):
        corner = _corner(i, head + above)
        _draw(sheet, pen, tile, corner)
        if matches.is_distance:
            _frame(pen, corner, *_ties(matches.values, i))
    with atomic_write(path) as file:
        sheet.save(file, format=_image_format(Path(path)))


def _found(matches: Matches) -> list[_Tile]:
    tiles = []
    for rank, (file, value) in enumerate(zip(matches.files, matches.values, strict=True), start=1):
        if file is None:
            raise InputError("search: a montage needs items with a path; these are not images.")
        second = f"distance {value}" if matches.is_distance else f"similarity {value:.3g}"
        tiles.append(_Tile(file, f"{rank}. {file.name}", second))
    return tiles


def _n_lines(tiles: Sequence[_Tile]) -> int:
    return -(-len(tiles) // PER_LINE)


def _corner(i: int, head: int) -> tuple[int, int]:
    """The upper left corner of tile i below ``head``."""
    line = SIDE + CAPTION + MARGIN
    return MARGIN + (SIDE + MARGIN) * (i % PER_LINE), head + MARGIN + line * (i // PER_LINE)


def _draw(sheet: Any, pen: Any, tile: _Tile, corner: tuple[int, int]) -> None:
    """Draw one image and its two lines."""
    from PIL import Image

    left, top = corner
    middle = left + SIDE // 2
    try:
        image = Image.fromarray(read_image(tile.file))
    except FileError:
        pen.rectangle((left, top, left + SIDE - 1, top + SIDE - 1), fill=EMPTY)
        why = "cannot be read" if tile.file.exists() else "file not found"
        centre = (middle, top + SIDE // 2)
        pen.text(centre, why, fill="black", anchor="mm", font=_font(SMALL))
    else:
        image.thumbnail((SIDE, SIDE))
        inset = (SIDE - image.width) // 2, (SIDE - image.height) // 2
        sheet.paste(image, (left + inset[0], top + inset[1]))
    for number, text in enumerate((tile.first, tile.second)):
        place = (middle, top + SIDE + 3 + number * LINE)
        text = _shortened(text, SMALL, SIDE)
        pen.text(place, text, fill="black", anchor="ma", font=_font(SMALL))


def _shortened(text: str, size: int, width: int, *, middle: bool = True) -> str:
    """Text on one line of at most ``width`` pixels, with … in its middle or at its end."""
    plain = "".join(c if c.isprintable() else "␣" for c in text)
    kept = plain
    font = _font(size)
    n = len(plain)
    while n > 1 and font.getlength(kept) > width:
        n -= 1
        end = n // 2 if middle else 0
        kept = f"{plain[: n - end]}…{plain[len(plain) - end :]}"
    return kept


@cache
def _font(size: int) -> Any:
    """DejaVu Sans, which knows more alphabets than Pillow's own font."""
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), size)


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


def _image_format(path: Path) -> str:
    from PIL import Image

    known = Image.registered_extensions()
    if path.suffix.lower() not in known:
        raise InputError(f"{path}: must be an image file, for example .png or .jpg.")
    return str(known[path.suffix.lower()])
