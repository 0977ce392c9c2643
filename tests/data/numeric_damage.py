"""Damaged copies of small files, and the promise that each ends in our error or in a dataset."""

import tracemalloc

import numpy as np

from bittern.errors import BitternError

MOST_MEMORY = 1 << 28


def truncations(content, most=300):
    """Every beginning of a file, or so many of them if it is long."""
    step = max(1, len(content) // most)
    return [content[:end] for end in range(0, len(content), step)]


def flips(content, n=250, random_state=0, most_bytes=4):
    """Copies with one to four bytes changed, at the file's start more often than elsewhere."""
    rng = np.random.default_rng(random_state)
    copies = []
    for _ in range(n):
        copy = bytearray(content)
        reach = len(content) if rng.random() < 0.5 else min(len(content), 256)
        for position in rng.integers(0, reach, rng.integers(1, most_bytes + 1)):
            copy[position] ^= int(rng.integers(1, 256))
        copies.append(bytes(copy))
    return copies


def survivors(path, copies, load):
    """The copies that load; all others must end in our error that names the file or its folder."""
    original = path.read_bytes()
    loaded = []
    tracemalloc.start()
    try:
        for copy in copies:
            path.unlink()  # a map of the last copy may live on
            path.write_bytes(copy)
            try:
                loaded.append(load())
            except BitternError as error:
                assert str(path.parent) in str(error)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
        path.unlink()
        path.write_bytes(original)
    return loaded
