"""The interface of every feature, and the images to describe, as arrays or files."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from bittern.checks import Float32Array
from bittern.data.images import (
    decode_image,
    halve_depth,
    image_pixels,
    read_image,
)
from bittern.data.readers import folder
from bittern.errors import FileError, InputError
from bittern.progress import track

ImageArray = NDArray[np.uint8]  # (h, w, 3), RGB, upright, C-contiguous, read-only
ImageSource = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]  # a folder, or image files


class Feature(TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn transformer from images or texts to float32 rows."""

    name: ClassVar[str]
    takes: ClassVar[str]  # "images" or "texts"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters; features that learn override this."""
        self._check()
        return self

    @abstractmethod
    def transform(self, X: Any) -> Float32Array:
        """One row for each item of X."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted feature to a file of arrays and JSON, which :func:`load` reads."""
        from bittern.features.storage import save

        save(self, path)

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """The optional modules that it needs with these parameters."""
        return ()

    def _check(self) -> None:
        """Raise an error for bad parameters."""

    def _check_learned(self) -> None:
        """Raise an error if learned arrays, read from a file, do not fit together."""

    @property
    def _title(self) -> str:
        return type(self).__name__


class ImageFeature(Feature):
    """A feature of one image at a time.

    X is a sequence of paths, bytes of files, Pillow images, or arrays of pixels
    ``(h, w[, channels])``.
    """

    takes = "images"

    def transform(self, X: Any) -> Float32Array:
        """One row for each image."""
        self._check()
        images = track(iter_images(X, self._title), f"{self._title}: images", len(X))
        return np.stack([self._describe(image) for image in images])

    @abstractmethod
    def _describe(self, image: ImageArray) -> Float32Array:
        """The row of one image."""


def iter_images(X: Any, title: str) -> Iterator[ImageArray]:
    """The images of a sequence, decoded one at a time; a single image or none is an error."""
    if _is_single_image(X):
        raise InputError(f"{title}: X must be a sequence of images; put a single one in a list.")
    if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise InputError(f"{title}: X must be a sequence of images, got {type(X).__name__}.")
    if len(X) == 0:
        raise InputError(f"{title}: X must hold at least one image.")
    return (to_image(X[i], f"{title}: image {i}") for i in range(len(X)))


def to_image(source: Any, title: str) -> ImageArray:
    """One image from a path, the bytes of a file, a Pillow image, or an array of pixels.

    :func:`~bittern.data.images.decode_image` explains how files and Pillow images are read.  Arrays
    are ``(h, w)`` or ``(h, w, c)`` with 1, 3 or 4 channels, of uint8, uint16 or booleans, and are
    treated the same way: a fourth channel is alpha, on a white background.  ``title`` is for
    errors; a file is named by its path.
    """
    if isinstance(source, str | os.PathLike):
        image = read_image(Path(source))
    elif isinstance(source, bytes | bytearray | memoryview):
        image = decode_image(io.BytesIO(source), title)
    elif isinstance(source, np.ndarray):
        image = _from_array(source, title)
    elif hasattr(source, "convert"):
        image = image_pixels(source, title)
    else:
        kind = type(source).__name__
        raise InputError(f"{title} must be a path, bytes, a Pillow image or an array, got {kind}.")
    # Read-only, so that compiled code sees one type of array and the caller's array never changes.
    view = image.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True, eq=False)
class ImagePaths:
    """Image files below a folder: ``root / paths[i]`` has the class ``labels[i]``."""

    root: Path
    paths: tuple[str, ...]  # relative, with "/", sorted, distinct
    labels: NDArray[np.int64] | None  # -1 where an image has no class
    class_names: tuple[str, ...]


def find_images(source: ImageSource) -> ImagePaths:
    """All images below a folder, or the given ones relative to their deepest common folder.

    The class of an image is its sub-folder; see
    :func:`~bittern.data.readers.folder.classes_by_folder`.
    """
    if isinstance(source, str | os.PathLike):
        dataset = folder.load(Path(source), manifest=False)
        assert dataset.ids is not None  # they are the paths
        root, paths = Path(source).absolute(), tuple(dataset.ids.tolist())
    else:
        root, paths = _relative([Path(path).absolute() for path in source])
    _, classes = folder.classes_by_folder(paths)
    return ImagePaths(root, paths, *folder.class_numbers(classes))


def _is_single_image(X: Any) -> bool:
    if isinstance(X, np.ndarray):  # (a stack of grey images 3 or 4 pixels wide must be a list)
        return X.ndim == 2 or (X.ndim == 3 and X.shape[2] in (3, 4))
    return isinstance(X, str | bytes | bytearray | memoryview | os.PathLike) or hasattr(
        X, "convert"
    )


def _from_array(pixels: NDArray[Any], title: str) -> NDArray[np.uint8]:
    from PIL import Image

    is_grey = pixels.ndim == 2 or pixels.shape[2:] == (1,)
    is_colour = pixels.ndim == 3 and pixels.shape[2] in (3, 4)
    if not (is_grey or is_colour) or 0 in pixels.shape:
        raise InputError(
            f"{title} must be of shape (h, w) or (h, w, 1, 3 or 4), got {pixels.shape}."
        )
    values = _to_uint8(pixels, title)
    if is_grey:
        return np.repeat(values.reshape(*values.shape[:2], 1), 3, axis=2)
    if values.shape[2] == 4:
        return image_pixels(Image.fromarray(np.ascontiguousarray(values)), title)
    return np.ascontiguousarray(values)


def _to_uint8(pixels: NDArray[Any], title: str) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == bool:
        return np.where(pixels, np.uint8(255), np.uint8(0))
    if pixels.dtype == np.uint16:
        return halve_depth(pixels)
    raise InputError(f"{title} must be of uint8, uint16 or bool, got {pixels.dtype}.")


def _relative(paths: list[Path]) -> tuple[Path, tuple[str, ...]]:
    """The deepest common folder, and the paths below it, sorted."""
    if not paths:
        raise InputError("extract: needs at least one image, got none.")
    try:
        root = Path(os.path.commonpath([path.parent for path in paths]))
    except ValueError as error:  # two drives
        raise FileError(f"extract: the images must be below one folder ({error}).") from error
    relative = sorted(path.relative_to(root).as_posix() for path in paths)
    if len(set(relative)) < len(relative):
        twice = next(a for a, b in pairwise(relative) if a == b)
        raise InputError(f"extract: the image {twice} is given twice.")
    return root, tuple(relative)
