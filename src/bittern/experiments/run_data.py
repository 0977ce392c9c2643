"""The data of one run: the sets of its split, read into memory and preprocessed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray
from bittern.data import Dataset, Split, load, make_split
from bittern.data.catalogue import spec_of
from bittern.data.splits import SETS
from bittern.errors import FileError, InputError
from bittern.experiments.search import TRAIN
from bittern.io.files import checksum

if TYPE_CHECKING:
    from bittern.codes import Codes
    from bittern.experiments.cells import Trial
    from bittern.experiments.protocol import DatasetSettings, Protocol
    from bittern.experiments.record import Record
    from bittern.hashing.base import Hasher

Root = str | os.PathLike[str] | None
SAMPLE = 64  # rows that the fingerprint of data looks at


@dataclass(frozen=True, slots=True, eq=False)
class SplitSet:
    """One set of a split, in memory."""

    positions: PositionArray  # in the dataset
    vectors: NDArray[Any]  # (n, dim), after preprocessing
    labels: NDArray[np.int64] | None = None
    tags: Any = None  # (n, n_tags)
    texts: NDArray[Any] | None = None  # (n, dim), the second of two modalities

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, rows: NDArray[np.intp]) -> SplitSet:
        """A part of its rows."""
        return SplitSet(
            self.positions[rows],
            self.vectors[rows],
            None if self.labels is None else self.labels[rows],
            None if self.tags is None else self.tags[rows],
            None if self.texts is None else self.texts[rows],
        )


@dataclass(frozen=True, eq=False)
class RunData:
    """The sets of one run; each is read when first used, the test sets last."""

    dataset: Dataset  # as it is on disk
    prepared: Dataset  # after the preprocessing learned on training rows
    split: Split
    modality: str
    text_modality: str | None = None  # the second of two modalities

    @cached_property
    def train(self) -> SplitSet:
        """What methods may learn from."""
        return self._read("train")

    @cached_property
    def queries(self) -> SplitSet:
        """The test queries."""
        return self._read("queries")

    @cached_property
    def database(self) -> SplitSet:
        """The test database."""
        return self._read("database")

    @cached_property
    def validation(self) -> tuple[SplitSet, SplitSet] | None:
        """Validation queries and database, if the split has them."""
        if not len(self.split.validation_queries):
            return None
        return self._read("validation_queries"), self._read("validation_database")

    @cached_property
    def nested_codes(self) -> dict[str, tuple[Hasher, list[Codes]]]:
        """The last hasher and its codes of queries and database, of nested methods by label."""
        return {}

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of the data."""
        one = data_fingerprint(self.dataset, self.modality)
        if self.text_modality is None:
            return one
        return one[:6] + data_fingerprint(self.dataset, self.text_modality)[:6]

    @cached_property
    def statement(self) -> dict[str, Any]:
        """The split in plain values."""
        return describe_split(self.split, self.dataset, self.modality, self.prepared.notes)

    def _read(self, name: str) -> SplitSet:
        return self._items(getattr(self.split, name), name)

    def _items(self, positions: PositionArray, name: str) -> SplitSet:
        """The items at some positions; ``name`` is for errors."""
        n_lacking = int((~self.dataset.has(self.modality)[positions]).sum())
        if n_lacking:
            raise InputError(
                f"{self.dataset.name}: {n_lacking:,} items of {name} lack the modality "
                f"'{self.modality}'; leave them out or choose another modality."
            )
        part = self.prepared.take(positions)
        vectors = self._rows(part, self.modality, positions)
        second = self.text_modality
        texts = None if second is None else self._rows(part, second, positions)
        return SplitSet(positions, vectors, part.labels, dense(part.tags), texts)

    def _rows(self, part: Dataset, modality: str, positions: PositionArray) -> NDArray[np.float32]:
        rows = dense(part[modality][:])
        if len(positions) and isinstance(rows[0], str):
            raise InputError(
                f"{self.dataset.name}: the modality '{modality}' holds texts; experiments need "
                "vectors, such as tags or extracted features."
            )
        vectors = _as_rows(rows)
        self._check_finite(vectors, positions)
        return vectors

    def _check_finite(self, rows: NDArray[Any], positions: PositionArray) -> None:
        if np.isfinite(rows.sum()):  # quick, and finite only if every number is
            return
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise InputError(
                f"{self.dataset.name}: {len(bad):,} rows have NaN or infinite numbers, "
                f"the first is row {positions[bad[0]]}; leave them out or fill them in."
            )


@dataclass(frozen=True, slots=True)
class FitSets:
    """Training rows to fit on, and the queries and database that score the fit."""

    train: SplitSet
    queries: SplitSet
    database: SplitSet

    def describe(self, data: RunData) -> dict[str, Any]:
        """These sets in plain values, with the split that they are from."""
        return {
            "name": data.split.name,
            "fingerprint": data.split.fingerprint,
            "sizes": {
                "train": len(self.train),
                "queries": len(self.queries),
                "database": len(self.database),
            },
            "data": data.fingerprint,
        }


