"""Near-duplicates: changed copies of images search their originals among all images."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray
from bittern.codes import Codes
from bittern.data import Dataset
from bittern.data.image_changes import ImageChange
from bittern.data.thumbnails import image_modality
from bittern.errors import InputError
from bittern.experiments.paradigm import Clock, Paradigm, Task, check_different
from bittern.experiments.record import TaskResult, describe_profile, mean_values
from bittern.experiments.retrieval import check_lengths, check_parameters
from bittern.experiments.run_data import RunData, describe_split, split_of
from bittern.features import FEATURES, PerceptualHash
from bittern.hashing import HASHERS
from bittern.io.toml import read_table
from bittern.profile import TieProfile
from bittern.registry import Registry
from bittern.relevance import Relevance

if TYPE_CHECKING:
    from bittern.experiments.cells import Cell
    from bittern.experiments.protocol import Method, Protocol

CHANGES = (
    "resized-50",
    "resized-25",
    "jpeg-50",
    "jpeg-10",
    "cropped-5",
    "cropped-10",
    "cropped-20",
    "bordered-5",
    "watermarked-20",
    "brighter-30",
    "darker-30",
    "mirrored",
)
#: Parameter of a method that is not its constructor's: the feature whose vectors it hashes.
FEATURE = "features"
ORIGINALS = "originals"  # what is searched
CHUNK = 64  # images in memory at a time
#: Hashes of images that learn nothing.
PERCEPTUAL: Registry[type[PerceptualHash]] = Registry(
    "perceptual hash",
    {name: kind for name, kind in FEATURES.items() if issubclass(kind, PerceptualHash)},
)
Images = Iterator[NDArray[np.uint8]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicateSettings:
    """How the queries are changed: see :class:`bittern.data.image_changes.ImageChange`."""

    changes: tuple[str, ...] = CHANGES

    def __post_init__(self) -> None:
        check_different(self.changes, "near_duplicates.changes")
        if not self.changes:
            raise InputError("near_duplicates.changes must name at least one.")
        for text in self.changes:
            ImageChange.parse(text)

    @property
    def tasks(self) -> dict[Task, ImageChange]:
        """A task for each change."""
        changes = [ImageChange.parse(text) for text in self.changes]
        meanings = dict.fromkeys(f"{one.kind}, {one.meaning}" for one in changes)
        explanation = (
            "the database is unchanged images, and only the original of a query is relevant. "
            f"Queries are changed copies: {'; '.join(meanings)}."
        )
        return {
            Task(one.words, "image", ORIGINALS, explanation, is_main=True): one for one in changes
        }


@dataclass(frozen=True, eq=False)
class CopyData(RunData):
    """Images of one run, read when they are needed.

    The database has the originals of the queries first, and then the other images of the split's
    database.
    """

    random_state: int = field(default=0, kw_only=True)

    @cached_property
    def originals(self) -> PositionArray:
        """Positions of the images that are searched."""
        others = np.setdiff1d(self.split.database, self.split.queries)
        return np.concatenate([self.split.queries, others])

    @cached_property
    def statement(self) -> dict[str, Any]:
        """The split in plain values."""
        found = describe_split(self.split, self.dataset, self.modality, self.dataset.notes)
        return found | {
            "sizes": {
                "train": len(self.split.train),
                "queries": len(self.split.queries),
                "database": len(self.originals),
            },
            "overlaps": "the database has the original of every query; queries are changed copies",
        }

    def images(self, positions: PositionArray) -> Images:
        """The images at some positions."""
        rows = self.dataset[self.modality]
        return (np.asarray(rows[p]) for p in positions.tolist())

    def changed(self, change: ImageChange) -> Images:
        """The queries, changed; every method sees the same ones."""
        for position, pixels in zip(
            self.split.queries.tolist(), self.images(self.split.queries), strict=True
        ):
            seed = (self.random_state, self.split.run or 0, position, *str(change).encode())
            yield change.apply(pixels, np.random.default_rng(seed))


class NearDuplicates(Paradigm):
    """Hash images and changed copies of some, and rank the images by distance from each copy."""

    table = "near_duplicates"
    tables = (HASHERS, FEATURES)

    def check(self, protocol: Protocol) -> None:
        """Every method must be a perceptual hash, or a hasher with a feature of images."""
        _settings_of(protocol)
        if protocol.truth != {"kind": "classes"} or protocol.dataset.steps:
            raise InputError(
                "near-duplicates: the original of a copy is what is relevant; leave out truth and "
                "dataset.steps."
            )
        for method in protocol.method:
            _check_method(method)
        check_lengths(protocol, [one for one in protocol.method if not _is_perceptual(one)])

    def lengths(self, protocol: Protocol, method: Method) -> Sequence[int | None]:
        """The length of a perceptual hash; else the method's own lengths, or the protocol's."""
        if _is_perceptual(method):
            return (PERCEPTUAL[method.name].n_bits,)
        return method.n_bits or protocol.n_bits

    def names_of(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """The hash, and the feature that it hashes."""
        if _is_perceptual(method):
            return (method.name,)
        return method.name, method.parameters[FEATURE]

    def needs_modules(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """What the feature needs."""
        feature = method.name if _is_perceptual(method) else method.parameters[FEATURE]
        return tuple(FEATURES.find(feature)().needs_modules)

    def tasks(self, protocol: Protocol) -> tuple[Task, ...]:
        """A task for each change."""
        return tuple(_settings_of(protocol).tasks)

    def prepare(self, protocol: Protocol, dataset: Dataset, run: int, folder: Path) -> CopyData:
        """Split the images."""
        modality = protocol.dataset.modality or image_modality(dataset)
        if modality is None or np.ndim(np.asarray(dataset[modality][0])) != 3:
            raise InputError(
                f"{dataset.name}: near-duplicates need colour images, and it has none."
            )
        split = split_of(protocol, dataset, run)
        if not len(split.queries):
            raise InputError(f"{dataset.name}: the split has no queries to change.")
        return CopyData(dataset, dataset, split, modality, random_state=protocol.random_state)

    def measure(
        self, protocol: Protocol, cell: Cell, data: CopyData, clock: Clock
    ) -> dict[str, Any]:
        """Fit on training images, hash originals and copies, and rank the originals."""
        encode = clock("fit", lambda: _fitted(protocol, cell, data))
        tasks = _settings_of(protocol).tasks
        codes = clock(
            "encode",
            lambda: {
                None: _codes(encode, data.images(data.originals)),
                **{task: _codes(encode, data.changed(one)) for task, one in tasks.items()},
            },
        )
        n = len(data.split.queries)
        truth = Relevance.from_classes(np.arange(n), np.arange(len(data.originals)))
        results = {}
        for task in tasks:
            profile = TieProfile.from_codes(codes[task], codes[None], truth)
            results[task.name] = TaskResult(
                profile=profile, **describe_profile(profile, protocol.metrics)
            )
        first = next(iter(results.values()))
        return {
            "parameters": cell.method.parameters,
            "tasks": results,
            "values": mean_values(list(results.values())),
            "n_relevant": first.n_relevant,
            "query_positions": tuple(data.split.queries.tolist()),
        }


Encode = Callable[[Sequence[NDArray[np.uint8]]], Codes]


def _settings_of(protocol: Protocol) -> NearDuplicateSettings:
    return read_table(NearDuplicateSettings, protocol.settings, "near_duplicates")


def _is_perceptual(method: Method) -> bool:
    return method.name in PERCEPTUAL


def _check_method(method: Method) -> None:
    if method.grid or method.learns_from != "grades":
        raise InputError(f"method {method.label}: leave out grid and learns_from.")
    if _is_perceptual(method):
        if method.parameters or method.n_bits:
            raise InputError(
                f"method {method.label}: a perceptual hash has one length and no parameters."
            )
        return
    kind = HASHERS.find(method.name)
    check_parameters(method, [*inspect.signature(kind).parameters, FEATURE])
    if kind.needs_y:
        raise InputError(f"method {method.label}: learns from labels, and copies have none.")
    if FEATURE not in method.parameters:
        raise InputError(
            f"method {method.label}: give parameters = {{ {FEATURE} = 'gist' }}, for example; or "
            f"take a perceptual hash: {', '.join(PERCEPTUAL)}."
        )
    feature = FEATURES.find(method.parameters[FEATURE])
    if feature.takes != "images":
        raise InputError(f"method {method.label}: {feature.name} is not a feature of images.")


def _fitted(protocol: Protocol, cell: Cell, data: CopyData) -> Encode:
    """What turns images into codes, fitted on training images if it learns."""
    method = cell.method
    if _is_perceptual(method):
        return PERCEPTUAL[method.name]().encode
    own = {key: value for key, value in method.parameters.items() if key != FEATURE}
    feature = FEATURES.find(method.parameters[FEATURE])()
    train = list(data.images(data.split.train))
    vectors = feature.fit(train).transform(train)
    options = {"random_state": cell.random_state(protocol)} | own
    known = inspect.signature(HASHERS.find(method.name)).parameters
    hasher = HASHERS.find(method.name)(
        cell.n_bits, **{key: value for key, value in options.items() if key in known}
    ).fit(vectors)
    return lambda images: hasher.encode(feature.transform(images))


def _codes(encode: Encode, images: Images) -> Codes:
    """The codes of images, some at a time."""
    parts, chunk = [], list[NDArray[np.uint8]]()
    for image in images:
        chunk.append(image)
        if len(chunk) == CHUNK:
            parts.append(encode(chunk))
            chunk = []
    if chunk:
        parts.append(encode(chunk))
    return Codes(np.concatenate([part.words for part in parts]), parts[0].n_bits)
