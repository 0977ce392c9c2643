"""Record: what one cell of an experiment found, with all that is needed to trust it."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import atomic_write, existing_file, reading
from bittern.metrics import Curve
from bittern.profile import TieProfile

__all__ = ["Example", "Record", "Value"]

FORMAT = 1
SIDES = ("recall", "precision", "radius")  # of a curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One metric: its mean, and what the mean is made of.

    ``per_query`` is None for metrics that have one value for all queries; NaN where a query has
    none.  ``spread`` is the pessimistic and the optimistic mean, None where ties have no order.
    """

    mean: float
    undefined: int = 0
    spread: tuple[float, float] | None = None
    per_query: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A query and its nearest items, as positions in the dataset; ties by position."""

    query: int
    items: tuple[int, ...]
    distances: tuple[float, ...]
    relevant: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """What a method at a length found in a run.

    ``profile`` is None for rankings by real distances, whose every tie is of size one; ``curves``
    are there for both.  ``seconds`` has tune, fit, encode and evaluate; ``peak_memory`` is the
    process's own in bytes.  ``tuning`` lists what was tried on validation data.
    """

    method: str
    n_bits: int | None  # None without codes
    run: int
    fingerprint: str  # of all that can change the values
    parameters: dict[str, Any]
    values: dict[str, Value]
    profile: TieProfile | None = None
    curves: dict[str, Curve] = field(default_factory=dict)  # micro, interpolated
    surface: dict[str, Any] | None = None  # of hash tables: K, L and what they retrieve
    query_positions: tuple[int, ...] = ()
    query_labels: tuple[int, ...] | None = None
    n_relevant: tuple[int, ...] = ()
    examples: tuple[Example, ...] = ()
    tuning: tuple[dict[str, Any], ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int = 0
    split: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write compressed JSON, whole or not at all."""
        text = json.dumps(_plain(self), allow_nan=False, ensure_ascii=False)
        with (
            atomic_write(path) as file,
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
        ):
            packed.write(text.encode())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Record:
        """Read what :meth:`save` wrote."""
        source = existing_file(path)
        with reading(source, "record"):
            plain = json.loads(gzip.decompress(source.read_bytes()))
            if plain.get("format") != FORMAT:
                raise FileError(f"{source}: not a record of format {FORMAT}.")
            return _record(plain)

    def same_values(self, other: Record) -> bool:
        """Whether all that was found is equal, to the last bit."""
        mine, theirs = (_found(record) for record in (self, other))
        return json.dumps(mine) == json.dumps(theirs)

    def per_query(self, metric: str) -> NDArray[np.float64] | None:
        """A metric's values, NaN where undefined; None if it has one value for all."""
        values = self.values[metric].per_query
        return None if values is None else np.array(values)


def _plain(record: Record) -> dict[str, Any]:
    """The record as JSON has it: undefined is null."""
    plain = {
        name: getattr(record, name)
        for name in Record.__dataclass_fields__
        if name not in ("values", "profile", "curves", "examples")
    }
    return _nulls(
        {"format": FORMAT}
        | plain
        | {
            "values": {name: asdict(value) for name, value in record.values.items()},
            "profile": _plain_profile(record.profile),
            "curves": {
                name: {
                    side: None if getattr(curve, side) is None else getattr(curve, side).tolist()
                    for side in SIDES
                }
                for name, curve in record.curves.items()
            },
            "examples": [asdict(example) for example in record.examples],
        }
    )


def _found(record: Record) -> dict[str, Any]:
    """All of a record that the same protocol must find again."""
    apart = ("seconds", "peak_memory", "versions", "protocol", "format")
    found = {name: value for name, value in _plain(record).items() if name not in apart}
    words = ("notes", "data")  # where it was read from; earlier records lack the other
    found["split"] = {key: one for key, one in found["split"].items() if key not in words}
    return found


def _nulls(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, Mapping):
        return {key: _nulls(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nulls(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _plain_profile(profile: TieProfile | None) -> dict[str, Any] | None:
    if profile is None:
        return None
    return {
        "counts": profile.counts.tolist(),
        "gains": profile.gains.tolist(),
        "unretrieved": profile.unretrieved.tolist(),
    }


def _record(plain: dict[str, Any]) -> Record:
    """The inverse of :func:`_plain`."""
    fields = {name: plain[name] for name in Record.__dataclass_fields__}
    for name in ("query_positions", "query_labels", "n_relevant", "tuning"):
        fields[name] = None if fields[name] is None else tuple(fields[name])
    fields["values"] = {name: _value(value) for name, value in plain["values"].items()}
    fields["curves"] = {name: _curve(curve) for name, curve in plain["curves"].items()}
    fields["examples"] = tuple(_example(example) for example in plain["examples"])
    fields["profile"] = None if plain["profile"] is None else _profile(plain["profile"])
    return Record(**fields)


def _curve(plain: dict[str, Any]) -> Curve:
    recall, precision = _doubles(plain["recall"]), _doubles(plain["precision"])
    return Curve(recall, precision, None if plain["radius"] is None else _doubles(plain["radius"]))


def _example(plain: dict[str, Any]) -> Example:
    listed = {name: tuple(plain[name]) for name in ("items", "distances", "relevant")}
    return Example(query=plain["query"], **listed)


def _profile(plain: dict[str, Any]) -> TieProfile:
    return TieProfile(
        counts=np.array(plain["counts"], np.uint32),
        gains=np.array(plain["gains"], np.int64),
        unretrieved=np.array(plain["unretrieved"], np.int64),
    )


def _value(plain: dict[str, Any]) -> Value:
    spread, per_query = plain["spread"], plain["per_query"]
    return Value(
        mean=_number(plain["mean"]),
        undefined=plain["undefined"],
        spread=None if spread is None else (_number(spread[0]), _number(spread[1])),
        per_query=None if per_query is None else tuple(map(_number, per_query)),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _doubles(values: list[float | None]) -> NDArray[np.float64]:
    return np.array([_number(value) for value in values], dtype=np.float64)
