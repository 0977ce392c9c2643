"""Items to add: from a request to codes, files and metadata."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bittern.codes import Codes
from bittern.io.files import atomic_write, make_folder
from bittern.store.paths import stored_path
from bittern.web.asked import Add, codes_from, image_bytes
from bittern.web.found import Ids
from bittern.web.images import Limits, check_upload
from bittern.web.refusal import Refusal
from bittern.web.searching import Query, image_query, vectors_query
from bittern.web.source import Source

SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif", "WEBP": ".webp", "BMP": ".bmp"} | {
    "TIFF": ".tif",
    "HEIF": ".heic",
    "PPM": ".ppm",
}


def add_items(source: Source, asked: Add, uploads: Sequence[bytes], limits: Limits) -> Ids:
    """Add what a request says, and return the ids."""
    check_writable(source)
    images = list(uploads) or [image_bytes(text) for text in asked.images or ()]
    query = _encoded(source, asked, images, limits)
    n = len(query.codes)
    metadata = _checked_metadata(asked.metadata, n)
    if asked.ids is not None and len(asked.ids) != n:
        raise Refusal(422, f"There are {n} items, but {len(asked.ids)} ids.")
    ids = None if asked.ids is None else np.array(asked.ids, np.int64)
    if ids is not None and len(np.unique(ids)) < n:
        raise Refusal(422, "The ids of a request must be distinct.")
    if images and source.uploads is not None:
        for known, content in zip(metadata, images, strict=True):
            known["path"] = _stored(source, source.uploads, content, limits)
    return source.add(query.codes, ids, metadata, replace=asked.replace)


def check_writable(source: Source) -> None:
    """Refuse to change what is only read."""
    if source.read_only:
        raise Refusal(403, "This server only reads its collection.")


def _encoded(source: Source, asked: Add, images: Sequence[bytes], limits: Limits) -> Query:
    if asked.codes is not None:
        return Query(codes_from(asked.codes, source.n_bits))
    if asked.vectors is not None:
        return vectors_query(source, asked.vectors)
    return image_query(source, images, limits)


def _checked_metadata(given: Sequence[dict[str, Any]] | None, n: int) -> list[dict[str, Any]]:
    from bittern.store.image_items import PROTECTED

    if given is None:
        return [{} for _ in range(n)]
    if len(given) != n:
        raise Refusal(422, f"There are {n} items, but metadata of {len(given)}.")
    for known in given:
        for key in known:
            if key.lower() in PROTECTED:  # a path could name any file of this machine
                raise Refusal(422, f"The key {key!r} of metadata is the server's own.")
    return [dict(known) for known in given]


def _stored(source: Source, folder: Path, content: bytes, limits: Limits) -> str:
    """Keep an uploaded image beside the collection, named by its content; the path as stored."""
    suffix = SUFFIXES.get(check_upload(content, limits), ".img")
    name = hashlib.blake2b(content, digest_size=16).hexdigest() + suffix
    file = make_folder(folder) / name
    if not file.exists():
        with atomic_write(file) as out:
            out.write(content)
    return stored_path(Path(os.path.realpath(folder)) / name, source.folder)


def codes_of(words: Any, n_bits: int) -> Codes:
    """Codes from words that came from another process."""
    return Codes(np.ascontiguousarray(words, np.uint64), n_bits)
