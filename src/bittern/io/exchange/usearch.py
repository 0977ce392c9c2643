"""usearch: an index of bits (``b1``) by Hamming distance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.exchange.items import PackedItems
from bittern.io.files import atomic_write, existing_file, reading


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """An index of usearch, whose keys are the ids."""
    usearch = _library()
    index = usearch.Index(ndim=items.n_bits, metric="hamming", dtype="b1")
    if len(items):
        index.add(items.numbers.astype(np.uint64), items.packed)
    with atomic_write(path) as file:
        file.write(index.save())


def read(path: Path, name: str | None) -> PackedItems:
    """The codes of an index, by ascending id: usearch keeps no order."""
    usearch, source = _library(), existing_file(path)
    with reading(source, "index of usearch"):
        about = usearch.Index.metadata(source)
        if about is None or about["kind_scalar"] != usearch.ScalarKind.B1:
            raise FileError(f"{source}: is no usearch index of bits (dtype b1).")
        index = usearch.Index.restore(source)
        ids = np.sort(index.keys[: len(index)])
        n_bits = int(about["dimensions"])
        packed = np.empty((len(ids), -(-n_bits // 8)), np.uint8)
        for row, found in enumerate(index.get(ids) if len(ids) else ()):
            packed[row] = found
    return PackedItems(packed, n_bits, ids=ids.astype(np.int64))


def _library() -> Any:
    return import_extra("usearch.index", "usearch")
