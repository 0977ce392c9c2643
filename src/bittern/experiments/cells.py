"""Cells: method × length × run, each with a fingerprint of what can change its values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bittern.errors import InputError
from bittern.experiments.protocol import Method, Protocol
from bittern.io.cache import fingerprint_of
from bittern.metrics import parse
from bittern.metrics.names import DATABASE_ORDER
from bittern.registry import Registry

KEYS = ("method", "bits", "run")


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement of an experiment."""

    method: Method
    n_bits: int | None  # None without codes
    run: int
    fingerprint: str

    @property
    def name(self) -> str:
        """The name used in messages, such as ``itq, 32 bits, run 0``."""
        bits = "" if self.n_bits is None else f", {self.n_bits} bits"
        return f"{self.method.label}{bits}, run {self.run}"

    def place(self, folder: Path) -> Path:
        """The file of its record in the folder of an experiment."""
        words = "".join(c if c.isalnum() else "-" for c in self.method.label)[:40]
        bits = "" if self.n_bits is None else f"-{self.n_bits}"
        return folder / "cells" / f"{words}{bits}-{self.run}-{self.fingerprint}.json.gz"

    def random_state(self, protocol: Protocol) -> int:
        """Seed of the hasher; the same at all lengths, so that longer codes extend shorter ones."""
        text = f"{protocol.random_state} {self.run} {self.method.label}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1


def cells_of(protocol: Protocol) -> list[Cell]:
    """All cells, run by run, so that neighbours need the same data."""
    return [
        Cell(method, n_bits, run, _fingerprint(protocol, method, n_bits, run))
        for run in range(protocol.runs)
        for method in protocol.method
        for n_bits in protocol.kind.lengths(protocol, method)
    ]


def select_cells(cells: list[Cell], wanted: Sequence[str]) -> list[Cell]:
    """The cells that match every condition: ``method=itq,lsh``, ``bits=32``, ``run=0``."""
    selected = cells
    for condition in wanted:
        key, _, listed = condition.partition("=")
        if key not in KEYS or not listed:
            raise InputError(
                "--only takes KEY=VALUE, for example method=itq, bits=32 or run=0,1; "
                f"got {condition!r}."
            )
        texts = (_text(cell, key) for cell in cells)
        known = Registry(key, dict.fromkeys(text for text in texts if text is not None))
        is_label = listed in known  # a label may contain commas
        values = [listed] if is_label else [value.strip() for value in listed.split(",")]
        for value in values:
            known[value]
        selected = [cell for cell in selected if _text(cell, key) in values]
    if wanted and not selected:
        raise InputError(f"--only: no cell matches all of {', '.join(wanted)}.")
    return selected


def _text(cell: Cell, key: str) -> str | None:
    value = {"method": cell.method.label, "bits": cell.n_bits, "run": cell.run}[key]
    return None if value is None else str(value)


def _fingerprint(protocol: Protocol, method: Method, n_bits: int | None, run: int) -> str:
    """Hash of what this cell depends on; not of other methods, lengths or the number of runs.

    Metrics are computed from the stored profile, so they matter only without codes; the main metric
    matters if it decides a grid, and those in database order need the codes, which are not stored.
    """
    whole = protocol.to_dict()
    common = ["dataset", "truth", "split", "paradigm", "random_state", "tables", "evidence"]
    if protocol.kind.table is not None:
        common.append(protocol.kind.table)
    own = next(one for one in whole["method"] if one["label"] == method.label)
    own = {key: value for key, value in own.items() if key != "n_bits"}
    kept = {key: whole.get(key) for key in common}
    if n_bits is None:
        kept["metrics"] = whole["metrics"]
    elif method.grid:
        kept["metrics"] = [protocol.main_metric]
    if n_bits is not None and (ordered := _in_database_order(protocol)):
        kept["in_database_order"] = ordered
    return fingerprint_of(kept | {"method": own, "n_bits": n_bits, "run": run})


def _in_database_order(protocol: Protocol) -> list[str]:
    return [name for name in protocol.metrics if parse(name).tie_rule == DATABASE_ORDER]
