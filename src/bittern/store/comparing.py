"""The items of a collection compared with the images of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bittern.data.exif import KEYS as EXIF_KEYS
from bittern.progress import track
from bittern.store.base import Collection
from bittern.store.image_items import (
    BROKEN,
    LeftOut,
    ListedImages,
    is_same_content,
    state_of,
)
from bittern.store.paths import STATE, located, name_inside, stored_path
from bittern.store.recipe import TEXT

KINDS = ("added", "encoded", "described", "unchanged")


class Changes(NamedTuple):
    """What was done, or would be done: names of images, relative to their folder."""

    added: tuple[str, ...]
    encoded: tuple[str, ...]  # again, because the file changed
    described: tuple[str, ...]  # again, because only the metadata changed
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How the items of a collection differ from the images of a folder."""

    known: Mapping[str, int]  # ids of the items of that folder
    states: Mapping[str, str | None]
    prefix: str  # the stored path of the folder
    added: tuple[str, ...] = ()
    encoded: tuple[str, ...] = ()
    described: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    gone: Mapping[int, str] = field(default_factory=dict)  # also second items of one image

    @classmethod
    def compare(
        cls,
        collection: Collection,
        listed: ListedImages,
        moved_from: Path | None = None,
        *,
        rereads: bool = False,
    ) -> Plan:
        """Compare each image with its item; reads files whose time has changed.

        ``rereads`` describes every image again, because what is stored of EXIF may not be enough.
        """
        root = listed.origin.root
        items, gone = _match(collection, listed, moved_from)
        prefix = stored_path(root, collection.folder)
        states: dict[str, str | None] = {}
        sorted_out: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for name in track(listed.names, "files", len(listed.names)):
            known = items[name][1] if name in items else None
            states[name] = state_of(root / name, None if known is None else known.get(STATE))
            kind = _kind(known, states[name], listed, name, prefix)
            sorted_out["described" if rereads and kind == "unchanged" else kind].append(name)
        ids = {name: id_ for id_, name in gone.items()}
        ids |= {name: id_ for name, (id_, _) in items.items()}
        lists = {kind: tuple(names) for kind, names in sorted_out.items()}
        return cls(ids, states, prefix, gone=gone, **lists)

    def changes(
        self, left_out: Sequence[LeftOut], skipped: Mapping[str, str] | None = None
    ) -> Changes:
        """The names, without images that were skipped; their old items are removed."""
        skipped = skipped or {}
        broken = tuple(LeftOut(BROKEN, name, reason) for name, reason in skipped.items())
        return Changes(
            tuple(name for name in self.added if name not in skipped),
            tuple(name for name in self.encoded if name not in skipped),
            self.described,
            (*self.gone.values(), *(name for name in self.encoded if name in skipped)),
            self.unchanged,
            (*broken, *left_out),
        )

    def ids_of_gone(self, skipped: Mapping[str, str]) -> list[int]:
        """The items to remove."""
        return [*self.gone, *(self.known[name] for name in self.encoded if name in skipped)]


def _match(
    collection: Collection, listed: ListedImages, moved_from: Path | None
) -> tuple[dict[str, tuple[int, dict[str, Any]]], dict[int, str]]:
    """The item of each image; and the items of the folder that have none, or are second ones."""
    items: dict[str, tuple[int, dict[str, Any]]] = {}
    gone: dict[int, str] = {}
    names = set(listed.names)
    for id_, name, known in items_inside(collection, listed.origin.root, moved_from):
        if known.get("modality") == TEXT:
            continue  # it follows its image
        if name in names and name not in items:
            items[name] = id_, known
        else:
            gone[id_] = name
    return items, gone


def _kind(
    known: dict[str, Any] | None, state: str | None, listed: ListedImages, name: str, prefix: str
) -> str:
    """What has to be done with an image, one of :data:`KINDS`."""
    if known is None:
        return "added"
    if state is None or not is_same_content(state, known.get(STATE, "")):
        return "encoded"
    from_file = [key for key in EXIF_KEYS if key not in listed.origin.columns]
    new = listed.known(name, prefix) | {STATE: state}
    is_same = new == {key: value for key, value in known.items() if key not in from_file}
    return "unchanged" if is_same else "described"


def items_inside(
    collection: Collection, root: Path, moved_from: Path | None
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Id, name and metadata of each item of the folder, or of the place where the folder was."""
    for id_, known in known_items(collection):
        file = located(known["path"], collection.folder)
        name = name_inside(file, root)
        if name is None and moved_from is not None:
            name = name_inside(file, moved_from)
        if name is not None:
            yield id_, name, known


def known_items(collection: Collection) -> Iterator[tuple[int, dict[str, Any]]]:
    """Id and metadata of each item that has a path."""
    items = collection.get(np.sort(collection.ids))
    for id_, known in zip(items.ids.tolist(), items.metadata, strict=True):
        if isinstance(known.get("path"), str):
            yield id_, known
