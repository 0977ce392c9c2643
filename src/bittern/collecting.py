"""What ``bittern index`` does: pictures or vectors into a collection, and out of it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern import store
from bittern.checks import check_count, check_labels, check_vectors
from bittern.errors import InputError
from bittern.features import FEATURES, extract
from bittern.features.base import Feature
from bittern.hashing import HASHERS
from bittern.numpyfiles import stored_arrays
from bittern.progress import Bar
from bittern.store import Collection

__all__ = ["Plan", "add_to", "create", "describe", "export", "remove_from"]

BATCH = 10_000  # items that are written at once
VECTOR_NAMES = ("vectors", "features", "X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a collection is to be made."""

    source: Path  # a folder of pictures, or an .npy or .npz file of vectors
    features: str = "deep"
    hasher: str = "itq"
    n_bits: int = 64
    fit_sample: int = 20_000  # items, drawn at random, that the hasher learns from
    random_state: int = 0
    skips: bool = False  # pictures that cannot be read; else the first stops it all


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Vectors of items, and what is known of each."""

    vectors: NDArray[Any]  # (n, dim)
    metadata: dict[str, Any]  # columns
    labels: NDArray[Any] | None
    n_skipped: int = 0


def create(place: str, plan: Plan) -> str:
    """Describe, fit, encode and store; a sentence about what came of it.

    A collection in a file appears when it is whole.  Features of pictures are kept beside it as
    they are computed, so that the same command goes on after an interruption.
    """
    hasher = HASHERS[plan.hasher](n_bits=plan.n_bits)
    _refuse_existing(place)
    beside = Path(f"{place}.features.npz")
    feature = FEATURES[plan.features]() if plan.source.is_dir() else None
    found = _read(plan.source, feature, beside, plan)
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=plan.random_state)
    rows = _sample(len(found.vectors), plan)
    labels = None if found.labels is None else found.labels[rows]
    if hasher.needs_y and labels is None:
        raise InputError(
            f"index: {plan.hasher} learns from labels, and {plan.source} has none; pictures have "
            "them by their sub-folders, an .npz file by its array 'labels'."
        )
    hasher.fit(found.vectors[rows], labels)
    with _new_collection(place, hasher, feature) as collection:
        _add(collection, found)
    beside.unlink(missing_ok=True)
    skipped = f", {found.n_skipped:,} skipped" if found.n_skipped else ""
    return (
        f"{place}: {len(found.vectors):,} items of {plan.n_bits} bits{skipped}; {plan.hasher} was "
        f"fitted on {len(rows):,} of them."
    )


def add_to(place: str, source: Path, *, skips: bool = False) -> str:
    """Add pictures or vectors to a collection, encoded as its others were."""
    with store.open(place) as collection:
        feature = collection.recipe.features
        if collection.recipe.hasher is None:
            raise InputError(f"{place}: has no hasher; add codes from Python.")
        if source.is_dir() and feature is None:
            raise InputError(f"{place}: was made from vectors; give a file of vectors.")
        beside = Path(f"{place}.features.npz")
        found = _read(source, feature, beside, Plan(source=source, skips=skips))
        _add(collection, found)
        beside.unlink(missing_ok=True)
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


def _read(source: Path, feature: Feature | None, beside: Path, plan: Plan) -> Source:
    if not source.exists():
        raise InputError(f"{source}: no such file or folder.")
    if source.is_dir():
        assert feature is not None
        return _pictures(source, feature, beside, plan)
    stored = stored_arrays(source)
    name = next((name for name in VECTOR_NAMES if name in stored), next(iter(stored)))
    vectors = check_vectors(stored[name].load(), f"{source}: {name}")
    if "labels" not in stored:
        return Source(vectors, {}, None)
    labels = check_labels(stored["labels"].load(), f"{source}: labels", len(vectors))
    return Source(vectors, {"label": labels.tolist()}, labels)


def _pictures(source: Path, feature: Feature, beside: Path, plan: Plan) -> Source:
    found = extract(source, [feature], beside, errors="skip" if plan.skips else "raise")
    metadata: dict[str, Any] = {"path": [str((source / p).resolve()) for p in found.paths]}
    labels = found.labels
    if labels is not None:
        names = (*found.class_names, None)  # -1 is the last
        metadata["label"] = [names[label] for label in labels]
    return Source(found[feature.name], metadata, labels, len(found.skipped))


def _sample(n: int, plan: Plan) -> NDArray[np.intp]:
    check_count(plan.fit_sample, "index: fit_sample")
    if n <= plan.fit_sample:
        return np.arange(n)
    rng = np.random.default_rng(plan.random_state)
    return np.sort(rng.choice(n, plan.fit_sample, replace=False))


def _add(collection: Collection, found: Source) -> None:
    n = len(found.vectors)
    with Bar("storing") as bar:
        for rows in _batches(n):
            some = {name: column[rows] for name, column in found.metadata.items()}
            collection.add(np.asarray(found.vectors[rows]), metadata=some)
            bar(rows.stop, n)


def _batches(n: int) -> Iterator[slice]:
    return (slice(i, min(n, i + BATCH)) for i in range(0, n, BATCH))


def _refuse_existing(place: str) -> None:
    if not store.is_address(place) and Path(place).exists():
        raise InputError(f"{place}: is there already; add to it with 'bittern index add'.")


class _new_collection:
    """A collection that takes its place only if the block succeeds; one on a server is at once."""

    def __init__(self, place: str, hasher: Any, feature: Feature | None) -> None:
        self._place, self._is_file = place, not store.is_address(place)
        self._made_at = f"{place}.new" if self._is_file else place
        if self._is_file:
            Path(self._made_at).unlink(missing_ok=True)
        self._collection = store.create(self._made_at, hasher=hasher, features=feature)

    def __enter__(self) -> Collection:
        return self._collection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._collection.close()
        if self._is_file and kind is None:
            Path(self._made_at).replace(self._place)
        elif self._is_file:
            Path(self._made_at).unlink(missing_ok=True)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:,}" if isinstance(value, int) else str(value)
