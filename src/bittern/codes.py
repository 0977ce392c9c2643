"""Codes: binary codes packed into 64-bit words."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bittern.checks import (
    INDEX_ERRORS,
    check_array,
    check_choice,
    check_count,
    check_list,
    check_type,
    row_blocks,
)
from bittern.errors import FileError, InputError, PositionError, shown
from bittern.io import code_files
from bittern.moved import renamed

if TYPE_CHECKING:
    from bittern.io.metadata import Metadata

WORD_BITS = 64
MOST_SHOWN = 100_000  # codes that a notebook counts
MAX_BITS = 4096
BitOrder = Literal["big", "little"]


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """``len(self)`` binary codes of ``n_bits`` bits, packed into 64-bit words.

    Bit ``j`` lives in word ``j // 64`` at position ``j % 64``.  Padding bits of the last word
    are zero, so that XOR and popcount never see them.  To NumPy, codes are their bits:
    ``np.asarray(codes)`` is ``codes.to_bits()``.

    >>> codes = Codes.from_bits([[1, 0, 1], [0, 0, 1]])
    >>> codes
    <2 codes of 3 bits>
    >>> codes.to_bits().astype(int).tolist()
    [[1, 0, 1], [0, 0, 1]]
    """

    words: NDArray[np.uint64]  # (n_codes, n_words), C-contiguous
    n_bits: int

    def __post_init__(self) -> None:
        check_count(self.n_bits, "Codes: n_bits", most=MAX_BITS)
        w, n_words = self.words, _n_words(self.n_bits)
        good = isinstance(w, np.ndarray) and w.dtype == np.uint64 and w.shape[1:] == (n_words,)
        if not good or not w.flags.c_contiguous:
            raise InputError(
                f"Codes: words must be C-contiguous uint64 of shape (n, {n_words}), got "
                f"{_described(w)}; "
                "Codes.from_bits() packs booleans."
            )
        used = self.n_bits % WORD_BITS
        if used and any(
            (w[rows, -1] >> np.uint64(used)).any() for rows in row_blocks(len(w), 8, 1 << 22)
        ):
            raise InputError(f"Codes: words has bits set beyond n_bits={self.n_bits}.")

    @classmethod
    def from_bits(cls, bits: ArrayLike) -> Codes:
        """Pack an ``(n, n_bits)`` array of booleans or 0/1."""
        b = check_array(bits, "Codes: bits")
        if b.ndim != 2:
            raise InputError(f"Codes: bits must be 2-D (n, n_bits), got shape {b.shape}.")
        n, n_bits = b.shape
        check_count(n_bits, "Codes: the number of columns of bits", most=MAX_BITS)
        full = np.zeros((n, _n_words(n_bits) * 8), np.uint8)
        for rows in row_blocks(n, n_bits * 8):
            packed = np.packbits(_booleans(b[rows]), axis=1, bitorder="little")
            full[rows, : packed.shape[1]] = packed
        return cls(_as_words(full), n_bits)

    @classmethod
    @renamed(octets="packed")
    def from_packed(
        cls, packed: ArrayLike, n_bits: int | None = None, bitorder: BitOrder = "big"
    ) -> Codes:
        """Read ``(n, ceil(n_bits / 8))`` uint8 rows of ``np.packbits(bits, axis=1, bitorder=…)``.

        ``n_bits`` defaults to all bits of the row.  Distances between codes depend on ``bitorder``
        only if the two sides were read with different ones.  Pass ``"little"`` for bytes that
        FAISS's own encoders made, or that come from Milvus.
        """
        p = check_array(packed, "Codes: packed bytes")
        if p.ndim != 2 or p.dtype != np.uint8:
            raise InputError(
                f"Codes: packed bytes must be 2-D uint8, got {p.dtype} of shape {p.shape}."
            )
        check_bitorder(bitorder)
        n_bits = check_count(
            8 * p.shape[1] if n_bits is None else n_bits, "Codes: n_bits", most=MAX_BITS
        )
        n_bytes = -(-n_bits // 8)
        if p.shape[1] != n_bytes:
            raise InputError(
                f"Codes: {n_bits} bits take {n_bytes} bytes per row, got {p.shape[1]}; "
                "pass the n_bits that were packed."
            )
        full = np.zeros((len(p), _n_words(n_bits) * 8), np.uint8)
        for rows in row_blocks(len(p), n_bytes):
            full[rows, :n_bytes] = _REVERSED[p[rows]] if bitorder == "big" else p[rows]
        return cls(_as_words(full), n_bits)

    @classmethod
    def concatenate(cls, parts: Iterable[Codes]) -> Codes:
        """The rows of several collections, in order."""
        parts = check_list(parts, "Codes: the parts of concatenate")
        for part in parts:
            check_type(part, Codes, "Codes: each part of concatenate")
        lengths = sorted({part.n_bits for part in parts})
        if len(lengths) != 1:
            raise InputError(
                "Codes: concatenate takes at least one collection, all of the same length, "
                f"got lengths {lengths}."
            )
        return cls(np.concatenate([part.words for part in parts]), lengths[0])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        n_bits: int | None = None,
        mmap: bool = False,
        bitorder: BitOrder = "big",
    ) -> Codes:
        """Read what :meth:`save` wrote, or a plain ``.npy`` of words, packed bytes or bits.

        A ``.npy`` of uint8 holds bytes from ``np.packbits`` (or 0/1 bits if ``n_bits`` equals its
        width), one of uint64 holds words, one of booleans holds bits.  ``bitorder`` is that of
        packed bytes.  With ``mmap`` the words stay on disk until they are read.
        """
        check_bitorder(bitorder)
        if n_bits is not None:
            n_bits = check_count(n_bits, "Codes: n_bits", most=MAX_BITS)
        stored = code_files.read(path, mmap=mmap)
        if stored.n_bits is not None and n_bits not in (None, stored.n_bits):
            raise FileError(f"{path}: holds codes of {stored.n_bits} bits, not n_bits={n_bits}.")
        try:
            return cls._of(stored.array, stored.n_bits if n_bits is None else n_bits, bitorder)
        except InputError as error:
            raise FileError(f"{path}: not a file of codes: {error}") from None

    @classmethod
    def _of(cls, array: NDArray[Any], n_bits: int | None, bitorder: BitOrder) -> Codes:
        """Codes from words, packed bytes or bits; dtype and width decide which."""
        width = array.shape[1]
        if array.dtype == np.uint64:
            return cls(array, 64 * width if n_bits is None else n_bits)
        if array.dtype == np.uint8 and (n_bits != width or array.max(initial=0) > 1):
            return cls.from_packed(array, n_bits, bitorder)
        if n_bits not in (None, width):
            raise InputError(f"Codes: n_bits must be {width}, the number of columns, got {n_bits}.")
        return cls.from_bits(array)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``.npz`` (words and n_bits) or ``.npy`` (the words alone), whole or not at all.

        A length that is not a multiple of 64 becomes the name of the only field of the ``.npy``.
        """
        code_files.write(path, self.words, self.n_bits)

    def to(
        self,
        kind: str,
        path: str | os.PathLike[str],
        *,
        ids: ArrayLike | None = None,
        metadata: Metadata = None,
        bitorder: BitOrder | None = None,
        name: str | None = None,
    ) -> None:
        """Write the codes for another program: ``codes.to("sqlite-vec", "codes.db", ids=ids)``.

        ``kind`` is a name in :data:`bittern.io.exchange.TARGETS`.  ``ids`` (default: positions) and
        ``metadata``, a dictionary of columns or one dictionary per code, go along if the target can
        hold them.  ``bitorder`` defaults to the target's.  ``name`` is that of a table, collection
        or type of documents.
        """
        from bittern.io import exchange

        order = exchange.order_of(kind, bitorder)
        items = exchange.PackedItems(self.to_packed(order), self.n_bits, order)
        exchange.write(kind, path, items, ids=ids, metadata=metadata, name=name)

    @classmethod
    def from_(
        cls,
        kind: str,
        path: str | os.PathLike[str],
        *,
        n_bits: int | None = None,
        bitorder: BitOrder | None = None,
        name: str | None = None,
    ) -> Codes:
        """Read the codes that :meth:`to` or another program wrote.

        ``n_bits`` is needed where the last byte is padded and the target keeps no length.  Warns if
        there are ids other than positions; :func:`bittern.store.read_items` keeps them.
        """
        from bittern.io import exchange

        found = exchange.read(kind, path, n_bits=n_bits, bitorder=bitorder, name=name)
        if found.has_own_ids:
            warnings.warn(
                f"{path}: has ids, which Codes.from_() drops; bittern.store.read_items() keeps "
                "them.",
                stacklevel=2,
            )
        return unpacked(path, found.packed, found.n_bits, found.bitorder or "big")

    def to_bits(self) -> NDArray[np.bool_]:
        """Unpack to ``(n, n_bits)`` booleans; the inverse of :meth:`from_bits`."""
        bits = np.unpackbits(self._bytes(), axis=1, count=self.n_bits, bitorder="little")
        return bits.view(np.bool_)

    def to_packed(self, bitorder: BitOrder = "big") -> NDArray[np.uint8]:
        """``(n, ceil(n_bits / 8))`` bytes, as ``np.packbits(self.to_bits(), axis=1, bitorder=…)``.

        ``"big"`` puts the first bit into a byte's highest place, ``"little"`` into its lowest.
        """
        check_bitorder(bitorder)
        packed = self._bytes()[:, : -(-self.n_bits // 8)]
        return _REVERSED[packed] if bitorder == "big" else packed.copy()

    def truncate(self, n_bits: int) -> Codes:
        """The first ``n_bits`` bits of every code."""
        n_bits = check_count(n_bits, "Codes: n_bits", most=self.n_bits)
        words = self.words[:, : _n_words(n_bits)].copy()
        if used := n_bits % WORD_BITS:
            words[:, -1] &= np.uint64((1 << used) - 1)
        return Codes(words, n_bits)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: Any) -> Codes:
        """Codes of the chosen rows (a position, slice, mask or array); always a ``Codes``."""
        if isinstance(rows, tuple):
            raise PositionError("Codes: only rows can be chosen; truncate() shortens codes.")
        try:
            words = self.words[rows]
        except INDEX_ERRORS as error:
            raise PositionError(f"Codes: no such rows among {len(self)}: {error}.") from None
        if words.ndim == 1 and isinstance(rows, int | np.integer):
            words = words[None]
        if words.ndim != 2 or words.shape[1] != self.words.shape[1]:
            raise PositionError("Codes: choose rows by a position, a slice, a mask or a 1-D array.")
        return Codes(np.ascontiguousarray(words), self.n_bits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Codes):
            return NotImplemented
        return self.n_bits == other.n_bits and np.array_equal(self.words, other.words)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """``np.asarray(codes)`` is :meth:`to_bits`, always a new array."""
        if copy is False:
            raise ValueError("Codes: its bits are packed, so that an array of them is a copy.")
        bits = self.to_bits()
        return bits if dtype is None else bits.astype(dtype, copy=False)

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # so that NumPy arrays leave == to Codes

    def __repr__(self) -> str:
        return f"<{len(self):,} codes of {self.n_bits} bits>"

    def _repr_html_(self) -> str:
        """The first codes as squares, and the share of codes in which each bit is set."""
        from bittern import notebook

        heading = f"{len(self):,} codes of {self.n_bits} bits"
        if not len(self):
            return notebook.card(heading)
        rows = np.unique(np.linspace(0, len(self) - 1, MOST_SHOWN).astype(np.intp))
        shares = self[rows].to_bits().mean(axis=0)
        chart = notebook.columns(
            np.ones(self.n_bits).tolist(),
            shares.tolist(),
            titles=[f"bit {j}: set in {share:.1%}" for j, share in enumerate(shares)],
            first="bit 0",
            last=f"bit {self.n_bits - 1}",
            label="Share of codes in which each bit is set",
            top=1.0,
        )
        sample = "" if len(rows) == len(self) else f" of {len(rows):,} codes spread over all"
        note = (
            f"Above, the first codes; below, the share{sample} in which each bit is set, "
            f"{shares.min():.0%} to {shares.max():.0%}."
        )
        return notebook.card(
            heading, notebook.grid(self[:6].to_bits().tolist(), "Codes"), "<br>", chart, note=note
        )

    def _bytes(self) -> NDArray[np.uint8]:
        return self.words.astype("<u8", copy=False).view(np.uint8)


# Every byte with its bits in the opposite order.
_REVERSED = np.packbits(
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1), axis=1, bitorder="little"
)[:, 0]


