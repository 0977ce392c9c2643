"""Collections filled from a folder of images or a file of vectors, in batches that can resume."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bittern import store
from bittern.checks import PositionArray, check_count
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.features.extract import forget_parts
from bittern.progress import Bar
from bittern.store.base import Collection
from bittern.store.milvus import Address
from bittern.store.recipe import Recipe
from bittern.store.sources import Source, Texts, read_source

BATCH = 10_000  # items written at once


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
    texts: Texts | None = None,
    fit_sample: int = 20_000,
    random_state: int = 0,
    skip_broken: bool = False,
) -> BuildSummary:
    """Make a collection of all images in a folder, or of the vectors in an .npy or .npz file.

    ``recipe`` has the hasher and, for images, the feature, both unfitted; they are not changed.
    The hasher is fitted on ``fit_sample`` items drawn at random.  ``skip_broken`` skips images that
    cannot be read; otherwise the first one is an error.

    With a cross-modal hasher, ``texts`` names a file of captions such as ``"captions.csv"``, or is
    the suffix of a text file beside each image (see :mod:`bittern.data.caption_files`), and
    ``recipe.texts`` is their feature.  Images and texts are then separate items, and either can be
    searched for by the other; ``modality`` in their metadata says which they are.

    After an interruption, the same call continues where it stopped and ends with the same
    collection: features are saved beside the collection as they are computed, and the collection
    is a draft, which records its source and settings, until it is complete.
    """
    if recipe.hasher is None:
        raise InputError("build_collection: the recipe needs a hasher.")
    if recipe.is_crossmodal and (texts is None or recipe.texts is None):
        raise InputError(
            f"index: {recipe.hasher.name} learns from images and texts; name a file of captions, "
            "and give the recipe a feature of texts."
        )
    place, folder_or_file = os.fspath(place), Path(source)
    settings = {  # named like the options of the command line
        "from": str(folder_or_file.resolve()),
        "features": recipe.names()["features"] if folder_or_file.is_dir() else None,
        "hasher": recipe.hasher.name,
        "bits": recipe.hasher.n_bits,
        "fit-sample": fit_sample,
        "random-state": random_state,
    }
    if texts is not None:
        settings |= {"texts": os.fspath(texts), "text-features": recipe.names().get("texts")}
    _check_resumable(place, settings)
    with _resume_message(), _feature_file(place) as feature_file:
        items = read_source(
            folder_or_file, recipe, feature_file, texts=texts, skip_broken=skip_broken
        )
        rows = _sample(items.learnable, fit_sample, random_state)
        draft = json.dumps({**settings, "made from": items.digest()})
        with _open_draft(place, draft, lambda: items.fitted(recipe, rows)) as collection:
            _fill(collection, items)
            collection.finish()
    return BuildSummary(len(items), items.n_skipped, len(rows))


def make_recipe(
    hasher: str,
    n_bits: int,
    *,
    features: str | None = None,
    texts: str | None = None,
    random_state: int = 0,
) -> Recipe:
    """An unfitted recipe of a hasher and features by their names.

    With ``texts``, a feature of texts, the hasher must be a cross-modal one.
    """
    from bittern.features import FEATURES
    from bittern.hashing import HASHERS
    from bittern.hashing.crossmodal import CROSSMODAL

    if texts is None and hasher in CROSSMODAL:
        raise InputError(f"index: {hasher} learns from images and texts; give the texts (--texts).")
    if texts is not None and hasher in HASHERS:
        names = ", ".join(CROSSMODAL)
        raise InputError(f"index: {hasher} takes images alone; with texts, choose one of {names}.")
    model = (HASHERS if texts is None else CROSSMODAL)[hasher](n_bits=n_bits)
    if "random_state" in model.get_params():
        model.set_params(random_state=random_state)
    image_feature, text_feature = (
        None if name is None else FEATURES[name]() for name in (features, texts)
    )
    return Recipe(model, image_feature, text_feature)


def add_from(
    collection: Collection,
    source: str | os.PathLike[str],
    *,
    texts: Texts | None = None,
    skip_broken: bool = False,
) -> int:
    """Add the images of a folder or the vectors of a file, all or none; returns how many.

    A cross-modal collection also takes the ``texts`` of the images, as
    :func:`build_collection` does.
    """
    recipe, place = collection.recipe, collection.place
    if recipe.hasher is None:
        raise InputError(f"{place}: has no hasher; add codes from Python.")
    if Path(source).is_dir() and recipe.features is None:
        raise InputError(f"{place}: was made from vectors; give a file of vectors.")
    with _feature_file(place) as feature_file:
        items = read_source(
            Path(source), recipe, feature_file, texts=texts, skip_broken=skip_broken
        )
        if len(items):
            codes = [items.encode(recipe, rows) for rows in _batches(len(items), "encoding")]
            collection.add(Codes.concatenate(codes), metadata=items.metadata)
    return len(items)


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
def _open_draft(place: str, draft: str, fit: Callable[[], Recipe]) -> Iterator[Collection]:
    """The existing draft, or a new one with a fitted recipe."""
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
        with store.create(place, draft=draft, **fit().parts()) as collection:
            yield collection


def _sample(rows: PositionArray, fit_sample: int, random_state: int) -> PositionArray:
    check_count(fit_sample, "index: fit_sample")
    if len(rows) <= fit_sample:
        return rows
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(rows, fit_sample, replace=False))


def _fill(collection: Collection, items: Source) -> None:
    """Store the items that are not stored yet.

    A server may have stored part of an interrupted batch, so that batch is upserted whole.
    """
    known, recipe = items.metadata, collection.recipe
    for rows in _batches(len(items), "storing", len(collection) // BATCH * BATCH):
        metadata = {name: column[rows] for name, column in known.items()}
        ids = np.arange(rows.start, rows.stop)
        collection.upsert(items.encode(recipe, rows), ids, metadata=metadata)


def _batches(n: int, what: str, done: int = 0) -> Iterator[slice]:
    """The rows from ``done`` to ``n``; a bar shows how many have been dealt with."""
    with Bar(what) as bar:
        for start in range(done, n, BATCH):
            yield slice(start, min(n, start + BATCH))
            bar(min(n, start + BATCH), n)
