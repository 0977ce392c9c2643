"""Collections filled from a folder of images or a file of vectors, in batches that can resume."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bittern import store
from bittern.checks import PositionArray, check_count, check_labels, check_vectors
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.features import extract
from bittern.features.base import Feature
from bittern.features.extract import fitted_on, forget_parts
from bittern.hashing.base import Hasher
from bittern.io.npz import stored_arrays
from bittern.progress import Bar
from bittern.store.base import Collection
from bittern.store.milvus import Address
from bittern.store.recipe import Recipe

BATCH = 10_000  # items written at once
VECTOR_NAMES = ("vectors", "features", "X")


class BuildSummary(NamedTuple):
    """Numbers of items stored, images skipped, and items that the hasher was fitted on."""

    n_items: int
    n_skipped: int
    n_fitted: int


def build_collection(
    place: str | os.PathLike[str],
    source: str | os.PathLike[str],
    recipe: Recipe,
    *,
    fit_sample: int = 20_000,
    random_state: int = 0,
    skip_broken: bool = False,
) -> BuildSummary:
    """Make a collection of all images in a folder, or of the vectors in an .npy or .npz file.

    ``recipe`` has the hasher and, for images, the feature, both unfitted; they are not changed.
    The hasher is fitted on ``fit_sample`` items drawn at random.  ``skip_broken`` skips images that
    cannot be read; otherwise the first one is an error.

    After an interruption, the same call continues where it stopped and ends with the same
    collection: features are saved beside the collection as they are computed, and the collection
    is a draft, which records its source and settings, until it is complete.
    """
    if recipe.hasher is None:
        raise InputError("build_collection: the recipe needs a hasher.")
    place, folder_or_file, hasher = os.fspath(place), Path(source), clone(recipe.hasher)
    settings = {  # named like the options of the command line
        "from": str(folder_or_file.resolve()),
        "features": recipe.names()["features"] if folder_or_file.is_dir() else None,
        "hasher": hasher.name,
        "bits": hasher.n_bits,
        "fit-sample": fit_sample,
        "random-state": random_state,
    }
    _check_resumable(place, settings)
    with _resume_message(), _feature_file(place) as feature_file:
        items = _read_source(folder_or_file, recipe.features, feature_file, skip_broken)
        rows = _sample(len(items.vectors), fit_sample, random_state)
        draft = json.dumps({**settings, "made from": items.digest()})
        with _open_draft(place, draft, items, lambda: _fit(hasher, items, rows)) as collection:
            _fill(collection, items)
            collection.finish()
    return BuildSummary(len(items.vectors), items.n_skipped, len(rows))


def add_from(
    collection: Collection, source: str | os.PathLike[str], *, skip_broken: bool = False
) -> int:
    """Add the images of a folder or the vectors of a file, all or none; returns how many."""
    recipe, place = collection.recipe, collection.place
    if recipe.hasher is None:
        raise InputError(f"{place}: has no hasher; add codes from Python.")
    if Path(source).is_dir() and recipe.features is None:
        raise InputError(f"{place}: was made from vectors; give a file of vectors.")
    with _feature_file(place) as feature_file:
        items = _read_source(Path(source), recipe.features, feature_file, skip_broken)
        if len(items.vectors):
            codes = [recipe.encode(v, "index: vectors") for v in _batches(items.vectors)]
            collection.add(Codes.concatenate(codes), metadata=items.metadata)
    return len(items.vectors)


@dataclass(frozen=True, slots=True, eq=False)
class _SourceItems:
    """Vectors of items, their metadata as columns, and the fitted feature that made the vectors."""

    vectors: NDArray[Any]  # (n, dim)
    metadata: dict[str, Any]
    labels: NDArray[Any] | None
    n_skipped: int = 0
    feature: Feature | None = None

    def digest(self) -> str:
        """A hash of the content and its order."""
        content = hashlib.blake2b(digest_size=16)
        known = {**self.metadata, "labels": None if self.labels is None else self.labels.tolist()}
        content.update(json.dumps([self.vectors.shape, known]).encode())
        for start in range(0, len(self.vectors), BATCH):
            content.update(self.vectors[start : start + BATCH].tobytes())
        return content.hexdigest()


def _check_resumable(place: str, settings: dict[str, Any]) -> None:
    """Fail if there is a finished collection, or a draft with other settings."""
    if not store.exists(place):
        return
    with store.open(place, read_only=True, drafts=True) as there:
        if there.draft is None:
            raise InputError(f"{place}: exists already; add to it with 'bittern index add'.")
        begun = json.loads(there.draft)
    differing = [f"--{k} {begun.get(k)}" for k, value in settings.items() if value != begun.get(k)]
    if differing:
        raise InputError(
            f"{place}: is an unfinished draft with {' '.join(differing)}; repeat that command to "
            "finish it, or delete the draft to start again."
        )


@contextmanager
def _resume_message() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(
            str(stopped)
            or "stopped; finished work is kept. Run the same command again to continue."
        ) from None


@contextmanager
def _feature_file(place: str) -> Iterator[Path]:
    """The file for features of images, beside the collection; deleted if the block succeeds."""
    file = Path(f"{place}.features.npz")
    if store.is_address(place):
        address = Address.parse(place)
        folder = Path() if address.file is None else Path(address.file).parent
        file = folder / f"{address.name}.features.npz"
    yield file
    forget_parts(file)
    file.unlink(missing_ok=True)


@contextmanager
def _open_draft(
    place: str, draft: str, items: _SourceItems, fit: Callable[[], Hasher]
) -> Iterator[Collection]:
    """The existing draft, or a new one with a fitted hasher."""
    if store.exists(place):
        with store.open(place, drafts=True) as collection:
            if collection.draft != draft:
                source = json.loads(draft)["from"]
                raise InputError(
                    f"{place}: is an unfinished draft, and {source} has changed since; delete the "
                    "draft to start again."
                )
            yield collection
    else:
        with store.create(place, hasher=fit(), features=items.feature, draft=draft) as collection:
            yield collection


def _fit(hasher: Hasher, items: _SourceItems, rows: PositionArray) -> Hasher:
    labels = None if items.labels is None else items.labels[rows]
    if hasher.needs_y and labels is None:
        raise InputError(
            f"index: {hasher.name} learns from labels, but there are none; images get them from "
            "sub-folders, an .npz file from its array 'labels'."
        )
    return hasher.fit(items.vectors[rows], labels)


def _read_source(
    source: Path, feature: Feature | None, feature_file: Path, skip_broken: bool
) -> _SourceItems:
    if not source.exists():
        raise InputError(f"{source}: no such file or folder.")
    if source.is_dir():
        if feature is None:
            raise InputError(f"{source}: images need a feature in the recipe.")
        return _read_images(source, feature, feature_file, skip_broken)
    stored = stored_arrays(source)
    name = next((name for name in VECTOR_NAMES if name in stored), next(iter(stored)))
    vectors = check_vectors(stored[name].load(), f"{source}: {name}")
    if "labels" not in stored:
        return _SourceItems(vectors, {}, None)
    labels = check_labels(stored["labels"].load(), f"{source}: labels", len(vectors))
    return _SourceItems(vectors, {"label": labels.tolist()}, labels)


def _read_images(
    source: Path, feature: Feature, feature_file: Path, skip_broken: bool
) -> _SourceItems:
    """Features of a folder; keeps partial files for a call that resumes."""
    errors: Literal["skip", "raise"] = "skip" if skip_broken else "raise"
    fitted = fitted_on(source, feature, feature_file, errors=errors)
    found = extract(source, [fitted], feature_file, errors=errors, keep_parts=True)
    metadata: dict[str, Any] = {"path": [str((source / p).resolve()) for p in found.paths]}
    if found.labels is not None:
        names = (*found.class_names, None)  # label -1 is the last
        metadata["label"] = [names[label] for label in found.labels]
    return _SourceItems(found[feature.name], metadata, found.labels, len(found.skipped), fitted)


def _sample(n: int, fit_sample: int, random_state: int) -> PositionArray:
    check_count(fit_sample, "index: fit_sample")
    if n <= fit_sample:
        return np.arange(n)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n, fit_sample, replace=False))


def _fill(collection: Collection, items: _SourceItems) -> None:
    """Store the items that are not stored yet.

    A server may have stored part of an interrupted batch, so that batch is upserted whole.
    """
    n, done = len(items.vectors), len(collection) // BATCH * BATCH
    with Bar("storing") as bar:
        for start in range(done, n, BATCH):
            rows = slice(start, min(n, start + BATCH))
            metadata = {name: column[rows] for name, column in items.metadata.items()}
            ids = np.arange(rows.start, rows.stop)
            collection.upsert(np.asarray(items.vectors[rows]), ids, metadata=metadata)
            bar(rows.stop, n)


def _batches(vectors: NDArray[Any]) -> Iterator[NDArray[Any]]:
    n = len(vectors)
    with Bar("encoding") as bar:
        for start in range(0, n, BATCH):
            yield np.asarray(vectors[start : start + BATCH])
            bar(min(n, start + BATCH), n)
