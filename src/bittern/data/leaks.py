"""Find leaks: identical rows, images or texts in sets of a split that must be disjoint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, row_blocks
from bittern.data.dataset import Dataset
from bittern.data.rows import Rows

if TYPE_CHECKING:
    from bittern.data.splits.base import Split

MEMORY = 1 << 24  # bytes of rows held at once
UNKNOWN_ROW = 1 << 18  # bytes assumed for a row of unknown size, such as an image
N_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Leak:
    """Items with the same content in two sets that must be disjoint."""

    modality: str
    one: str
    other: str
    n_one: int  # items of the first set whose content is also in the second
    n_other: int  # items of the second whose content is also in the first
    size_one: int
    size_other: int
    examples: tuple[tuple[str, str], ...]  # the first few pairs of ids

    def __str__(self) -> str:
        pairs = ", ".join(f"{a} = {b}" for a, b in self.examples)
        return (
            f"{self.modality}: {self.n_one:,} of {self.size_one:,} {self.one} are also among "
            f"{self.other} ({self.n_other:,} of {self.size_other:,}): {pairs}"
        )

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class LeakReport:
    """The duplicates found across the sets of a split that must be disjoint.

    ``number`` counts the items with a duplicate in any modality, each once.  Vectors of zeros,
    empty texts and modalities that an item lacks are not compared; ``n_blank`` counts them.
    """

    split: str
    n_pairs: int  # of sets compared
    n_compared: int
    n_blank: int
    number: int
    leaks: tuple[Leak, ...]

    @property
    def is_clean(self) -> bool:
        """Whether there are no duplicates."""
        return self.number == 0

    @property
    def n_walls(self) -> int:
        """The old name of ``n_pairs``."""
        return self.n_pairs

    def __str__(self) -> str:
        blank = f" ({self.n_blank:,} empty rows not compared)" if self.n_blank else ""
        found = (
            "no duplicates across the split"
            if self.is_clean
            else f"{self.number:,} have a duplicate in a set that should be disjoint"
        )
        head = f"{self.split}: {self.n_compared:,} items checked: {found}{blank}"
        return "\n".join([head, *(f"  {leak}" for leak in self.leaks)])

    def __repr__(self) -> str:
        return str(self)


def find_leaks(dataset: Dataset, split: Split, modality: str | None = None) -> LeakReport:
    """Find identical rows in sets that must be disjoint, in all modalities unless one is named.

    Compares BLAKE2b digests of a row's numbers (with shape and type), an image's pixels or a text's
    characters.  Reads rows block by block, once; rows with the same quick checksum are read twice.
    """
    split.check_size(dataset)
    positions = np.unique(np.concatenate(list(split.sets.values())))
    leaks: list[Leak] = []
    has_duplicate = np.zeros(len(dataset), dtype=bool)
    n_blank = 0
    for name in dataset.modalities if modality is None else [modality]:
        content = np.full(len(dataset), -1, dtype=np.int64)
        there = positions[dataset.has(name)[positions]]
        content[there], blank = _contents(dataset[name], there)
        n_blank += blank + len(positions) - len(there)
        for one, other in split.disjoint_pairs:
            leak, duplicates = _compare(dataset, split, name, content, one, other)
            has_duplicate[duplicates] = True
            leaks += [leak] if len(duplicates) else []
    number = int(has_duplicate.sum())
    n_pairs = len(split.disjoint_pairs)
    return LeakReport(split.name, n_pairs, len(positions), n_blank, number, tuple(leaks))


def _compare(
    dataset: Dataset, split: Split, modality: str, content: NDArray[np.int64], one: str, other: str
) -> tuple[Leak, PositionArray]:
    """The leak between two sets, and the positions of the duplicates."""
    a, b = split.sets[one], split.sets[other]
    same_a = a[(content[a] >= 0) & np.isin(content[a], content[b])]
    same_b = b[(content[b] >= 0) & np.isin(content[b], content[a])]
    values, first = np.unique(content[same_b], return_index=True)
    some = same_a[:N_EXAMPLES]
    partners = same_b[first[np.searchsorted(values, content[some])]] if len(some) else some
    examples = tuple(
        (_id(dataset, int(p)), _id(dataset, int(q))) for p, q in zip(some, partners, strict=True)
    )
    leak = Leak(modality, one, other, len(same_a), len(same_b), len(a), len(b), examples)
    return leak, np.concatenate([same_a, same_b])


def _id(dataset: Dataset, position: int) -> str:
    return str(position) if dataset.ids is None else str(dataset.ids[position])


def _contents(rows: Rows, positions: PositionArray) -> tuple[NDArray[np.int64], int]:
    """A number for each row, equal for equal rows and -1 for empty ones; and the count of those.

    A 64-bit checksum, one matrix product per block, comes first; digests decide among rows of equal
    checksums.
    """
    checksum = np.empty(len(positions), dtype=np.uint64)
    blank = np.zeros(len(positions), dtype=bool)
    for block, found in _blocks(rows, positions):
        checksum[block], blank[block] = _checksums(found)
    _, number, count = np.unique(checksum, return_inverse=True, return_counts=True)
    numbers = number.astype(np.int64)
    ambiguous = np.flatnonzero((count[number] > 1) & ~blank)
    known: dict[tuple[int, bytes], int] = {}
    for block, found in _blocks(rows, positions[ambiguous]):
        for i, digest in zip(ambiguous[block], _digests(found), strict=True):
            numbers[i] = known.setdefault((int(numbers[i]), digest), len(count) + len(known))
    numbers[blank] = -1
    return numbers, int(blank.sum())


def _blocks(rows: Rows, positions: PositionArray) -> Iterator[tuple[slice, Any]]:
    shape = getattr(rows, "shape", (0,))
    row_bytes = 8 * int(np.prod(shape[1:])) if len(shape) > 1 else UNKNOWN_ROW
    for block in row_blocks(len(positions), row_bytes, MEMORY):
        yield block, rows[positions[block]]


def _checksums(rows: Any) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """A 64-bit number for each row, equal for equal rows; and which rows are empty."""
    if isinstance(rows, np.ndarray) and rows.dtype != object and rows.ndim > 1:
        words = _words(rows)
        keys = np.random.PCG64(words.shape[1]).random_raw(words.shape[1]) | np.uint64(1)
        return words @ keys, np.asarray(~words.any(axis=1) & (rows.ndim == 2))
    digests = np.frombuffer(b"".join(digest[:8] for digest in _digests(rows)), np.uint64)
    if hasattr(rows, "tocsr"):
        return digests, np.diff(_csr(rows).indptr) == 0
    return digests, np.array([isinstance(row, str) and not row.strip() for row in rows])


def _words(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """The bytes of each row as 64-bit words, padded with zeros."""
    row_bytes = _plain(rows).reshape(len(rows), -1).view(np.uint8)
    padded = np.zeros((len(rows), -(-row_bytes.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : row_bytes.shape[1]] = row_bytes
    return padded.view(np.uint64)


def _digests(rows: Any) -> Iterator[bytes]:
    if hasattr(rows, "tocsr"):
        yield from _sparse_digests(_csr(rows))
        return
    for row in rows:
        if isinstance(row, str):
            yield _blake(b"text", row.encode("utf-8", "surrogatepass"))
        else:
            array = _plain(np.asarray(row))
            yield _blake(f"{array.shape} {array.dtype.str}".encode(), array.reshape(-1))


def _sparse_digests(matrix: Any) -> Iterator[bytes]:
    data, indices = _plain(matrix.data), matrix.indices.astype(np.int64)
    head = f"{matrix.shape[1]} {data.dtype.str}".encode()
    for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        yield _blake(head, indices[start:end], data[start:end])


def _csr(rows: Any) -> Any:
    """Rows in canonical form: sorted columns, no stored zeros."""
    matrix = rows.tocsr().copy()
    matrix.sum_duplicates()  # and sorts the columns
    matrix.eliminate_zeros()
    return matrix


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """C-contiguous, with -0.0 as 0.0, because they are equal."""
    return np.ascontiguousarray(array + 0.0 if array.dtype.kind == "f" else array)


def _blake(*pieces: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
