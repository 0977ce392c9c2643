"""The images to describe: a folder's, or some paths; relative, sorted, with classes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bittern.data.readers import folder
from bittern.errors import FileError, InputError

__all__ = ["Gathered", "Source", "gather"]

Source = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]  # a folder, or images


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Images below a folder: ``root / paths[i]`` is one, of the class ``labels[i]``."""

    root: Path
    paths: tuple[str, ...]  # relative, with "/", sorted, distinct
    labels: NDArray[np.int64] | None  # -1 where a image has no class
    class_names: tuple[str, ...]


def gather(source: Source) -> Gathered:
    """All images below a folder, or those given, relative to the deepest folder of them all.

    The class of a image is its sub-folder, as
    :func:`~bittern.data.readers.folder.classes_by_folder` has it.
    """
    if isinstance(source, str | os.PathLike):
        dataset = folder.load(Path(source), manifest=False)
        assert dataset.ids is not None  # they are the paths
        root, paths = Path(source).absolute(), tuple(dataset.ids.tolist())
    else:
        root, paths = _relative([Path(path).absolute() for path in source])
    _, classes = folder.classes_by_folder(paths)
    return Gathered(root, paths, *folder.class_numbers(classes))


def _relative(paths: list[Path]) -> tuple[Path, tuple[str, ...]]:
    if not paths:
        raise InputError("extract: at least one image is needed, got none.")
    try:
        root = Path(os.path.commonpath([path.parent for path in paths]))
    except ValueError as error:  # two drives
        raise FileError(f"extract: the images must lie below one folder ({error}).") from error
    relative = sorted(path.relative_to(root).as_posix() for path in paths)
    if len(set(relative)) < len(relative):
        twice = next(a for a, b in pairwise(relative) if a == b)
        raise InputError(f"extract: the image {twice} is given twice.")
    return root, tuple(relative)
