"""A small collection of images, in each of the ways that the application may see one."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

import bittern as bt
from bittern import store
from bittern.hashing.feature_signs import FeatureSigns
from bittern.web.shared.calls import Caller
from bittern.web.shared.generation import SharedNumbers
from bittern.web.shared.source import N_STATE, STATE, SharedFiles, SharedSource
from bittern.web.shared.writer import Writer, shared_folder

N, N_BITS, DIM = 150, 16, 12


def png(seed=0, size=(24, 18)):
    """The bytes of a small image of noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def vectors(n=N):
    return np.random.default_rng(0).standard_normal((n, DIM)).astype(np.float32)


def make_vectors(folder):
    """A collection of vectors with metadata, some of them missing; its path."""
    path = Path(folder, "rows.bittern")
    hasher = bt.hashing.ITQ(n_bits=N_BITS, random_state=0).fit(vectors())
    metadata = [
        {"label": "cat" if i % 3 else "dog", "number": i, **({"size": i / 2} if i % 2 else {})}
        for i in range(N)
    ]
    with store.create(path, hasher=hasher) as made:
        made.add(vectors(), metadata=metadata)
    return path


def make_images(folder):
    """A collection of images in ``photos``; its path."""
    photos = Path(folder, "photos")
    photos.mkdir()
    feature = bt.features.FEATURES["dhash"]()
    hasher = FeatureSigns.of_length(feature.n_bits)
    path = Path(folder, "photos.bittern")
    with store.create(path, hasher=hasher, features=feature) as made:
        for i in range(8):
            (photos / f"{i}.png").write_bytes(png(i))
        paths = [f"photos/{i}.png" for i in range(8)]
        made.add([png(i) for i in range(8)], metadata=[{"path": one} for one in paths])
        made.set_origin({"folder": "photos", "metadata": None, "exif": False,
                         "skip_broken": False, "columns": [], "texts": None})  # fmt: skip
    return path


class DirectCaller(Caller):
    """Calls to a writer in this process."""

    def __init__(self, writer):
        self._writer = writer

    def ask(self, what, *arguments):
        """What the writer answers."""
        return getattr(self._writer, what)(*arguments)

    tell = ask


class Shared:
    """A writer and what a worker sees, in one process."""

    def __init__(self, path, run, vectors=None):
        run.mkdir()
        SharedNumbers.create(run / STATE, N_STATE)
        root = shared_folder(str(path))
        self.writer = Writer(str(path), root, run, read_only=False)
        self.files = SharedFiles(root, run)
        self.source = SharedSource(self.files, DirectCaller(self.writer), vectors=vectors)

    def close(self):
        """As at the end of a server."""
        self.writer.close()
