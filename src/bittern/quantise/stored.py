"""QuantisedCodes: the bytes that a quantiser keeps of each item."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_type
from bittern.errors import InputError
from bittern.io.files import reading
from bittern.io.npz import require_names, stored_arrays, write_arrays

Bytes = NDArray[np.uint8]
NAMES = ("bytes", "fingerprint")


@dataclass(frozen=True, slots=True, eq=False)
class QuantisedCodes:
    """Rows of bytes, one for each item; the quantiser that wrote them gives them a meaning.

    ``fingerprint`` says which fitted quantiser that is, so that no other one reads them.

    >>> import numpy as np, bittern as bt
    >>> X = np.random.default_rng(0).standard_normal((100, 16))
    >>> bt.quantise.QUANTISERS["int8"]().fit(X).encode(X)
    <100 items of 16 bytes>
    """

    bytes: Bytes
    fingerprint: str

    def __post_init__(self) -> None:
        check_type(self.bytes, np.ndarray, "QuantisedCodes: bytes")
        if self.bytes.ndim != 2 or self.bytes.dtype != np.uint8:
            raise InputError(
                "QuantisedCodes: bytes must be a 2-D array of uint8, "
                f"got {self.bytes.ndim}-D of {self.bytes.dtype}."
            )

    @property
    def n_bytes(self) -> int:
        """Bytes kept of each item; nothing else is kept."""
        return self.bytes.shape[1]

    def __len__(self) -> int:
        return len(self.bytes)

    def __getitem__(self, rows: Any) -> Self:
        chosen = self.bytes[rows]
        if chosen.ndim != 2:
            raise InputError("QuantisedCodes: take rows by a slice, a list or a mask.")
        return type(self)(chosen, self.fingerprint)

    def __repr__(self) -> str:
        return f"<{len(self):,} items of {self.n_bytes} bytes>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bytes to an ``.npz`` file, which :meth:`load` can also map into memory."""
        write_arrays(path, {"bytes": self.bytes, "fingerprint": np.array(self.fingerprint)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> Self:
        """Read what :meth:`save` wrote; with ``mmap`` the bytes stay on disk until used."""
        arrays = stored_arrays(path)
        require_names(path, NAMES, arrays)
        with reading(path, "file of quantised codes"):
            rows = arrays["bytes"].map() if mmap else arrays["bytes"].load()
            return cls(rows, str(arrays["fingerprint"].load()))

    @classmethod
    def concatenate(cls, parts: Iterable[QuantisedCodes]) -> Self:
        """The items of all parts, in order; they must be of one quantiser."""
        some = list(parts)
        if not some or any(one.fingerprint != some[0].fingerprint for one in some):
            raise InputError("QuantisedCodes: concatenate needs parts of one quantiser.")
        return cls(np.concatenate([one.bytes for one in some]), some[0].fingerprint)
