"""Fit the features that learn, on a sample of the images, before the images are described."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from bittern.errors import FileError, InputError
from bittern.features.base import Feature, ImagePaths, to_image
from bittern.features.chunks import Parts, feature_key
from bittern.io.models import learned_attributes
from bittern.io.npz import load_arrays, write_arrays
from bittern.progress import track


@dataclass(frozen=True, slots=True)
class Fitted:
    """Fitted features, and the images that some of them were fitted on."""

    features: tuple[Feature, ...]
    sample: tuple[str, ...]


def has_to_learn(feature: Feature) -> bool:
    """Whether a feature overrides ``fit`` and has not been fitted."""
    return type(feature).fit is not Feature.fit and not learned_attributes(feature)


def fit_features(
    features: Sequence[Feature],
    images: ImagePaths,
    parts: Parts,
    *,
    sample: int,
    random_state: int,
    skips: bool,
) -> Fitted:
    """Fit copies of the features that have to learn, all on the same images drawn at random.

    Their learned state is kept with the parts, so that a later call resumes with the same.  With
    ``skips``, images that cannot be read are left out of the sample.
    """
    if not any(map(has_to_learn, features)):
        return Fitted(tuple(features), ())
    rng = np.random.default_rng(random_state)
    n = len(images.paths)
    rows = np.sort(rng.choice(n, min(sample, n), replace=False))
    drawn = [images.paths[row] for row in rows]
    if skips:
        drawn = list(_readable(images.root, drawn))
    if not drawn:
        raise FileError(f"{images.root}: no image could be read to fit the features.")
    (chunk,) = parts.chunks(images.root, drawn, ["fit"], len(drawn))
    content = chunk.target.stem
    ready = [
        _fitted(feature, chunk.root, drawn, parts.place([content, feature_key(feature)]))
        if has_to_learn(feature)
        else feature
        for feature in features
    ]
    return Fitted(tuple(ready), tuple(drawn))


def _readable(root: Path, paths: Sequence[str]) -> Iterator[str]:
    for path in track(paths, "images to fit on", len(paths)):
        try:
            to_image(root / path, path)
        except FileError:
            continue
        yield path


def _fitted(feature: Feature, root: Path, paths: Sequence[str], place: Path) -> Feature:
    """A copy of the feature with its stored state, or newly fitted and stored."""
    copy = clone(feature)
    try:
        state = load_arrays(place)
    except FileError:  # missing or damaged
        copy.fit([root / path for path in paths])
        learned = learned_attributes(copy)
        write_arrays(place, {name: _storable(v, name, feature) for name, v in learned.items()})
        return copy
    for name, array in state.items():
        setattr(copy, name, array if array.ndim else array.item())
    return copy


def _storable(value: Any, name: str, feature: Feature) -> Any:
    if isinstance(value, np.ndarray | np.generic | int | float | str):
        return np.asarray(value)
    raise InputError(
        f"{type(feature).__name__}: {name} of type {type(value).__name__} cannot be stored; "
        "fit the feature yourself and pass it fitted."
    )
