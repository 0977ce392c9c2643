"""The hasher and the features of a collection: from images, texts and vectors to its codes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.checks import check_count
from bittern.codes import MAX_BITS, Codes
from bittern.errors import BitternError, FileError, InputError
from bittern.io.files import temporary_folder

if TYPE_CHECKING:
    from bittern.features.base import Feature
    from bittern.hashing.base import Hasher
    from bittern.hashing.crossmodal.base import CrossModalHasher


IMAGE, TEXT = "image", "text"  # modalities
PARTS = ("hasher", "features", "texts")  # what is stored, each as a file


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """A fitted hasher and a fitted feature; either may be missing.

    With a cross-modal hasher, ``features`` is for images and ``texts`` for texts.
    """

    hasher: Hasher | CrossModalHasher | None = None
    features: Feature | None = None
    texts: Feature | None = None

    def __post_init__(self) -> None:
        if self.hasher is not None:
            from bittern.hashing.base import CodeLearner

            if not isinstance(self.hasher, CodeLearner):
                raise InputError(
                    f"Collection: hasher must be a fitted one of bittern.hashing, got "
                    f"{type(self.hasher).__name__}."
                )
        if self.features is not None:
            _check_feature(self.features, "features")
        if self.texts is not None:
            _check_feature(self.texts, "texts")
            if not self.is_crossmodal or self.texts.takes != "texts":
                raise InputError(
                    "Collection: texts must be a feature of texts, beside a cross-modal hasher."
                )

    @property
    def is_crossmodal(self) -> bool:
        """Whether the hasher encodes images and texts."""
        if self.hasher is None:
            return False
        from bittern.hashing.crossmodal.base import CrossModalHasher

        return isinstance(self.hasher, CrossModalHasher)

    @property
    def is_fitted(self) -> bool:
        """Whether there is a hasher that can encode."""
        return self.hasher is not None and self.hasher.__sklearn_is_fitted__()

    def parts(self) -> dict[str, Any]:
        """The hasher and the features by name."""
        return {name: getattr(self, name) for name in PARTS}

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

    def encode(self, things: Any, name: str, *, modality: str | None = None) -> Codes:
        """The codes of vectors, images or texts.

        ``modality``, ``"image"`` or ``"text"``, says what they are if the hasher takes both.
        """
        hasher: Any = self.hasher
        if hasher is None:
            raise InputError(
                f"{name} must be Codes, as this collection has no hasher, got "
                f"{type(things).__name__}."
            )
        if self.is_crossmodal:
            if modality not in (IMAGE, TEXT):
                raise InputError(
                    f"{name} must be Codes, as this collection holds images and texts; "
                    f"recipe.encode(…, modality='image' or 'text') makes them."
                )
            feature = self.features if modality == IMAGE else self.texts
            return hasher.encode(**{f"{modality}s": _rows(things, feature, name)})
        if modality is not None and modality != self._modality:
            raise InputError(f"{name}: this collection was not made from {modality}s.")
        rows = _rows(things, self.features, name)
        shape = rows.shape if hasattr(rows, "shape") else np.shape(rows)
        fitted_on, width = hasher.n_features_in_, math.prod(shape[1:])
        if width != fitted_on:
            raise InputError(
                f"{name}: rows have {width:,} numbers, but {hasher.name} was fitted on rows of "
                f"{fitted_on:,}."
            )
        return hasher.encode(rows)

    @property
    def _modality(self) -> str | None:
        """What the feature takes."""
        return None if self.features is None else self.features.takes.removesuffix("s")

    def names(self) -> dict[str, str | None]:
        """The names of hasher and features."""
        named = {part: getattr(thing, "name", None) for part, thing in self.parts().items()}
        if self.texts is None:
            del named["texts"]
        return named

    def to_blobs(self) -> dict[str, bytes]:
        """Hasher and feature as files of arrays and JSON, by name."""
        with temporary_folder() as folder:
            for name, part in self.parts().items():
                if part is not None:
                    part.save(Path(folder, f"{name}.npz"))
            return {file.stem: file.read_bytes() for file in sorted(Path(folder).iterdir())}

    @classmethod
    def from_blobs(cls, blobs: Mapping[str, bytes], n_bits: int, place: str) -> Recipe:
        """Read what :meth:`to_blobs` gave; runs no code from it."""
        if not blobs:
            return cls()
        if not all(isinstance(blob, bytes) for blob in blobs.values()):
            raise FileError(f"{place}: its recipe is missing.")
        from bittern.features.storage import load as load_feature
        from bittern.hashing.storage import load

        with temporary_folder() as folder:
            files = {name: Path(folder, f"{name}.npz") for name in blobs}
            for name, file in files.items():
                file.write_bytes(blobs[name])
            try:
                hasher = load(files["hasher"]) if "hasher" in files else None
                features, texts = (
                    load_feature(files[name]) if name in files else None
                    for name in ("features", "texts")
                )
            except BitternError as error:
                said = str(error).replace(f"{folder}/", "")
                raise FileError(f"{place}: its recipe cannot be read: {said}") from error
        if hasher is not None and hasher.n_stored_bits != n_bits:
            raise FileError(
                f"{place}: its hasher makes codes of {hasher.n_stored_bits} bits, but its codes "
                f"have {n_bits}."
            )
        return cls(hasher, features, texts)


def _are_vectors(things: Any) -> bool:
    """Whether it is a 2-D array of numbers, in memory or on disk."""
    if hasattr(things, "ndim") and hasattr(things, "dtype"):
        return things.ndim == 2 and np.dtype(things.dtype).kind in "fiub"
    try:
        array = np.asarray(things)
    except ValueError:  # images of different sizes
        return False
    return array.ndim == 2 and array.dtype.kind in "fiub"


def _rows(things: Any, feature: Feature | None, name: str) -> Any:
    """Vectors as they are, or the feature's rows of images or texts."""
    if _are_vectors(things):
        return things
    if feature is not None:
        return feature.transform(things)
    if isinstance(things, np.ndarray) and things.ndim > 2:  # for a hasher that takes images
        return things
    raise InputError(
        f"{name} must be Codes or vectors (2-D, of numbers), as this collection has no "
        f"features, got {type(things).__name__}."
    )


def _check_feature(feature: Any, name: str) -> None:
    from bittern.features import FEATURES

    if FEATURES.get(getattr(feature, "name", "")) is not type(feature):
        raise InputError(
            f"Collection: {name} must be a fitted one of bittern.features, got "
            f"{type(feature).__name__}."
        )
