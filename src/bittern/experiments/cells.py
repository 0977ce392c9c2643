"""Cells: method × length × run, each with a fingerprint of all that can change its values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bittern.errors import InputError
from bittern.experiments.protocol import EXACT, Method, Protocol, fingerprint_of
from bittern.registry import Registry

__all__ = ["Cell", "cells_of", "only"]

KEYS = ("method", "bits", "run")


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement of an experiment."""

    method: Method
    n_bits: int | None  # None where there are no codes
    run: int
    fingerprint: str

    @property
    def name(self) -> str:
        """What a person calls it."""
        bits = "" if self.n_bits is None else f", {self.n_bits} bits"
        return f"{self.method.label}{bits}, run {self.run}"

    def place(self, folder: Path) -> Path:
        """Its file in the folder of an experiment."""
        words = "".join(c if c.isalnum() else "-" for c in self.method.label)[:40]
        bits = "" if self.n_bits is None else f"-{self.n_bits}"
        return folder / "cells" / f"{words}{bits}-{self.run}-{self.fingerprint}.json.gz"

    def random_state(self, protocol: Protocol) -> int:
        """The seed of its hasher; equal for all lengths, so that longer codes extend shorter."""
        text = f"{protocol.random_state} {self.run} {self.method.label}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1


def cells_of(protocol: Protocol) -> list[Cell]:
    """All cells, run after run, so that neighbours need the same data."""
    return [
        Cell(method, n_bits, run, _fingerprint(protocol, method, n_bits, run))
        for run in range(protocol.runs)
        for method in protocol.method
        for n_bits in _lengths(protocol, method)
    ]


def only(cells: list[Cell], wanted: Sequence[str]) -> list[Cell]:
    """Those that every wish allows: ``method=itq,lsh``, ``bits=32``, ``run=0``."""
    every = cells
    for wish in wanted:
        key, _, listed = wish.partition("=")
        if key not in KEYS or not listed:
            raise InputError(
                f"only: a wish is written like method=itq, bits=32 or run=0,1; got {wish!r}."
            )
        found = (_told(cell, key) for cell in every)
        known = Registry(key, dict.fromkeys(one for one in found if one is not None))
        is_whole = listed in known  # a label may have commas
        values = [listed] if is_whole else [value.strip() for value in listed.split(",")]
        for value in values:
            known[value]
        cells = [cell for cell in cells if _told(cell, key) in values]
    if wanted and not cells:
        raise InputError(f"only: no cell is all of {', '.join(wanted)}.")
    return cells


def _told(cell: Cell, key: str) -> str | None:
    told = {"method": cell.method.label, "bits": cell.n_bits, "run": cell.run}[key]
    return None if told is None else str(told)


def _lengths(protocol: Protocol, method: Method) -> Sequence[int | None]:
    if method.name == EXACT or protocol.paradigm == "evidence":
        return (None,)
    return method.n_bits or protocol.n_bits


def _fingerprint(protocol: Protocol, method: Method, n_bits: int | None, run: int) -> str:
    """Of what this cell depends on: other methods, lengths and the number of runs do not matter.

    Metrics follow from the stored profile, so they matter only where there is none, and the main
    one where a grid is searched by it.
    """
    whole = protocol.to_dict()
    common = ("dataset", "truth", "split", "paradigm", "random_state", "tables", "evidence")
    mine = next(one for one in whole["method"] if one["label"] == method.label)
    mine = {key: value for key, value in mine.items() if key != "n_bits"}
    kept = {key: whole.get(key) for key in common}
    if n_bits is None:
        kept["metrics"] = whole["metrics"]
    elif method.grid:
        kept["metrics"] = [protocol.main_metric]
    return fingerprint_of(kept | {"method": mine, "n_bits": n_bits, "run": run})
