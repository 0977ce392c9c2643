"""What is known of a dataset before it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bittern.data.dataset import Dataset

__all__ = ["DatasetSpec", "Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """A file at its publisher's address."""

    url: str
    filename: str  # below the dataset's own folder
    sha256: str | None = None  # or "md5:…"; None where no checksum is known for certain
    unpack: tuple[tuple[str, int], ...] = ()  # members taken out beside it, and their most bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec:
    """A dataset's entry in the catalogue.

    ``load(folder, **options)`` reads the files below ``folder``; ``layout`` says in a sentence
    which files it looks for there, and ``folder`` names it below the root of all data.
    """

    name: str
    title: str
    load: Callable[..., Dataset]
    layout: str
    citation: str  # key in docs/references.bib
    licence: str
    folder: str = ""
    sources: tuple[Source, ...] = ()
    steps: tuple[str, ...] = ()  # preprocessing that the papers state, e.g. ("l2", "centre")
    needs_files: bool = True
