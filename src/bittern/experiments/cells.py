"""Cells and trials, each with a fingerprint of what can change its values.

A cell is method × length × run.  A trial is a point of a method's grid, on training rows alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bittern.errors import InputError
from bittern.experiments.protocol import Method, Protocol
from bittern.experiments.search import Choice, draw_points, point_text
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
    choice: Choice | None = field(default=None, compare=False)  # of the search before it

    @property
    def name(self) -> str:
        """The name used in messages, such as ``itq, 32 bits, run 0``."""
        return self._place_text

    @property
    def _place_text(self) -> str:
        bits = "" if self.n_bits is None else f", {self.n_bits} bits"
        return f"{self.method.label}{bits}, run {self.run}"

    def place(self, folder: Path) -> Path:
        """The file of its record in the folder of an experiment."""
        return folder / "cells" / self._file

    @property
    def _file(self) -> str:
        words = "".join(c if c.isalnum() else "-" for c in self.method.label)[:40]
        bits = "" if self.n_bits is None else f"-{self.n_bits}"
        return f"{words}{bits}-{self.run}-{self.fingerprint}.json.gz"

    def random_state(self, protocol: Protocol) -> int:
        """Seed of the hasher; the same at all lengths, so that longer codes extend shorter ones."""
        return _seed(f"{protocol.random_state} {self.run} {self.method.label}")

    @property
    def needs_search(self) -> bool:
        """Whether its parameters are chosen by trials, if the protocol has a search."""
        return bool(self.method.grid)


@dataclass(frozen=True, slots=True)
class Trial(Cell):
    """One point of a method's grid at a length, fitted and scored on training rows of a run."""

    point: dict[str, Any] = field(default_factory=dict)  # of the grid's parameters
    repeat: int = 0

    @property
    def name(self) -> str:
        """The name used in messages, such as ``sdh, 32 bits, run 0, n_anchors = 50``."""
        again = f", repeat {self.repeat}" if self.repeat else ""
        return f"{self._place_text}, {point_text(self.point)}{again}"

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters of the method at this point."""
        return self.method.parameters | self.point

    def place(self, folder: Path) -> Path:
        """The file of its record in the folder of an experiment."""
        return folder / "trials" / self._file

    def random_state(self, protocol: Protocol) -> int:
        """Seed of the hasher: that of the cell, and another one in each further repeat."""
        again = f" {self.repeat}" if self.repeat else ""
        return _seed(f"{protocol.random_state} {self.run} {self.method.label}{again}")

    def held_out_seed(self, protocol: Protocol) -> int:
        """Seed of the division of the training rows; the same for every method and point."""
        return _seed(f"{protocol.random_state} {self.run} held out {self.repeat}")


def cells_of(protocol: Protocol) -> list[Cell]:
    """All cells, run by run, so that neighbours need the same data."""
    return [
        Cell(method, n_bits, run, _fingerprint(protocol, method, n_bits, run))
        for run in range(protocol.runs)
        for method in protocol.method
        for n_bits in protocol.kind.lengths(protocol, method)
    ]


def trials_of(protocol: Protocol, cells: Sequence[Cell] | None = None) -> list[Trial]:
    """The trials of a protocol's search, run by run; only those that ``cells`` need, if given.

    Every method has the same points at all its lengths.
    """
    search = protocol.search
    if search is None:
        return []
    needed = cells_of(protocol) if cells is None else cells
    places = {(cell.method.label, cell.n_bits): cell for cell in needed if cell.needs_search}
    methods = {cell.method.label: cell.method for cell in places.values()}
    seed = protocol.random_state
    points = {label: draw_points(m.grid, search.points, seed) for label, m in methods.items()}
    depends_on = {label: _trial_basis(protocol, m) for label, m in methods.items()}
    return [
        _trial(cell, point, run, repeat, depends_on[cell.method.label])
        for run in search.runs
        for repeat in range(search.repeats)
        for cell in places.values()
        for point in points[cell.method.label]
    ]


def select_cells(cells: list[Cell], wanted: Sequence[str]) -> list[Cell]:
    """The cells that match: ``method=itq,lsh`` and ``bits=32``; values of one key add up."""
    accepted: dict[str, set[str]] = {}
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
        accepted.setdefault(key, set()).update(values)
    selected = [c for c in cells if all(_text(c, key) in accepted[key] for key in accepted)]
    if wanted and not selected:
        raise InputError(f"--only: no cell matches all of {', '.join(wanted)}.")
    return selected


def _text(cell: Cell, key: str) -> str | None:
    value = {"method": cell.method.label, "bits": cell.n_bits, "run": cell.run}[key]
    return None if value is None else str(value)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1


def _fingerprint(protocol: Protocol, method: Method, n_bits: int | None, run: int) -> str:
    """Hash of what this cell depends on; not of other methods, lengths or the number of runs.

    Metrics are computed from the stored profile, so they matter only without codes; the metric that
    decides a grid matters, with the settings of the search; and metrics in database order need the
    codes, which are not stored.
    """
    kept = _common(protocol, method)
    if n_bits is None:
        kept["metrics"] = list(protocol.metrics)
    elif method.grid:
        kept["metrics"] = [protocol.search_metric]
        if protocol.search is not None:
            kept["search"] = protocol.to_dict()["search"]
    if n_bits is not None and (ordered := _in_database_order(protocol)):
        kept["in_database_order"] = ordered
    return fingerprint_of(kept | {"n_bits": n_bits, "run": run})


def _trial_basis(protocol: Protocol, method: Method) -> dict[str, Any]:
    """What all trials of a method depend on; not the rest of its grid, nor the budget."""
    search = protocol.search
    assert search is not None
    kept = _common(protocol, method)
    kept["method"] = {key: value for key, value in kept["method"].items() if key != "grid"}
    kept["trial"] = {
        "held_out": search.held_out,
        "database": search.database,
        "metric": protocol.search_metric,
    }
    return kept


def _trial(
    cell: Cell, point: dict[str, Any], run: int, repeat: int, depends_on: dict[str, Any]
) -> Trial:
    trial = depends_on["trial"] | {"point": point, "repeat": repeat}
    own = {"trial": trial, "n_bits": cell.n_bits, "run": run}
    fingerprint = fingerprint_of(depends_on | own)
    return Trial(cell.method, cell.n_bits, run, fingerprint, point=point, repeat=repeat)


def _common(protocol: Protocol, method: Method) -> dict[str, Any]:
    """What every measurement of a method depends on, in plain values."""
    whole = protocol.to_dict()
    whole["dataset"].pop("path", None)  # a place, which may change
    common = ["dataset", "truth", "split", "paradigm", "random_state", "tables", "evidence"]
    if protocol.kind.table is not None:
        common.append(protocol.kind.table)
    own = next(one for one in whole["method"] if one["label"] == method.label)
    own = {key: value for key, value in own.items() if key != "n_bits"}
    return {key: whole.get(key) for key in common} | {"method": own}


def _in_database_order(protocol: Protocol) -> list[str]:
    return [name for name in protocol.metrics if parse(name).tie_rule == DATABASE_ORDER]