def trial_sets(protocol: Protocol, trial: Trial, data: RunData) -> FitSets:
    """The training rows that a trial fits on, and those that it holds out and searches."""
    search = protocol.search
    assert search is not None
    sets = validation_sets(data, trial.held_out_seed(protocol), search.held_out)
    if len(sets.queries) < 2:
        raise InputError(
            f"search.held_out: {search.held_out:g} of {len(data.train):,} training rows "
            f"are {len(sets.queries)}; hold out two or more."
        )
    return replace(sets, database=sets.train) if search.database == TRAIN else sets


def validation_sets(data: RunData, random_state: int, share: float) -> FitSets:
    """The validation sets of the split, or the given share of its training rows."""
    train = data.train
    if data.validation is not None:
        return FitSets(train, *data.validation)
    order = np.random.default_rng(random_state).permutation(len(train))
    held_out, rest = np.split(order, [int(share * len(train) + 1e-9)])
    kept = train.take(np.sort(held_out))
    return FitSets(train.take(np.sort(rest)), kept, kept)


def is_own(name: str) -> bool:
    """Whether a dataset is the user's own files, which have no place in the data folder."""
    spec = spec_of(name)
    return spec.needs_files and not spec.folder


def root_of(protocol: Protocol, root: Root) -> Root:
    """Where to look for the data: ``root`` if given, else the path that the protocol names."""
    if root is not None or protocol.dataset.path is None:
        return root
    place = Path(protocol.base, protocol.dataset.path)
    if not place.exists():
        raise FileError(
            f"{place}: no such file or folder, but dataset.path names it; if it has moved, give "
            "its place with --root."
        )
    return place


def source_of(protocol: Protocol, root: Root) -> dict[str, str]:
    """The user's own data as records state it: where it was, and the SHA-256 of a file."""
    if root is None or not is_own(protocol.dataset.name):
        return {}
    place = Path(root).absolute()
    return {"path": str(place)} | ({"sha256": checksum(place)} if place.is_file() else {})


def check_source(protocol: Protocol, record: Record, root: Root) -> Root:
    """Where the data of a record is now; FileError if it is gone, or is no longer the same file."""
    known = record.split.get("source")
    if known is None:
        return root_of(protocol, root)
    before = Path(known["path"])
    named = Path(protocol.base, protocol.dataset.path or before)
    place = Path(root) if root is not None else named if named.exists() else before
    if not place.exists():
        raise FileError(
            f"{place}: is gone, and the records were made from it; if it has moved, give its "
            "place with --root."
        )
    if "sha256" in known and source_of(protocol, place).get("sha256") != known["sha256"]:
        raise FileError(f"{place}: has changed since the records were made from it.")
    return place


def load_dataset(settings: DatasetSettings, root: Root = None) -> Dataset:
    """Load the dataset that a protocol names."""
    dataset = load(settings.name, root, **settings.options)
    if settings.rows is None:
        return dataset
    if settings.rows > len(dataset):
        raise InputError(
            f"dataset.rows: {settings.name} has {len(dataset):,} rows, got {settings.rows:,}."
        )
    return dataset.take(np.arange(settings.rows))


def prepare_run(protocol: Protocol, dataset: Dataset, run: int) -> RunData:
    """Split the dataset for a run, and learn the preprocessing on its training rows."""
    split = split_of(protocol, dataset, run)
    modality = protocol.dataset.modality or next(iter(dataset.modalities))
    prepared = dataset.prepared(split.train, protocol.dataset.steps, modality)
    return RunData(dataset, prepared, split, modality)


def split_of(protocol: Protocol, dataset: Dataset, run: int) -> Split:
    """The split of a run, as the protocol says."""
    return make_split(
        protocol.split.name,
        dataset,
        random_state=protocol.random_state,
        run=0 if protocol.split.repeated else run,
        **protocol.split.sizes,
    )


def describe_split(
    split: Split, dataset: Dataset, modality: str, notes: Sequence[str]
) -> dict[str, Any]:
    """A split in plain values, with the outcome of the search for leaks."""
    report = split.check(dataset)
    return {
        "name": split.name,
        "fingerprint": split.fingerprint,
        "sizes": {name: len(getattr(split, name)) for name in SETS},
        "overlaps": split.overlaps,
        "balanced_by": split.balanced_by,
        "leaks": report.number,
        "leak_check": str(report),
        "notes": list(notes),
        "class_names": list(dataset.class_names),
        "data": data_fingerprint(dataset, modality),
    }


def data_fingerprint(dataset: Dataset, modality: str) -> str:
    """Short hash of ids, labels, tags and some rows: different data have different ones."""
    digest = hashlib.sha256(f"{len(dataset)} {modality}".encode())
    some = np.unique(np.linspace(0, len(dataset) - 1, SAMPLE).astype(np.intp))
    some = some[dataset.has(modality)[some]]
    rows = dense(dataset.take(some)[modality][:])
    for part in (dataset.ids, dataset.labels, dense(dataset.tags), *rows):  # images vary in size
        digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:12]


def dense(rows: Any) -> Any:
    """Rows without gaps; sparse ones become an array."""
    return rows.toarray() if hasattr(rows, "toarray") else rows


def _as_rows(vectors: Any) -> NDArray[np.float32]:
    """One row per item, in single precision; images are flattened."""
    rows = np.asarray(vectors)
    return np.ascontiguousarray(rows.reshape(len(rows), -1), dtype=np.float32)