def _described(words: Any) -> str:
    """What an array is; of something else, what it is."""
    is_array = isinstance(words, np.ndarray)
    return f"{words.dtype} of shape {words.shape}" if is_array else shown(words)


def _n_words(n_bits: int) -> int:
    return -(-n_bits // WORD_BITS)


def _as_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    return packed.view("<u8").astype(np.uint64, copy=False)


def _booleans(bits: NDArray[Any]) -> NDArray[np.bool_]:
    if bits.dtype == np.bool_:
        return bits
    if bits.dtype.kind not in "iuf" or not ((bits == 0) | (bits == 1)).all():
        raise InputError("Codes: bits must be booleans or 0/1; for ±1 codes pass codes > 0.")
    return bits.astype(np.bool_)


def unpacked(
    path: str | os.PathLike[str], packed: NDArray[Any], n_bits: int | None, bitorder: BitOrder
) -> Codes:
    """:meth:`Codes.from_packed` for the bytes of a file, which errors name."""
    try:
        return Codes.from_packed(packed, n_bits, bitorder)
    except InputError as error:
        raise FileError(f"{path}: {error}") from None


def check_bitorder(bitorder: str) -> None:
    """Raise InputError unless it is one of NumPy's two."""
    check_choice(bitorder, "Codes: bitorder", ("big", "little"))
