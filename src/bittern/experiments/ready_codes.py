"""Ready-made codes: a method whose codes another program computed, read from files.

    [[method]]
    name = "codes"
    label = "our system"
    parameters = { files = "codes/{run}-{n_bits}.npz" }

Each file has the arrays ``queries`` and ``database``, in the order of the run's split.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.experiments.record import Record
from bittern.experiments.run_data import RunData, SplitSet
from bittern.inputs import read_codes
from bittern.io.files import checksum, existing_file
from bittern.io.npz import array_names, stored_array
from bittern.io.toml import read_table

if TYPE_CHECKING:
    from bittern.experiments.cells import Cell
    from bittern.experiments.protocol import Method, Protocol

CODES = "codes"
SIDES = ("queries", "database")
KEYS = ("run", "n_bits")  # that a path may contain in braces
POSITIONS = {"queries": "query_positions", "database": "database_positions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFiles:
    """Paths with ``{run}`` and ``{n_bits}``: ``files`` with both arrays, or a file for each side.

    Relative paths start from the protocol's folder.  With ``signed``, a bit is set where a number
    is above 0.
    """

    files: str = ""
    queries: str = ""
    database: str = ""
    signed: bool = False

    @classmethod
    def of(cls, method: Method) -> CodeFiles:
        """The files that a method's parameters name, checked."""
        where = f"method {method.label}"
        found = read_table(cls, method.parameters, where)
        given = [name for name in ("files", *SIDES) if getattr(found, name)]
        if given not in (["files"], list(SIDES)):
            raise InputError(
                f"{where}: parameters must name either files, such as "
                '"codes/{run}-{n_bits}.npz", or both queries and database.'
            )
        for name in given:
            unknown = _keys(getattr(found, name), f"{where}: {name}") - set(KEYS)
            if unknown:
                raise InputError(
                    f"{where}: {name} may contain {{run}} and {{n_bits}}, got {{{min(unknown)}}}."
                )
        return found

    def path(self, side: str, run: int, n_bits: int | None) -> str:
        """The file of one side."""
        return (self.files or str(getattr(self, side))).format(run=run, n_bits=n_bits)

    def has(self, key: str) -> bool:
        """Whether the path of each side depends on a key."""
        return all(key in _keys(self.files or getattr(self, side), "") for side in SIDES)


def check_ready(protocol: Protocol, method: Method) -> None:
    """Raise InputError unless the files can differ wherever the codes must."""
    where, files = f"method {method.label}", CodeFiles.of(method)
    if method.grid:
        raise InputError(f"{where}: ready-made codes have no grid.")
    if len(method.n_bits or protocol.n_bits) > 1 and not files.has("n_bits"):
        raise InputError(f"{where}: there are several lengths, so each path needs {{n_bits}}.")
    if protocol.runs > 1 and not protocol.split.repeated and not files.has("run"):
        raise InputError(
            f"{where}: each run has its own split, so each path needs {{run}}; "
            "with split.repeated = true, the codes may be the same."
        )


def read_ready(
    protocol: Protocol, cell: Cell, data: RunData
) -> tuple[Codes, Codes, dict[str, Any]]:
    """The codes of queries and database, and the parameters with the checksums of the files."""
    files = CodeFiles.of(cell.method)
    found, sums = {}, {}
    for side in SIDES:
        path = files.path(side, cell.run, cell.n_bits)
        place = existing_file(Path(protocol.base) / path)
        array = side if files.files else None
        found[side] = read_codes(place, n_bits=cell.n_bits, signed=files.signed, array=array)
        _check_rows(place, side, found[side], getattr(data, side), cell)
        sums[path] = checksum(place)
    return found["queries"], found["database"], cell.method.parameters | {"sha256": sums}


def check_unchanged(protocol: Protocol, cell: Cell, folder: Path) -> None:
    """Raise FileError if a file of codes is no longer the one that the cell's record is about."""
    if cell.method.name != CODES:
        return
    for path, known in Record.load(cell.place(folder)).parameters["sha256"].items():
        place = Path(protocol.base) / path
        if place.exists() and checksum(place) != known:
            raise FileError(
                f"{place}: has changed since the record of {cell.name} in {folder} was made; "
                "give another folder (--out)."
            )


def _keys(path: str, where: str) -> set[str]:
    """The keys in braces."""
    try:
        return {key for _, key, _, _ in Formatter().parse(path) if key is not None}
    except ValueError as error:
        raise InputError(f"{where}: {path!r} has a brace without its pair ({error}).") from None


def _check_rows(place: Path, side: str, codes: Codes, items: SplitSet, cell: Cell) -> None:
    """Raise FileError unless there is a code for each item, in the order of the split."""
    if codes.n_bits != cell.n_bits:
        raise FileError(f"{place}: {side} has codes of {codes.n_bits} bits, not {cell.n_bits}.")
    if len(codes) != len(items):
        raise FileError(
            f"{place}: {side} has {len(codes):,} codes, but run {cell.run} has "
            f"{len(items):,} items there; `bittern data split` writes the items to encode."
        )
    name = POSITIONS[side]
    if name not in array_names(place):
        return
    positions = stored_array(place, name).load()
    if not np.array_equal(positions, items.positions):
        raise FileError(f"{place}: {name} are not those of run {cell.run}; encode its own split.")
