"""What is tried: hash functions and quantisers at several sizes, the most informative first."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, row_blocks
from bittern.codes import Codes
from bittern.errors import InputError, MissingExtraError, UnknownNameError
from bittern.extras import require
from bittern.hashing import HASHERS, Hasher
from bittern.quantise import (
    QUANTISERS,
    Asymmetric,
    Float16,
    QuantisedCodes,
    Quantiser,
    RaBitQ,
    Sign,
)
from bittern.registry import Registry

Model = Hasher | Quantiser
Stored = Codes | QuantisedCodes

SIZES = (32, 16, 64, 8, 128)  # bytes, the most informative first
LENGTHS = (8, 16, 32, 64, 128, 256, 512)  # bits of hash functions that learn from labels
PREFIXES = (2, 4, 8)  # parts of the columns that are kept
#: Most promising first, in case there is not enough time for all.
USUAL = ("float16", "int8", "binary")
PLAIN = (*USUAL, "sign", "prefix")
QUANTISED = ("tcq", "rabitq-1", "rabitq-2", "rabitq-4", "water-filled")
CODEWORDS = ("pq", "opq", "rq")  # learned by FAISS
UNSUPERVISED = (
    *("itq", "itq+asymmetric", "lsh", "lsh+asymmetric", "pcah", "pcah+asymmetric"),
    *("isohash", "isohash+asymmetric", "sh", "dbq"),
)
BEST = "tcq"
KINDS = (*QUANTISED, "sign", "prefix", "itq", "pq")  # of which one size is tried early
SLOW_KINDS = ("itq+asymmetric", "opq")
SUPERVISED = ("itq-cca", "sdh", "ksh", "talr")
ASYMMETRIC = "+asymmetric"  # at the end of a hash function's name
RABITQ = {"rabitq-1": 1, "rabitq-2": 2, "rabitq-4": 4}  # bits of a dimension
ALIASES = {"rabitq": tuple(RABITQ), "asymmetric": ("itq+asymmetric",)}
BLOCK = 1 << 26  # bytes of expanded codes held at once


@dataclass(frozen=True, slots=True)
class Contender:
    """A method at one size; ``n_bits`` is None for a method that has only one size."""

    method: str
    n_bits: int | None = None
    columns: int | None = None  # the first ones of a vector, for 'prefix'

    @property
    def learns_from_labels(self) -> bool:
        """Whether it cannot be fitted without labels."""
        return self.method in HASHERS and HASHERS[self.method].needs_y

    @property
    def title(self) -> str:
        """Its name and size."""
        if self.columns is not None:
            return f"{self.method}, {self.columns} columns"
        return self.method if self.n_bits is None else f"{self.method}, {self.n_bits} bits"

    def make(self, metric: str, random_state: int) -> Model:
        """A model to fit."""
        if self.method in HASHERS:
            assert self.n_bits is not None
            hasher: Hasher = HASHERS[self.method](n_bits=self.n_bits, random_state=random_state)
            return hasher
        more: dict[str, Any] = {"metric": metric, "random_state": random_state}
        if self.n_bits is not None:
            more["n_bytes"] = -(-self.n_bits // 8)
        if self.method in ("sign", "binary"):
            return Sign(centred=self.method == "sign", **more)
        if self.method == "prefix":
            return Float16(**more)
        if self.method in RABITQ:
            return RaBitQ(bits=RABITQ[self.method], **more)
        if self.method.endswith(ASYMMETRIC):
            return Asymmetric(self.method.removesuffix(ASYMMETRIC), **more)
        quantiser: Quantiser = QUANTISERS[self.method](**more)
        return quantiser

    def cut(self, rows: Float32Array) -> Float32Array:
        """The columns that the model sees."""
        return rows if self.columns is None else np.ascontiguousarray(rows[:, : self.columns])

    def fit(
        self, rows: Float32Array, y: NDArray[Any] | None, metric: str, random_state: int
    ) -> Model:
        """A model fitted on training rows; if Ctrl-C stopped it early, stop everything."""
        model = self.make(metric, random_state)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*: stopped early", category=UserWarning)
            model.fit(self.cut(rows), y)
        if isinstance(model, Hasher) and model.stopped_early_:
            raise KeyboardInterrupt
        return model


def bytes_of(stored: Stored) -> int:
    """Bytes of each item, corrections included."""
    return -(-stored.n_bits // 8) if isinstance(stored, Codes) else stored.n_bytes


def estimates(model: Model, queries: Float32Array, stored: Stored) -> Float32Array:
    """Estimated distances ``(n_queries, n)``; those of a hash function are Hamming's."""
    if isinstance(model, Quantiser):
        assert isinstance(stored, QuantisedCodes)
        return model.distances(queries, stored)
    assert isinstance(stored, Codes)
    asked = _signs(model.encode(queries))
    out = np.empty((len(asked), len(stored)), np.float32)
    for some in row_blocks(len(stored), 4 * stored.n_bits, BLOCK):
        out[:, some] = (stored.n_bits - asked @ _signs(stored[some]).T) / 2
    return out


