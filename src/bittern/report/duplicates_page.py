"""The page of near-duplicates: one self-contained file with a small copy of every image."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bittern.data.images import read_image
from bittern.data.thumbnails import image_address
from bittern.errors import FileError
from bittern.io.files import write_text
from bittern.report.page import POLICY, environment, page_style
from bittern.store.duplicates import DuplicateItem, Duplicates, Leaks

SIDE = 160  # pixels of the small copies
MOST_GROUPS = 1000  # a page with more would be too large for a browser


def write_duplicates_page(found: Duplicates | Leaks, path: str | os.PathLike[str]) -> None:
    """Write the groups, or the pairs of two places, as one HTML file, whole or not at all."""
    write_text(path, duplicates_page(found))


def duplicates_page(found: Duplicates | Leaks) -> str:
    """The page as HTML; after the first thousand groups or pairs it says how many are left out."""
    is_leaks = isinstance(found, Leaks)
    groups = _leak_groups(found) if isinstance(found, Leaks) else _groups(found)
    total = len(found.pairs) if isinstance(found, Leaks) else len(found.groups)
    values = {
        "policy": POLICY,
        "style": page_style(),
        "title": "Images in both places" if is_leaks else "Near-duplicates",
        "summary": summary(found),
        "groups": groups,
        "n_left_out": total - len(groups),
    }
    return environment().get_template("duplicates.html").render(values)


def summary(found: Duplicates | Leaks) -> str:
    """What was found, in one sentence."""
    within = f"within {found.radius} bits of {found.hash_name}"
    if isinstance(found, Leaks):
        return (
            f"{found.n_leaked:,} of {found.n_others:,} items are near one of the "
            f"{found.n_items:,} others, {within} ({len(found.pairs):,} pairs)."
        )
    n = len(found.groups)
    return (
        f"{n:,} group{'' if n == 1 else 's'} of near-duplicates among {_items(found.n_items)}, "
        f"{within}; {found.n_superfluous:,} could go."
    )


def _items(n: int) -> str:
    return f"{n:,} item{'' if n == 1 else 's'}"


def _groups(found: Duplicates) -> list[dict[str, Any]]:
    return [
        {
            "heading": f"Group {number}: {len(group)} items",
            "items": [_tile(item, "keep" if i == 0 else "") for i, item in enumerate(group)],
        }
        for number, group in enumerate(found.groups[:MOST_GROUPS], start=1)
    ]


def _leak_groups(found: Leaks) -> list[dict[str, Any]]:
    return [
        {
            "heading": f"Distance {pair.distance}",
            "items": [
                {"name": pair.name, "image": _small_copy(pair.file), "lines": ["first"]},
                {"name": pair.other, "image": _small_copy(pair.other_file), "lines": ["second"]},
            ],
        }
        for pair in found.pairs[:MOST_GROUPS]
    ]


def _tile(item: DuplicateItem, mark: str) -> dict[str, Any]:
    lines = [mark or f"distance {item.distance}"]
    if item.width and item.height:
        lines.append(f"{item.width} × {item.height}")
    if item.n_bytes is not None:
        lines.append(f"{item.n_bytes:,} bytes")
    return {"name": item.name, "image": _small_copy(item.file), "lines": lines}


def _small_copy(file: Path | None) -> str | None:
    """An address that holds the image itself; None if it cannot be read."""
    if file is None:
        return None
    try:
        return image_address(read_image(file), SIDE)
    except FileError:
        return None
