"""Hugging Face datasets: a folder that ``datasets.load_from_disk`` reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.exchange.arrow import from_table, to_table
from bittern.io.exchange.items import PackedItems
from bittern.io.files import atomic_create, reading


def write(path: Path, items: PackedItems, name: str | None) -> None:
    """A dataset of ``id``, ``code`` (uint8 lists) and metadata; the description has the length."""
    datasets = _library()
    table = to_table(items, as_lists=True).replace_schema_metadata(None)
    info = datasets.DatasetInfo(description=items.note)
    with atomic_create(path) as folder, _without_bars(datasets):
        datasets.Dataset(table, info=info).save_to_disk(folder)


def read(path: Path, name: str | None) -> PackedItems:
    """A dataset with a column of lists of uint8, or of fixed-size binary."""
    datasets = _library()
    if not path.is_dir():
        raise FileError(f"{path}: no such folder.")
    with reading(path, "dataset of Hugging Face"):
        dataset = datasets.Dataset.load_from_disk(str(path))
        table = dataset.with_format("arrow")[:] if len(dataset) else dataset.data.table
    return from_table(path, table, dataset.info.description)


@contextmanager
def _without_bars(datasets: Any) -> Iterator[None]:
    """Hide the bars of the library, which our commands do not show either."""
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


def _library() -> Any:
    return import_extra("datasets", "Hugging Face datasets")