def _signs(codes: Codes) -> Float32Array:
    return 2 * codes.to_bits().astype(np.float32) - 1


def contenders(
    methods: tuple[str, ...], lengths: tuple[int, ...] | None, dim: int
) -> list[Contender]:
    """Everything to try, in order: what has one size, then size by size."""
    fixed = [one for method in methods for one in _of_one_size(method, dim)]
    order = lengths or tuple(8 * size for size in SIZES)
    sized = [
        Contender(method, n_bits)
        for n_bits in order
        for method in methods
        if method not in PLAIN and _fits(method, n_bits, dim, given=lengths is not None)
    ]
    if lengths is None:  # classes may need very few bits
        few = [n for n in LENGTHS if n < 8 * min(SIZES)]
        sized += [Contender(m, n) for n in few for m in methods if Contender(m).learns_from_labels]
    return sorted(fixed + sized, key=lambda one: _when(one, one in fixed or one.n_bits == order[0]))


def _when(one: Contender, is_first: bool) -> int:
    """The usual formats come first, then one of each kind, then the best at all sizes.

    So a short budget compares all kinds, and a longer one looks for the fewest bytes.  ``is_first``
    says whether it has the first size, or a size of its own.
    """
    if one.method in USUAL:
        return 0
    if one.method == BEST or one.learns_from_labels:
        return (1 if one.method == BEST else 2) if is_first else 3
    if one.method in KINDS:
        return 2 if is_first else 5
    return 4 if one.method in SLOW_KINDS and is_first else 6


def _of_one_size(method: str, dim: int) -> Iterator[Contender]:
    if method == "prefix":
        for part in PREFIXES:
            if dim // part:
                yield Contender(method, columns=dim // part)
    elif method in PLAIN:
        yield Contender(method)
    elif method in RABITQ:  # all dimensions, and two bytes
        yield Contender(method, 8 * (-(-dim * RABITQ[method] // 8) + 2))


def _fits(method: str, n_bits: int, dim: int, given: bool) -> bool:
    """Whether a size makes sense: not more bytes than int8, or bits than RaBitQ has dimensions."""
    if method in RABITQ:
        return n_bits < 8 * (-(-dim * RABITQ[method] // 8) + 2)
    if given:
        return True
    whole = "pcah", "itq", "isohash", "sh"  # at most one bit for each dimension
    if method.removesuffix(ASYMMETRIC) in whole and n_bits > dim:
        return False
    return n_bits <= 8 * dim


def suited(has_labels: bool) -> tuple[str, ...]:
    """The default methods, the most informative first; those that learn from labels if any."""
    learned = SUPERVISED if has_labels else ()
    return (*USUAL, *QUANTISED, *learned, *PLAIN[len(USUAL) :], *UNSUPERVISED, "pq", "opq")


def named(methods: str | Iterable[str]) -> tuple[str, ...]:
    """The names in a list, or in a string separated by commas; UnknownNameError for others."""
    listed = methods.split(",") if isinstance(methods, str) else methods
    names: list[str] = []
    for one in map(str, listed):
        name = one.strip()
        names += ALIASES.get(name, (_known(name),))
    if not names:
        raise InputError("advise: needs at least one method.")
    return tuple(dict.fromkeys(names))


def _known(name: str) -> str:
    own = (*PLAIN, *RABITQ)
    if name in own or name in QUANTISERS or name.removesuffix(ASYMMETRIC) in HASHERS:
        return name
    every = dict.fromkeys((*suited(True), *HASHERS, *QUANTISERS))
    raise UnknownNameError(Registry("method", every).refusal(name))


def modules_of(methods: str | Iterable[str] | None) -> dict[str, tuple[str, ...]]:
    """The optional modules that each of the named methods needs."""
    return {name: _modules(name) for name in (() if methods is None else named(methods))}


def refusal(name: str) -> str:
    """Which optional library a method lacks; empty if none."""
    try:
        require({name: _modules(name)})
    except MissingExtraError as error:
        return str(error).partition(": ")[2].rstrip(".")
    return ""


def _modules(name: str) -> tuple[str, ...]:
    if name in CODEWORDS:
        return ("faiss",)
    hasher = name.removesuffix(ASYMMETRIC)
    if hasher not in HASHERS:
        return ()
    needed: tuple[str, ...] = HASHERS[hasher]().needs_modules
    return needed
