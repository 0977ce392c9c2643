"""The file of codes and pairs found before, so that only new images are read and compared."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.index.near_codes import NearCodes
from bittern.io.files import check_version, existing_file, reading
from bittern.io.npz import require_names, stored_arrays, write_arrays
from bittern.store.coded_images import CodedImages

FORMAT, VERSION = "bittern pairs", 1
ARRAYS = ("about", "words", "pairs", "names", "states", "numbers")


@dataclass(frozen=True, slots=True, eq=False)
class KnownPairs:
    """Codes that were compared before, and the images that had them."""

    path: str
    hash_name: str
    near: NearCodes
    images: dict[str, tuple[str, Codes]]  # state and code of each, by name

    def check(self, items: CodedImages, radius: int) -> None:
        """Raise InputError if the items cannot be compared with these, or not up to this radius."""
        if (self.hash_name, self.near.n_bits) != (items.hash_name, items.codes.n_bits):
            raise InputError(
                f"{self.path}: is about codes of {self.hash_name}, but these are of "
                f"{items.hash_name}; choose another file."
            )
        if radius > self.near.radius:
            raise InputError(
                f"{self.path}: has the pairs within {self.near.radius}; give --radius "
                f"{self.near.radius} or less, or choose another file."
            )


def write_known(path: str | os.PathLike[str], items: CodedImages, near: NearCodes) -> None:
    """Write all codes and pairs, whole or not at all."""
    about = {
        "format": FORMAT,
        "version": VERSION,
        "hash": items.hash_name,
        "n_bits": near.n_bits,
        "radius": near.radius,
    }
    names, states = (items.names, items.states) if items.states else ((), ())
    arrays = {
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        "words": near.words,
        "pairs": near.pairs,
        "names": np.array(names, np.str_),
        "states": np.array(states, np.str_),
        "numbers": near.numbers(items.codes) if items.states else np.empty(0, np.int64),
    }
    write_arrays(path, arrays)


def read_known(path: str | os.PathLike[str]) -> KnownPairs:
    """Read what :func:`write_known` wrote; the file is checked."""
    source = existing_file(path)
    with reading(source, "file of pairs"):
        stored = stored_arrays(source)
        if "about" not in stored:
            raise FileError(f"{source}: is not a file of pairs.")
        require_names(source, ARRAYS, stored)
        arrays = {name: stored[name].load() for name in ARRAYS}
        about = json.loads(arrays["about"].tobytes())
        if about.get("format") != FORMAT:
            raise FileError(f"{source}: is not a file of pairs.")
        check_version(source, about.get("version"), VERSION)
        try:
            codes = Codes(arrays["words"], int(about["n_bits"]))
        except InputError as error:
            raise FileError(f"{source}: is damaged; {error}") from error
        pairs, numbers = arrays["pairs"], arrays["numbers"]
        _check(len(codes), pairs, numbers, arrays["names"], arrays["states"])
        near = NearCodes(codes.words, codes.n_bits, int(about["radius"]), pairs)
        names, states = arrays["names"].tolist(), arrays["states"].tolist()
        rows = zip(names, states, numbers.tolist(), strict=True)
        images = {name: (state, codes[i : i + 1]) for name, state, i in rows}
        return KnownPairs(str(source), str(about["hash"]), near, images)


def _check(n: int, pairs: NDArray[Any], numbers: NDArray[Any], *others: NDArray[Any]) -> None:
    """Raise ValueError if the arrays do not fit together."""
    if pairs.dtype != np.int64 or pairs.ndim != 2 or pairs.shape[1] != 3:
        raise ValueError("its pairs have the wrong shape")
    if pairs.size and not (pairs[:, :2].min() >= 0 and pairs[:, :2].max() < n):
        raise ValueError("its pairs name codes that do not exist")
    if any(other.shape != numbers.shape for other in others) or numbers.dtype != np.int64:
        raise ValueError("its images do not have a code each")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < n):
        raise ValueError("its images name codes that do not exist")
