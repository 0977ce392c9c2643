"""Captions of a collection of images and texts: the texts of images, kept in step with them.

An image says its caption in its metadata, and its text is an item beside it with the same metadata.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bittern.data.caption_files import captions_of_images
from bittern.errors import InputError
from bittern.store.base import Collection
from bittern.store.building import batches
from bittern.store.comparing import items_inside
from bittern.store.image_items import NO_IMAGE, LeftOut, ListedImages, caption_of
from bittern.store.recipe import TEXT
from bittern.store.sources import Texts


def check_takes_texts(collection: Collection, texts: Texts | None) -> None:
    """Raise InputError if captions are given that the collection cannot encode."""
    if texts is not None and collection.recipe.texts is None:
        raise InputError(
            f"{collection.place}: was made without texts, and takes no captions; "
            "'bittern index create --texts' makes a collection that does."
        )


def with_captions(
    collection: Collection, listed: ListedImages, moved_from: Path | None
) -> ListedImages:
    """The images with their captions; with those that are stored, if no captions are named.

    Captions of images that are not there are left out.  Images of a collection without texts have
    no captions.
    """
    if not collection.recipe.is_crossmodal:
        return listed
    root, texts = listed.origin.root, listed.origin.texts
    if texts is None or not listed.names:
        stored = items_inside(collection, root, moved_from)
        kept = {
            name: known["text"]
            for _, name, known in stored
            if known.get("modality") != TEXT and "text" in known
        }
        return replace(listed, captions=kept)
    found = captions_of_images(texts, root, listed.names, is_partial=True)
    left_out = (*listed.left_out, *(LeftOut(NO_IMAGE, *row) for row in found.unmatched))
    said = dict(zip(listed.names, found.texts, strict=True))
    return replace(listed, captions=said, left_out=left_out)


def update_texts(collection: Collection, root: Path, moved_from: Path | None) -> None:
    """Give each image of the folder the text that its metadata say, once, and no other.

    It depends on what is stored alone, so that it also does what an interrupted call left.
    """
    wanted: dict[str, dict[str, Any]] = {}
    known: dict[str, tuple[int, dict[str, Any]]] = {}
    gone: list[int] = []
    for id_, name, item in items_inside(collection, root, moved_from):
        if item.get("modality") != TEXT:
            if "text" in item:
                wanted[name] = item | caption_of(item["text"], TEXT)
        elif name in known:
            gone.append(id_)
        else:
            known[name] = id_, item
    gone += [id_ for name, (id_, _) in known.items() if name not in wanted]
    encoded = [name for name, item in wanted.items() if _text(known, name) != item["text"]]
    others = wanted.keys() - set(encoded)
    described = sorted(name for name in others if known[name][1] != wanted[name])
    _encode(collection, encoded, wanted, {name: id_ for name, (id_, _) in known.items()})
    for rows in batches(len(described), "captions"):
        some = described[rows]
        collection.set_metadata([known[name][0] for name in some], [wanted[name] for name in some])
    if gone:
        collection.delete(gone)


def _text(known: dict[str, tuple[int, dict[str, Any]]], name: str) -> str | None:
    return known[name][1].get("text") if name in known else None


def _encode(
    collection: Collection,
    names: list[str],
    wanted: dict[str, dict[str, Any]],
    ids: dict[str, int],
) -> None:
    """Store texts that are new or have changed."""
    new = iter(collection._next_ids(sum(name not in ids for name in names)).tolist())
    chosen = [ids[name] if name in ids else next(new) for name in names]
    for rows in batches(len(names), "captions"):
        items = [wanted[name] for name in names[rows]]
        texts = [item["text"] for item in items]
        codes = collection.recipe.encode(texts, "sync: captions", modality=TEXT)
        collection.upsert(codes, chosen[rows], metadata=items)
