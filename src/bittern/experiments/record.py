"""Record: the values of one cell or trial, with everything needed to trust them."""

from __future__ import annotations

import gzip
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write, existing_file, reading
from bittern.io.record_schema import check_plain
from bittern.metrics import Curve, Score, evaluate, interpolated_pr_curve, parse, pr_curve
from bittern.metrics.scores import with_nulls
from bittern.profile import TieProfile

FORMAT, READABLE = 2, (1, 2)  # format 1 wrote counts as lists of lists of lists of numbers
CURVES = "training_curves"  # absent if the method has none
TASKS = "tasks"  # absent if the paradigm has one task
SIDES = ("recall", "precision", "radius")  # of a curve
LARGEST = 1 << 32  # bytes of a record as JSON
MAX_POINTS = 257  # of a curve over real distances: no figure shows more
# What a new run of the same protocol must reproduce: no costs, versions or sentences.
NOT_COMPARED = ("seconds", "peak_memory", "versions", "protocol", "format")
SPLIT_COMPARED = ("name", "fingerprint", "sizes", "leaks", "class_names")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One metric: its mean, and what the mean is made of.

    ``per_query`` is NaN for an undefined query, and None for metrics with one value for all
    queries.  ``spread`` is the pessimistic and the optimistic mean; None if ties do not matter.
    """

    mean: float
    undefined: int = 0
    spread: tuple[float, float] | None = None
    per_query: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A query and its nearest items, as positions in the dataset; ties are in order of position."""

    query: int
    items: tuple[int, ...]
    distances: tuple[float, ...]
    relevant: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskResult:
    """What one of several tasks found; its queries are those of the record."""

    values: dict[str, Value]
    profile: TieProfile | None = None
    curves: dict[str, Curve] = field(default_factory=dict)
    n_relevant: tuple[int, ...] = ()
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """Results of one method at one length in one run.

    ``profile`` is None for rankings by real distances, which have hardly any ties.
    ``seconds`` has tune, fit, encode and evaluate; ``peak_memory`` is that of the process, in
    bytes.  ``tuning`` lists what was tried on validation data.  ``training_curves`` are metrics
    after each epoch, exact and relaxed, on training rows and on held-out rows.  ``tasks`` has the
    results of each task by its name, if there are several; ``values`` are then means over the main
    tasks.
    """

    method: str
    n_bits: int | None  # None without codes
    run: int
    fingerprint: str  # of everything that can change the values
    parameters: dict[str, Any]
    values: dict[str, Value]
    profile: TieProfile | None = None
    curves: dict[str, Curve] = field(default_factory=dict)  # micro, interpolated
    surface: dict[str, Any] | None = None  # hash tables: K, L and what they retrieve
    query_positions: tuple[int, ...] = ()
    query_labels: tuple[int, ...] | None = None
    n_relevant: tuple[int, ...] = ()
    examples: tuple[Example, ...] = ()
    tuning: tuple[dict[str, Any], ...] = ()
    tasks: dict[str, TaskResult] = field(default_factory=dict)
    training_curves: dict[str, tuple[float, ...]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int = 0
    split: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write compressed JSON, completely or not at all."""
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
            plain = json.loads(_unzipped(source))
            if not isinstance(plain, dict) or plain.get("format") not in READABLE:
                raise FileError(f"{source}: not a record of format {FORMAT}.")
            check_plain(plain)
            return _record(plain)

    def same_values(self, other: Record) -> bool:
        """Whether all results are equal, to the last bit; earlier records lack training curves."""
        mine, theirs = (_compared(record) for record in (self, other))
        shared = mine.keys() & theirs.keys()
        if (mine.keys() | theirs.keys()) - shared - {CURVES}:
            return False
        return all(json.dumps(mine[name]) == json.dumps(theirs[name]) for name in shared)

    def of_task(self, name: str) -> Record:
        """The same with the results of one task alone."""
        result = self.tasks[name]
        own = {one: getattr(result, one) for one in TaskResult.__dataclass_fields__}
        return replace(self, tasks={}, **own)

    def per_query(self, metric: str) -> Float64Array | None:
        """A metric's value for each query, NaN if undefined; None if it has one value for all."""
        values = self.values[metric].per_query
        return None if values is None else np.array(values)


def _unzipped(source: Path) -> bytes:
    """The content of a gzip file, whose checksum is verified; no more than a record can be."""
    content = bytearray()
    with gzip.open(source) as packed:
        while part := packed.read(1 << 20):  # more at once would be allocated at once
            content += part
            if len(content) > LARGEST:
                raise ValueError(f"it holds more than {LARGEST:,} bytes")
    return bytes(content)


def describe_profile(profile: TieProfile, metrics: Sequence[str]) -> dict[str, Any]:
    """The fields of a record that follow from a profile."""
    return {
        "values": values_of(profile, metrics),
        "curves": _curves(profile),
        "n_relevant": tuple(profile.n_relevant.tolist()),
    }


def values_of(profile: TieProfile, metrics: Sequence[str]) -> dict[str, Value]:
    """Value of each metric; a ranking by real distances does not have all of them."""
    return {
        name: Value(
            mean=score.mean,
            undefined=score.undefined,
            spread=score.spread,
            per_query=None if score.per_query is None else tuple(score.per_query.tolist()),
        )
        for name, score in _scores(profile, metrics)
    }


def mean_values(results: Sequence[TaskResult]) -> dict[str, Value]:
    """Each metric's mean over tasks with the same queries, query by query where it can be."""
    shared = [name for name in results[0].values if all(name in one.values for one in results)]
    return {name: _mean_value([one.values[name] for one in results]) for name in shared}


def _mean_value(values: Sequence[Value]) -> Value:
    """The mean; a query that is undefined in one task is undefined."""
    spreads = [value.spread for value in values if value.spread is not None]
    spread = tuple(np.mean(spreads, axis=0).tolist()) if len(spreads) == len(values) else None
    rows = [value.per_query for value in values if value.per_query is not None]
    if len(rows) < len(values):
        mean = float(np.mean([value.mean for value in values]))
        undefined = max(value.undefined for value in values)
        return Value(mean=mean, undefined=undefined, spread=spread)
    per_query = np.mean(rows, axis=0)
    defined = per_query[~np.isnan(per_query)]
    return Value(
        mean=float(defined.mean()) if len(defined) else np.nan,
        undefined=len(per_query) - len(defined),
        spread=spread,
        per_query=tuple(per_query.tolist()),
    )


def _scores(profile: TieProfile, metrics: Sequence[str]) -> Iterable[tuple[str, Score]]:
    for name in metrics:
        if profile.distances is not None and parse(name).radius is not None:
            continue  # a Hamming radius means nothing for real distances
        try:
            yield name, evaluate(profile, [name])[name]
        except InputError:
            if profile.distances is None:  # codes have every metric
                raise


def _curves(profile: TieProfile) -> dict[str, Curve]:
    """The interpolated curve, and the one over radii if the profile has them."""
    curves = {"interpolated": interpolated_pr_curve(profile)}
    if not profile.is_compact:
        curves["micro"] = _thinned(pr_curve(profile))
    return curves


def _thinned(curve: Curve) -> Curve:
    if len(curve) <= MAX_POINTS:
        return curve
    kept = np.unique(np.linspace(0, len(curve) - 1, MAX_POINTS).astype(np.intp))
    radius = None if curve.radius is None else curve.radius[kept]
    return Curve(curve.recall[kept], curve.precision[kept], radius)


def _plain(record: Record) -> dict[str, Any]:
    """The record as JSON has it; undefined is null."""
    apart = [*TaskResult.__dataclass_fields__, TASKS]
    if not record.training_curves:
        apart.append(CURVES)
    plain = {
        name: getattr(record, name) for name in Record.__dataclass_fields__ if name not in apart
    }
    tasks = {name: _plain_result(one) for name, one in record.tasks.items()}
    return with_nulls(
        {"format": FORMAT} | plain | _plain_result(record) | ({TASKS: tasks} if tasks else {})
    )


def _plain_result(found: Record | TaskResult) -> dict[str, Any]:
    """The fields that a record shares with the results of a task."""
    return {
        "values": {name: asdict(value) for name, value in found.values.items()},
        "profile": _plain_profile(found.profile),
        "curves": {
            name: {
                side: None if getattr(curve, side) is None else getattr(curve, side).tolist()
                for side in SIDES
            }
            for name, curve in found.curves.items()
        },
        "n_relevant": found.n_relevant,
        "examples": [asdict(example) for example in found.examples],
    }


def _compared(record: Record) -> dict[str, Any]:
    """Everything in a record that a new run of the same protocol must reproduce."""
    found = {name: value for name, value in _plain(record).items() if name not in NOT_COMPARED}
    split = found["split"]
    return found | {"split": {key: split[key] for key in SPLIT_COMPARED if key in split}}


def _plain_profile(profile: TieProfile | None) -> dict[str, Any] | None:
    if profile is None:
        return None
    return {
        "counts": _packed(profile.counts),
        "gains": profile.gains.tolist(),
        "unretrieved": profile.unretrieved.tolist(),
    }


def _record(plain: dict[str, Any]) -> Record:
    """The inverse of :func:`_plain`."""
    made = (CURVES, TASKS, *TaskResult.__dataclass_fields__)
    fields = {name: plain[name] for name in Record.__dataclass_fields__ if name not in made}
    for name in ("query_positions", "query_labels", "tuning"):
        fields[name] = None if fields[name] is None else tuple(fields[name])
    trained = plain.get(CURVES, {})
    fields[CURVES] = {name: tuple(map(_number, one)) for name, one in trained.items()}
    tasks = plain.get(TASKS, {})
    fields[TASKS] = {name: TaskResult(**_result(one)) for name, one in tasks.items()}
    return Record(**fields, **_result(plain))


def _result(plain: dict[str, Any]) -> dict[str, Any]:
    """The inverse of :func:`_plain_result`."""
    return {
        "values": {name: _value(value) for name, value in plain["values"].items()},
        "profile": None if plain["profile"] is None else _profile(plain["profile"]),
        "curves": {name: _curve(curve) for name, curve in plain["curves"].items()},
        "n_relevant": tuple(plain["n_relevant"]),
        "examples": tuple(_example(example) for example in plain["examples"]),
    }


def _curve(plain: dict[str, Any]) -> Curve:
    recall, precision = _floats(plain["recall"]), _floats(plain["precision"])
    return Curve(recall, precision, None if plain["radius"] is None else _floats(plain["radius"]))


def _example(plain: dict[str, Any]) -> Example:
    listed = {name: tuple(plain[name]) for name in ("items", "distances", "relevant")}
    return Example(query=plain["query"], **listed)


def _profile(plain: dict[str, Any]) -> TieProfile:
    return TieProfile(
        counts=_unpacked(plain["counts"]),
        gains=np.array(plain["gains"], np.int64),
        unretrieved=np.array(plain["unretrieved"], np.int64),
    )


def _packed(counts: NDArray[np.unsignedinteger[Any]]) -> dict[str, Any]:
    """Counts as 32-bit numbers in one text, because a million numbers in lists are slow to read."""
    numbers = counts.astype("<u4").tobytes()
    return {"shape": list(counts.shape), "base64": b64encode(numbers).decode()}


def _unpacked(plain: dict[str, Any] | list[Any]) -> NDArray[np.uint32]:
    if isinstance(plain, list):  # format 1
        return np.array(plain, np.uint32)
    numbers = np.frombuffer(b64decode(plain["base64"], validate=True), "<u4")
    return numbers.reshape(plain["shape"]).astype(np.uint32)


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


def _floats(values: list[float | None]) -> Float64Array:
    return np.array([_number(value) for value in values], dtype=np.float64)
