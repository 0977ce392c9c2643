"""What a run works on: the split's sets, read and preprocessed, and what was checked of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bittern.data import Dataset, Split, load, make_split
from bittern.data.splits import SETS
from bittern.errors import InputError
from bittern.experiments.protocol import Protocol, Source
from bittern.experiments.truth import Items

__all__ = ["Material", "data_fingerprint", "dataset_of", "material_of"]

Root = str | os.PathLike[str] | None
SAMPLE = 64  # rows that tell data from other data


@dataclass(frozen=True, eq=False)
class Material:
    """The sets of one run; each is read when first asked for, the test sets last of all."""

    dataset: Dataset  # as it is on disk
    prepared: Dataset  # after what was learned on training rows
    split: Split
    modality: str

    @cached_property
    def train(self) -> Items:
        """What may be learned from."""
        return self._items("train")

    @cached_property
    def queries(self) -> Items:
        """The test queries."""
        return self._items("queries")

    @cached_property
    def database(self) -> Items:
        """The test database."""
        return self._items("database")

    @cached_property
    def validation(self) -> tuple[Items, Items] | None:
        """Validation queries and database, where the split has them."""
        if not len(self.split.validation_queries):
            return None
        return self._items("validation_queries"), self._items("validation_database")

    @cached_property
    def statement(self) -> dict[str, Any]:
        """The split in plain values, with the search for leaks."""
        report = self.split.check(self.dataset)
        return {
            "name": self.split.name,
            "fingerprint": self.split.fingerprint,
            "sizes": {name: len(getattr(self.split, name)) for name in SETS},
            "overlaps": self.split.overlaps,
            "balanced_by": self.split.balanced_by,
            "leaks": report.number,
            "leak_check": str(report),
            "notes": list(self.prepared.notes),
            "class_names": list(self.dataset.class_names),
            "data": data_fingerprint(self.dataset, self.modality),
        }

    def _items(self, name: str) -> Items:
        positions = getattr(self.split, name)
        part = self.prepared.take(positions)
        rows = part[self.modality][:]
        vectors = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        tags = part.tags.toarray() if hasattr(part.tags, "toarray") else part.tags
        return Items(positions, self._finite(_as_rows(vectors), positions), part.labels, tags)

    def _finite(self, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
        if not np.isfinite(rows.sum()):  # a sum is quick, and tells nothing of finite rows
            bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(bad):
                raise InputError(
                    f"{self.dataset.name}: {len(bad):,} rows have NaN or infinite numbers, "
                    f"the first is row {positions[bad[0]]}; leave them out or fill them."
                )
        return rows


def dataset_of(source: Source, root: Root = None) -> Dataset:
    """The dataset that a protocol names."""
    dataset = load(source.name, root, **source.options)
    if source.rows is not None:
        if source.rows > len(dataset):
            raise InputError(
                f"dataset.rows: {source.name} has {len(dataset):,} rows, {source.rows:,} asked for."
            )
        dataset = dataset.take(np.arange(source.rows))
    return dataset


def data_fingerprint(dataset: Dataset, modality: str) -> str:
    """Short hash that tells data from other data: labels, tags, ids and some of the rows."""
    digest = hashlib.sha256(f"{len(dataset)} {modality}".encode())
    tags = dataset.tags
    dense = tags.toarray() if hasattr(tags, "toarray") else tags
    some = np.unique(np.linspace(0, len(dataset) - 1, SAMPLE).astype(np.intp))
    rows = dataset.take(some)[modality][:]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    for part in (dataset.ids, dataset.labels, dense, *rows):  # images may differ in size
        digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:12]


def material_of(
    protocol: Protocol, run: int, root: Root, read: Callable[[Source, Root], Dataset] = dataset_of
) -> Material:
    """The sets of one run."""
    dataset = read(protocol.dataset, root)
    plan = protocol.split
    split = make_split(
        plan.name,
        dataset,
        random_state=protocol.random_state,
        run=0 if plan.repeated else run,
        **plan.sizes,
    )
    modality = protocol.dataset.modality or next(iter(dataset.modalities))
    prepared = dataset.prepared(split.train, protocol.dataset.steps, modality)
    return Material(dataset, prepared, split, modality)


def _as_rows(vectors: np.ndarray) -> np.ndarray:
    """One row an item, in single precision; images are flattened."""
    return np.ascontiguousarray(vectors.reshape(len(vectors), -1), dtype=np.float32)
