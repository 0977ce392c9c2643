"""The hasher and the feature of a collection: from images and vectors to its codes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.checks import check_count
from bittern.codes import MAX_BITS, Codes
from bittern.errors import BitternError, FileError, InputError

if TYPE_CHECKING:
    from bittern.features.base import Feature
    from bittern.hashing.base import Hasher


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """A fitted hasher and a fitted feature; either may be missing."""

    hasher: Hasher | None = None
    features: Feature | None = None

    def __post_init__(self) -> None:
        if self.hasher is not None:
            from bittern.hashing.base import Hasher

            if not isinstance(self.hasher, Hasher):
                raise InputError(
                    f"Collection: hasher must be a fitted one of bittern.hashing, got "
                    f"{type(self.hasher).__name__}."
                )
        if self.features is not None:
            _check_feature(self.features)

    def bits(self, n_bits: int | None) -> int:
        """The length of the codes: ``n_bits``, which must be the hasher's if there is one."""
        if self.hasher is None:
            if n_bits is None:
                raise InputError("Collection: give n_bits, or the hasher that makes the codes.")
            return check_count(n_bits, "Collection: n_bits", most=MAX_BITS)
        stored = self.hasher.n_stored_bits
        if n_bits not in (None, stored):
            raise InputError(f"Collection: n_bits must be the hasher's {stored}, got {n_bits}.")
        return stored

    def encode(self, things: Any, name: str) -> Codes:
        """The codes of vectors, images or texts."""
        if self.hasher is None:
            raise InputError(
                f"{name} must be Codes, as this collection has no hasher, got "
                f"{type(things).__name__}."
            )
        if _are_vectors(things):
            return self.hasher.encode(things)
        if self.features is not None:
            return self.hasher.encode(self.features.transform(things))
        if isinstance(things, np.ndarray) and things.ndim > 2:  # for a hasher that takes images
            return self.hasher.encode(things)
        raise InputError(
            f"{name} must be Codes or vectors (2-D, of numbers), as this collection has no "
            f"features, got {type(things).__name__}."
        )

    def names(self) -> dict[str, str | None]:
        """The names of hasher and feature."""
        return {
            "hasher": None if self.hasher is None else self.hasher.name,
            "features": None if self.features is None else self.features.name,
        }

    def to_blobs(self) -> dict[str, bytes]:
        """Hasher and feature as files of arrays and JSON, by name."""
        with tempfile.TemporaryDirectory() as folder:
            if self.hasher is not None:
                self.hasher.save(Path(folder, "hasher.npz"))
            if self.features is not None:
                self.features.save(Path(folder, "features.npz"))
            return {file.stem: file.read_bytes() for file in sorted(Path(folder).iterdir())}

    @classmethod
    def from_blobs(cls, blobs: Mapping[str, bytes], n_bits: int, place: str) -> Recipe:
        """Read what :meth:`to_blobs` gave; runs no code from it."""
        if not blobs:
            return cls()
        from bittern.features.storage import load as load_feature
        from bittern.hashing.storage import load

        with tempfile.TemporaryDirectory() as folder:
            files = {name: Path(folder, f"{name}.npz") for name in blobs}
            for name, file in files.items():
                file.write_bytes(blobs[name])
            try:
                hasher = load(files["hasher"]) if "hasher" in files else None
                features = load_feature(files["features"]) if "features" in files else None
            except BitternError as error:
                said = str(error).replace(f"{folder}/", "")
                raise FileError(f"{place}: its recipe cannot be read: {said}") from error
        if hasher is not None and hasher.n_stored_bits != n_bits:
            raise FileError(
                f"{place}: its hasher makes codes of {hasher.n_stored_bits} bits, but its codes "
                f"have {n_bits}."
            )
        return cls(hasher, features)


def _are_vectors(things: Any) -> bool:
    """Whether it is a 2-D array of numbers, in memory or on disk."""
    if hasattr(things, "ndim") and hasattr(things, "dtype"):
        return things.ndim == 2 and np.dtype(things.dtype).kind in "fiub"
    try:
        array = np.asarray(things)
    except ValueError:  # images of different sizes
        return False
    return array.ndim == 2 and array.dtype.kind in "fiub"


def _check_feature(features: Any) -> None:
    from bittern.features import FEATURES

    if FEATURES.get(getattr(features, "name", "")) is not type(features):
        raise InputError(
            "Collection: features must be a fitted one of bittern.features, got "
            f"{type(features).__name__}."
        )
