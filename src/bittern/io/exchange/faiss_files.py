"""Files of FAISS: binary indexes, and indexes of vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bittern.extras import import_extra
from bittern.io.exchange.faiss_layout import check_rabitq, read_binary
from bittern.io.exchange.items import PackedItems, are_positions
from bittern.io.files import atomic_write, existing_file, reading


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """An ``IndexBinaryFlat`` if ids are 0, 1, 2, …, else an ``IndexBinaryIDMap`` over one."""
    faiss = library()
    index = faiss.IndexBinaryFlat(8 * items.n_bytes)
    if items.has_own_ids:
        index = faiss.IndexBinaryIDMap(index)
        index.add_with_ids(items.packed, items.numbers)
    else:
        index.add(items.packed)
    with atomic_write(path) as file:
        file.write(faiss.serialize_index_binary(index).tobytes())


def read(path: Path, name: str | None) -> PackedItems:
    """The codes of an ``IndexBinaryFlat``, or of an ``IndexBinaryIDMap`` over one."""
    source = existing_file(path)
    with reading(source, "binary index of FAISS"):
        packed, ids = read_binary(source)
    return PackedItems(packed, ids=None if ids is None or are_positions(ids) else ids)


def write_index(path: Path, index: Any) -> None:
    """Write an index of vectors, whole or not at all."""
    with atomic_write(path) as file:
        file.write(library().serialize_index(index).tobytes())


def read_index(path: Path) -> Any:
    """An index of vectors: RaBitQ behind a projection; its sizes are checked before."""
    faiss, source = library(), existing_file(path)
    with reading(source, "index of FAISS"):
        check_rabitq(source)
        return faiss.deserialize_index(np.fromfile(source, np.uint8))


def library() -> Any:
    """FAISS; an error names the extra if it is missing."""
    return import_extra("faiss", "FAISS files")
