"""What ``bittern index`` does: images or vectors into a collection, and out of it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bittern import store
from bittern.checks import check_count, check_labels, check_vectors
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.features import FEATURES, extract
from bittern.features.base import Feature
from bittern.features.extract import fitted_on, forget_parts
from bittern.hashing import HASHERS
from bittern.hashing.base import Hasher
from bittern.io.npz import stored_arrays
from bittern.progress import Bar
from bittern.store import Collection
from bittern.store.address import Address

__all__ = ["Plan", "add_to", "create", "describe", "export", "remove_from"]

BATCH = 10_000  # items that are written at once
VECTOR_NAMES = ("vectors", "features", "X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a collection is to be made."""

    source: Path  # a folder of images, or an .npy or .npz file of vectors
    features: str = "deep"
    hasher: str = "itq"
    n_bits: int = 64
    fit_sample: int = 20_000  # items, drawn at random, that the hasher learns from
    random_state: int = 0
    skips: bool = False  # images that cannot be read; else the first stops it all

    def settings(self) -> dict[str, Any]:
        """What a draft and the command that goes on with it must agree in, in its words."""
        return {
            "from": str(self.source.resolve()),
            "features": self.features if self.source.is_dir() else None,
            "hasher": self.hasher,
            "bits": self.n_bits,
            "fit-sample": self.fit_sample,
            "random-state": self.random_state,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Vectors of items, and what is known of each."""

    vectors: NDArray[Any]  # (n, dim)
    metadata: dict[str, Any]  # columns
    labels: NDArray[Any] | None
    n_skipped: int = 0
    feature: Feature | None = None  # which made the vectors of images, fitted

    def digest(self) -> str:
        """A name for the content: other items, or the same in another order, have another."""
        content = hashlib.blake2b(digest_size=16)
        known = {**self.metadata, "labels": None if self.labels is None else self.labels.tolist()}
        content.update(json.dumps([self.vectors.shape, known]).encode())
        for first in range(0, len(self.vectors), BATCH):
            content.update(self.vectors[first : first + BATCH].tobytes())
        return content.hexdigest()


def create(place: str, plan: Plan) -> str:
    """Describe, fit, encode and store; a sentence about what came of it.

    Killed or stopped anywhere, it goes on when it is called again, and the result is the same.
    Features of images are kept beside the collection as they are computed; the collection is a
    draft, which keeps what it is made from in mind, until it is whole.
    """
    hasher = HASHERS[plan.hasher](n_bits=plan.n_bits)
    _refuse_other(place, plan)
    with _telling_how_to_go_on(), _features_beside(place) as beside:
        found = _read(plan.source, _feature(plan), beside, plan)
        rows = _sample(len(found.vectors), plan)
        with _begun(place, plan, found, hasher, rows) as collection:
            _fill(collection, found)
            collection.finish()
    skipped = f", {found.n_skipped:,} skipped" if found.n_skipped else ""
    return (
        f"{place}: {len(found.vectors):,} items of {plan.n_bits} bits{skipped}; {plan.hasher} was "
        f"fitted on {len(rows):,} of them."
    )


def add_to(place: str, source: Path, *, skips: bool = False) -> str:
    """Add images or vectors to a collection, encoded as its others were; all of them or none."""
    with store.open(place) as collection, _features_beside(place) as beside:
        feature = collection.recipe.features
        if collection.recipe.hasher is None:
            raise InputError(f"{place}: has no hasher; add codes from Python.")
        if source.is_dir() and feature is None:
            raise InputError(f"{place}: was made from vectors; give a file of vectors.")
        found = _read(source, feature, beside, Plan(source=source, skips=skips))
        if len(found.vectors):
            codes = [collection.recipe.encode(v, "index: vectors") for v in _in_batches(found)]
            collection.add(Codes.concatenate(codes), metadata=found.metadata)
        return f"{place}: {len(found.vectors):,} items added, {len(collection):,} in all."


def remove_from(place: str, ids: list[int] | None, where: str | None) -> str:
    """Delete items by ids or by a condition on their metadata."""
    with store.open(place) as collection:
        n = collection.delete(ids, where=where)
        return f"{place}: {n:,} items removed, {len(collection):,} left."


def describe(place: str) -> str:
    """What there is to know of a collection, a line each."""
    with store.open(place, read_only=True) as collection:
        facts = collection.info()
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {_shown(value)}" for name, value in facts.items())


def export(place: str, target: Path) -> str:
    """Write a collection for others: ``.parquet``, ``.npy`` of octets, or a FAISS binary index."""
    from bittern.index import exchange

    with store.open(place, read_only=True) as collection:
        suffix = target.suffix.lower()
        if suffix == ".parquet":
            collection.export(target)
        elif suffix in (".npy", ".faiss"):
            write = exchange.write_octets if suffix == ".npy" else exchange.write_faiss
            write(target, collection.get(collection.ids).codes)
        else:
            raise InputError(f"{target}: must end in .parquet, .npy or .faiss.")
        return f"{target}: {len(collection):,} items."


def _refuse_other(place: str, plan: Plan) -> None:
    """Refuse a place where there is more than a beginning of this."""
    if not store.exists(place):
        return
    with store.open(place, read_only=True, drafts=True) as there:
        if there.draft is None:
            raise InputError(f"{place}: is there already; add to it with 'bittern index add'.")
        begun = json.loads(there.draft)
    asked = plan.settings()
    other = [f"--{name} {begun.get(name)}" for name in asked if asked[name] != begun.get(name)]
    if other:
        raise InputError(
            f"{place}: is half made, with {' '.join(other)}; give the command as it was and it "
            "will be finished, or delete it to begin anew."
        )


@contextmanager
def _telling_how_to_go_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(
            str(stopped)
            or "stopped; what is done is kept, and the same command again goes on from there."
        ) from None


@contextmanager
def _features_beside(place: str) -> Iterator[Path]:
    """Where features of images are kept; they go when the block succeeds."""
    beside = Path(f"{place}.features.npz")
    if store.is_address(place):
        address = Address.parse(place)
        folder = Path() if address.file is None else Path(address.file).parent
        beside = folder / f"{address.name}.features.npz"
    yield beside
    forget_parts(beside)
    beside.unlink(missing_ok=True)


@contextmanager
def _begun(
    place: str, plan: Plan, found: Source, hasher: Hasher, rows: NDArray[np.intp]
) -> Iterator[Collection]:
    """The draft of a collection: the one that is there, or a new one with the hasher fitted."""
    draft = json.dumps({**plan.settings(), "made from": found.digest()})
    if store.exists(place):
        with store.open(place, drafts=True) as collection:
            if collection.draft != draft:
                raise InputError(
                    f"{place}: is half made, and {plan.source} has changed since; delete it to "
                    "begin anew."
                )
            yield collection
    else:
        _fit(hasher, plan, found, rows)
        with store.create(place, hasher=hasher, features=found.feature, draft=draft) as collection:
            yield collection


def _fit(hasher: Hasher, plan: Plan, found: Source, rows: NDArray[np.intp]) -> None:
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=plan.random_state)
    labels = None if found.labels is None else found.labels[rows]
    if hasher.needs_y and labels is None:
        raise InputError(
            f"index: {plan.hasher} learns from labels, and {plan.source} has none; images have "
            "them by their sub-folders, an .npz file by its array 'labels'."
        )
    hasher.fit(found.vectors[rows], labels)


def _feature(plan: Plan) -> Feature | None:
    return FEATURES[plan.features]() if plan.source.is_dir() else None


def _read(source: Path, feature: Feature | None, beside: Path, plan: Plan) -> Source:
    if not source.exists():
        raise InputError(f"{source}: no such file or folder.")
    if source.is_dir():
        assert feature is not None
        return _images(source, feature, beside, plan)
    stored = stored_arrays(source)
    name = next((name for name in VECTOR_NAMES if name in stored), next(iter(stored)))
    vectors = check_vectors(stored[name].load(), f"{source}: {name}")
    if "labels" not in stored:
        return Source(vectors, {}, None)
    labels = check_labels(stored["labels"].load(), f"{source}: labels", len(vectors))
    return Source(vectors, {"label": labels.tolist()}, labels)


def _images(source: Path, feature: Feature, beside: Path, plan: Plan) -> Source:
    """Features of a folder; the parts that they were put together from are kept too."""
    errors: Literal["skip", "raise"] = "skip" if plan.skips else "raise"
    ready = fitted_on(source, feature, beside, errors=errors)
    found = extract(source, [ready], beside, errors=errors, keep_parts=True)
    metadata: dict[str, Any] = {"path": [str((source / p).resolve()) for p in found.paths]}
    labels = found.labels
    if labels is not None:
        names = (*found.class_names, None)  # -1 is the last
        metadata["label"] = [names[label] for label in labels]
    return Source(found[feature.name], metadata, labels, len(found.skipped), ready)


def _sample(n: int, plan: Plan) -> NDArray[np.intp]:
    check_count(plan.fit_sample, "index: fit_sample")
    if n <= plan.fit_sample:
        return np.arange(n)
    rng = np.random.default_rng(plan.random_state)
    return np.sort(rng.choice(n, plan.fit_sample, replace=False))


def _fill(collection: Collection, found: Source) -> None:
    """Store what is not stored yet.

    Of a batch under way a server may have kept a part; so it is put there again, under its ids.
    """
    n, done = len(found.vectors), len(collection) // BATCH * BATCH
    with Bar("storing") as bar:
        for first in range(done, n, BATCH):
            rows = slice(first, min(n, first + BATCH))
            some = {name: column[rows] for name, column in found.metadata.items()}
            ids = np.arange(rows.start, rows.stop)
            collection.upsert(np.asarray(found.vectors[rows]), ids, metadata=some)
            bar(rows.stop, n)


def _in_batches(found: Source) -> Iterator[NDArray[Any]]:
    n = len(found.vectors)
    with Bar("encoding") as bar:
        for first in range(0, n, BATCH):
            yield np.asarray(found.vectors[first : first + BATCH])
            bar(min(n, first + BATCH), n)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:,}" if isinstance(value, int) else str(value)
