"""PackedItems: codes as bytes with ids and metadata, on their way to or from another program."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bittern.io.metadata import Columns

Order = Literal["big", "little"]
ID, CODE = "id", "code"  # what columns and fields are called
NOTE = re.compile(r"n_bits=([0-9]{1,18}) bitorder=(big|little)")


@dataclass(frozen=True, slots=True, eq=False)
class PackedItems:
    """Codes as rows of bytes, and what goes along.

    ``n_bits`` and ``bitorder`` are None if a file does not say them, and ``ids`` if it has none.
    """

    packed: NDArray[np.uint8]  # (n, n_bytes)
    n_bits: int | None = None
    bitorder: Order | None = None
    ids: NDArray[np.int64] | None = None
    columns: Columns = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.packed)

    @property
    def n_bytes(self) -> int:
        """Bytes of each code."""
        return self.packed.shape[1]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The ids, or positions if there are none."""
        return np.arange(len(self)) if self.ids is None else self.ids

    @property
    def has_own_ids(self) -> bool:
        """Whether ids are other than 0, 1, 2, …, so that something is lost without them."""
        return self.ids is not None and not are_positions(self.ids)

    @property
    def note(self) -> str:
        """Length and order of bits in words, for programs that keep a description."""
        return f"n_bits={self.n_bits} bitorder={self.bitorder}"


def read_note(text: str | None) -> tuple[int | None, Order | None]:
    """Length and order of bits that a description says; None if it says nothing.

    >>> read_note("n_bits=100 bitorder=big")
    (100, 'big')
    >>> read_note("Embeddings of cats.")
    (None, None)
    """
    found = NOTE.search(text or "")
    if found is None:
        return None, None
    return int(found[1]), "big" if found[2] == "big" else "little"


def are_positions(ids: NDArray[np.int64]) -> bool:
    """Whether ids are 0, 1, 2, …, so that nothing is lost without them."""
    return bool(np.array_equal(ids, np.arange(len(ids))))
