"""Small collections for the tests of the explorer."""

from pathlib import Path

import numpy as np

import bittern as bt
from bittern import store
from bittern.web.explorer.asking import Asked, Uploads
from bittern.web.explorer.contents import Contents
from bittern.web.images import Limits
from bittern.web.source import CollectionSource

N, DIM, N_BITS = 120, 8, 16


def blobs(n=N):
    """Vectors of three overlapping classes, and their labels; some are equal."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    centres = rng.standard_normal((3, DIM)) * 1.5
    vectors = (centres[labels] + rng.standard_normal((n, DIM))).astype(np.float32)
    vectors[-6:] = vectors[:6]  # near-duplicates
    labels[-6:] = labels[:6]
    return vectors, labels


def make_rows(folder, n_bits=N_BITS, name="rows"):
    """A collection of vectors with labels and numbers; its path."""
    vectors, labels = blobs()
    hasher = bt.hashing.LSH(n_bits=n_bits, random_state=1).fit(vectors)
    path = Path(folder, f"{name}.bittern")
    metadata = [
        {"label": "abc"[label], "number": i, "wide": float(vectors[i, 0]), "name": f"<b>{i}</b>"}
        for i, label in enumerate(labels)
    ]
    with store.create(path, hasher=hasher) as made:
        made.add(vectors, metadata=metadata)
    return path


def contents_of(path, vectors=None):
    """The contents of a collection, opened for reading."""
    return Contents(CollectionSource(store.open(path, read_only=True), vectors=vectors))


def uploads_of(contents):
    return Uploads(contents, Limits())


def item(id_, **more):
    return Asked(item=id_, **more)
