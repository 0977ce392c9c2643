"""What is in a file of FAISS, read by ourselves: each size is compared with the bytes left.

FAISS itself believes the sizes in a file; a damaged one can make it take gigabytes, or seconds.
Here a binary index of plain codes is read whole, and an ``IndexRaBitQ`` is walked through before
FAISS opens it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError

FLAT = "IndexBinaryFlat"
BINARY = {  # what the first four bytes stand for
    b"IBxF": FLAT,
    b"IBMp": "IndexBinaryIDMap",
    b"IBM2": "IndexBinaryIDMap2",
    b"IBHf": "IndexBinaryHNSW",
    b"IBHh": "IndexBinaryHash",
    b"IBHm": "IndexBinaryMultiHash",
    b"IBFf": "IndexBinaryFromFloat",
    b"IBwF": "IndexBinaryIVF",
}
WITH_IDS = (b"IBMp", b"IBM2", b"IxMp", b"IxM2")
WIDEST = 1 << 16  # bytes of a code
MOST_STEPS = 16  # transformations before an index


class Layout:
    """The bytes of a file, taken one after another."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.content = np.fromfile(source, np.uint8)
        self.place = 0

    def mark(self) -> bytes:
        """The four bytes that name a part."""
        return self.take(4).tobytes()

    def number(self, dtype: str) -> Any:
        """One number."""
        return self.take(np.dtype(dtype).itemsize).view(dtype)[0].item()

    def vector(self, dtype: str) -> NDArray[Any]:
        """An array, after its length."""
        size = np.dtype(dtype).itemsize
        return self.take(self.number("<u8") * size).view(dtype)

    def take(self, size: int) -> NDArray[np.uint8]:
        """So many bytes."""
        left = len(self.content) - self.place
        if size > left:
            raise FileError(
                f"{self.source}: not a readable index of FAISS (it promises {size:,} bytes where "
                f"{left:,} are left)."
            )
        self.place += size
        return self.content[self.place - size : self.place].copy()

    def require(self, is_so: bool, rule: str) -> None:
        """Raise an error unless a rule holds."""
        if not is_so:
            raise FileError(f"{self.source}: not a readable index of FAISS ({rule}).")

    def finish(self) -> None:
        """Raise an error if bytes are left."""
        left = len(self.content) - self.place
        self.require(left == 0, f"{left:,} bytes are left after its end")


def read_binary(source: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64] | None]:
    """The codes of an ``IndexBinaryFlat``, and the ids of an ``IndexBinaryIDMap`` over one."""
    layout = Layout(source)
    mark, ids = layout.mark(), None
    if mark not in BINARY:
        raise FileError(
            f"{source}: not a readable binary index of FAISS (it begins with {mark!r})."
        )
    has_ids = mark in WITH_IDS
    if has_ids:
        _, n = _binary_header(layout)
        mark = layout.mark()
    if BINARY.get(mark) != FLAT:
        raise FileError(
            f"{source}: holds a {BINARY.get(mark, repr(mark))}; only {FLAT} keeps plain codes."
        )
    width, total = _binary_header(layout)
    codes = layout.vector("u1")
    layout.require(len(codes) == total * width, f"{total:,} codes of {width} bytes are not there")
    if has_ids:
        ids = layout.vector("<i8").astype(np.int64)
        layout.require(len(ids) == n == total, "it must have one id for each code")
    layout.finish()
    return codes.reshape(total, width), ids


def check_rabitq(source: Path) -> None:
    """Raise an error unless the file is an ``IndexRaBitQ`` whose sizes agree with its length."""
    layout = Layout(source)
    mark = layout.mark()
    has_ids = mark in WITH_IDS
    if has_ids:
        _header(layout)
        mark = layout.mark()
    _require_kind(layout, mark, b"IxPT")
    dim, total = _header(layout)
    dim = _transformed(layout, dim)
    _require_kind(layout, layout.mark(), b"Ixrq")
    _bits(layout, dim, total)
    if has_ids:
        layout.require(len(layout.vector("<i8")) == total, "it must have one id for each item")
    layout.finish()


def _require_kind(layout: Layout, mark: bytes, wanted: bytes) -> None:
    if mark != wanted:
        raise FileError(
            f"{layout.source}: holds no IndexRaBitQ of this quantiser (part {mark!r}, not "
            f"{wanted!r}); write it with write_faiss_rabitq()."
        )


def _binary_header(layout: Layout) -> tuple[int, int]:
    """Bytes of a code, and the number of codes."""
    bits, width, total = layout.number("<i4"), layout.number("<i4"), layout.number("<i8")
    layout.take(5)  # whether it was trained, and the metric
    layout.require(
        0 < width <= WIDEST and bits == 8 * width, f"codes of {bits} bits in {width} bytes"
    )
    layout.require(total >= 0, "the number of codes is negative")
    return width, total


def _header(layout: Layout) -> tuple[int, int]:
    """Dimensions and the number of items."""
    dim, total = layout.number("<i4"), layout.number("<i8")
    layout.take(17)  # two numbers without a meaning, and whether it was trained
    if layout.number("<i4") > 1:
        layout.take(4)  # the argument of a metric that has one
    layout.require(dim > 0 and total >= 0, f"{total} items of {dim} dimensions")
    return dim, total


def _transformed(layout: Layout, dim: int) -> int:
    """Walk through the transformations; the dimensions after them."""
    n_steps = layout.number("<i4")
    layout.require(0 <= n_steps <= MOST_STEPS, f"{n_steps} transformations")
    for _ in range(n_steps):
        kind = layout.mark()
        if kind == b"LTra":
            layout.take(1)
            weights, offsets = layout.vector("<f4"), layout.vector("<f4")
            given, made = layout.number("<i4"), layout.number("<i4")
            fits = len(weights) == given * made and len(offsets) in (0, made)
            layout.require(fits, "a projection has another size than it says")
        else:
            _require_kind(layout, kind, b"VNrm")
            layout.take(4)
            given, made = layout.number("<i4"), layout.number("<i4")
        layout.require(given == dim, f"a step for {given} dimensions follows one of {dim}")
        layout.take(1)
        dim = made
    return dim


def _bits(layout: Layout, dim: int, total: int) -> None:
    """Walk through the quantised items."""
    layout.require(_header(layout) == (dim, total), "its parts differ in size")
    inner, width = layout.number("<u8"), layout.number("<u8")
    layout.take(4)
    codes, centre = layout.vector("u1"), layout.vector("<f4")
    layout.require(inner == dim == len(centre), f"a centre of {len(centre)} values, not {dim}")
    layout.require(width == -(-dim // 8) + 8, f"items of {width} bytes for {dim} dimensions")
    layout.require(len(codes) == total * width, f"{total:,} items of {width} bytes are not there")
    layout.take(1)
