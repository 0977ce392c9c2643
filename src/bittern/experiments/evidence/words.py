"""Texts of images, made of their tags."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bittern.data import Dataset
from bittern.errors import InputError

__all__ = ["Words", "words_of"]


class Words(NamedTuple):
    """A text for each image, and the words that none of them has."""

    texts: list[str]
    withheld: tuple[str, ...]


def words_of(dataset: Dataset) -> Words:
    """Each image's tags but for those that name a category.

    Corel-5K's categories have numbers only.  A category's name is taken to be the word whose share
    of its images exceeds that of all others by most; what a query is looking for must not be
    written on the images.
    """
    if dataset.tags is None or dataset.labels is None:
        raise InputError(f"{dataset.name}: features of texts need tags and class labels.")
    given = dataset.tags.toarray() if hasattr(dataset.tags, "toarray") else dataset.tags
    tags, labels = np.asarray(given, bool), dataset.labels
    names = set()
    for category in np.unique(labels[labels >= 0]):
        inside = tags[labels == category].mean(axis=0)
        names.add(int(np.argmax(inside - tags[labels != category].mean(axis=0))))
    kept = [column for column in range(tags.shape[1]) if column not in names]
    words = np.array(dataset.tag_names, dtype=object)
    texts = [" ".join(words[[column for column in kept if row[column]]]) for row in tags]
    return Words(texts, tuple(sorted(words[list(names)])))
