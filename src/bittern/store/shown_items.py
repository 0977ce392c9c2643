"""Items of a collection as people see them: the names and small images of their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.images import read_image
from bittern.data.thumbnails import image_address
from bittern.errors import FileError
from bittern.notebook import ShownItem
from bittern.store.queries import image_file

MOST_TEXT = 80  # letters of a label


def shown_items(
    ids: NDArray[np.int64], metadata: Sequence[dict[str, Any]], folder: Path | None
) -> list[ShownItem]:
    """Each item with the image of its file, if it has one that can be read."""
    return [
        ShownItem(id, _label(id, known), _image(image_file(known, folder)))
        for id, known in zip(ids.tolist(), metadata, strict=True)
    ]


def _label(id: int, known: dict[str, Any]) -> str:
    """The name of the file, or the text, or else the id."""
    for key in ("path", "text", "name", "label"):
        if key in known:
            text = str(known[key])
            return Path(text).name[-MOST_TEXT:] if key == "path" else text[:MOST_TEXT]
    return str(id)


def _image(file: Path | None) -> str | None:
    try:
        return None if file is None else image_address(read_image(file))
    except FileError:
        return None
