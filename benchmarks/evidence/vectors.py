"""Features of Corel-5K's pictures and words, computed once and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bittern as bt


def picture_vectors(dataset: bt.Dataset, names: tuple[str, ...], folder: Path) -> dict:
    """Rows of each feature for all pictures, mapped into memory."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.npy"
        if not path.exists():
            print(f"{name} of {len(dataset):,} pictures", flush=True)
            rows = bt.features.FEATURES[name]().fit_transform(dataset["image"])
            with path.with_suffix(".tmp").open("wb") as file:
                np.save(file, rows)
            path.with_suffix(".tmp").replace(path)
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}


def texts_of(dataset: bt.Dataset) -> tuple[list[str], list[str]]:
    """Each picture's words but for those that name a category, and the words left out.

    Corel-5K's categories have numbers only.  A category's name is taken to be the word that is
    most more frequent on its pictures than on others.
    """
    tags, labels = np.asarray(dataset.tags, bool), np.asarray(dataset.labels)
    names = set()
    for category in np.unique(labels):
        inside = tags[labels == category].mean(axis=0)
        names.add(int(np.argmax(inside - tags[labels != category].mean(axis=0))))
    kept = [i for i in range(tags.shape[1]) if i not in names]
    words = np.array(dataset.tag_names, dtype=object)
    texts = [" ".join(words[[i for i in kept if row[i]]]) for row in tags]
    return texts, sorted(words[list(names)])
