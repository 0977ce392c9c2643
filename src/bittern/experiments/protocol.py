"""Protocol: an experiment written down before it is run."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bittern.checks import check_count
from bittern.codes import MAX_BITS
from bittern.data import DATASETS, SPLITS
from bittern.errors import InputError
from bittern.experiments.truth import Truth, read_truth
from bittern.hashing import HASHERS
from bittern.io.files import existing_file, reading
from bittern.io.records import check_keys, read_table
from bittern.metrics import parse
from bittern.registry import Registry

__all__ = ["EUCLIDEAN", "EXACT", "Method", "Protocol", "fingerprint_of"]

EXACT = "exact"  # the ranking by real distances: a ceiling without codes
EUCLIDEAN = "euclidean"
DISTANCES = (EUCLIDEAN, "cosine", "manhattan")  # of that ranking
PARADIGMS = Registry("paradigm", dict.fromkeys(("ranking", "tables", "evidence")))
TESTS = Registry("test", dict.fromkeys(("wilcoxon", "t-test", "randomisation")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A dataset, and the preprocessing that is learned on each run's training rows."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)  # of its reader
    modality: str | None = None  # its first one otherwise
    rows: int | None = None  # only so many of the first rows
    steps: tuple[str, ...] | None = None  # those that the papers state otherwise

    def __post_init__(self) -> None:
        DATASETS[self.name]
        if self.rows is not None:
            check_count(self.rows, "dataset.rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan:
    """A split by name with its sizes; ``repeated`` uses that of run 0 in every run."""

    name: str
    sizes: dict[str, Any] = field(default_factory=dict)
    repeated: bool = False

    def __post_init__(self) -> None:
        known = list(inspect.signature(SPLITS[self.name]).parameters)[2:]
        check_keys(self.sizes, dict.fromkeys(known), f"split.sizes ({self.name})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A hash function, or a ranking without one, as a row of the table.

    ``parameters`` are those of its constructor.  Each of ``grid`` has a list of values: every
    combination is tried on validation data, per length and run.  ``learns_from`` says whether its
    training sees grades or only yes and no.
    """

    name: str
    label: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, Any] = field(default_factory=dict)
    learns_from: str = "grades"
    n_bits: tuple[int, ...] = ()  # other lengths than the protocol's

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name)
        if self.learns_from not in ("grades", "yes-or-no"):
            raise InputError(
                f"method {self.label}: learns_from is 'grades' or 'yes-or-no', "
                f"got {self.learns_from!r}."
            )
        for name, values in self.grid.items():
            if not isinstance(values, list) or not values:
                raise InputError(
                    f"method {self.label}: grid.{name} must be a list of values, got {values!r}."
                )
        if both := sorted(self.grid.keys() & self.parameters.keys()):
            raise InputError(f"method {self.label}: {both[0]} is both in parameters and in grid.")

    @property
    def points(self) -> list[dict[str, Any]]:
        """Every combination of the grid, with the parameters; one where there is no grid."""
        choices = itertools.product(*self.grid.values())
        return [self.parameters | dict(zip(self.grid, one, strict=True)) for one in choices]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGrid:
    """Settings of hash tables: every K with every L."""

    bits_per_table: tuple[int, ...]
    n_tables: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("bits_per_table", "n_tables"):
            _check_different(getattr(self, name), f"tables.{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """Which paired tests, at which level; against ``baseline``, or between the best and all."""

    tests: tuple[str, ...] = ("wilcoxon", "t-test", "randomisation")
    alpha: float = 0.05
    baseline: str | None = None

    def __post_init__(self) -> None:
        for name in self.tests:
            TESTS[name]
        _check_different(self.tests, "significance.tests")
        if not 0 < self.alpha < 1:
            raise InputError(f"significance.alpha must lie between 0 and 1, got {self.alpha}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Everything that can change a number in the report, and four sentences that cannot.

    The first metric is the main one: grids are searched and methods compared by it.
    """

    title: str
    dataset: Source
    split: SplitPlan
    method: tuple[Method, ...]
    truth: dict[str, Any] = field(default_factory=lambda: {"kind": "classes"})
    n_bits: tuple[int, ...] = ()
    reproduces: str = ""
    differs: str = ""
    takes: str = ""
    paradigm: str = "ranking"
    runs: int = 10
    random_state: int = 0
    metrics: tuple[str, ...] = ("ap", "ndcg", "precision@100", "auprc")
    tables: TableGrid | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    significance: Comparing = field(default_factory=Comparing)

    def __post_init__(self) -> None:
        PARADIGMS[self.paradigm]
        check_count(self.runs, "runs")
        check_count(self.random_state, "random_state", least=0)
        self._check_metrics()
        self._check_methods()
        read_truth(self.truth)
        if (self.paradigm == "tables") != (self.tables is not None):
            raise InputError("paradigm 'tables' and the table [tables] with K and L go together.")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Protocol:
        """Read a TOML file; whatever is wrong in it is found here, before any work."""
        source = existing_file(path)
        with reading(source, "TOML file"):
            table = tomllib.loads(source.read_text(encoding="utf-8"))
        try:
            return Protocol.of(table)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        except KeyError as error:  # an unknown name
            raise type(error)(f"{source}: {error}") from None

    @staticmethod
    def of(table: Mapping[str, Any]) -> Protocol:
        """The protocol that a table describes."""
        check_keys(table, {name: None for name in Protocol.__dataclass_fields__}, "protocol")
        _check_plain(table, "protocol")
        kinds = {
            "dataset": Source,
            "split": SplitPlan,
            "tables": TableGrid,
            "significance": Comparing,
        }
        made: dict[str, Any] = {
            key: read_table(kind, _as_table(table[key], key), key)
            for key, kind in kinds.items()
            if key in table
        }
        made["method"] = tuple(
            read_table(Method, _as_table(one, "method"), f"method {position}")
            for position, one in enumerate(_as_list(table.get("method", [])), start=1)
        )
        if not made["method"]:
            raise InputError("protocol: method is missing; begin each with a line [[method]].")
        return _assembled(table, made)

    @property
    def ground_truth(self) -> Truth:
        """What makes an item relevant."""
        return read_truth(self.truth)

    @property
    def main_metric(self) -> str:
        """The metric by which methods are compared."""
        return self.metrics[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """The methods' labels, in order."""
        return tuple(method.label for method in self.method)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them; :meth:`of` takes them back."""
        return json.loads(json.dumps(_without_nothing(asdict(self))))

    @property
    def fingerprint(self) -> str:
        """Short hash of all that can change a number."""
        told = ("title", "reproduces", "differs", "takes")
        return fingerprint_of({k: v for k, v in self.to_dict().items() if k not in told})

    def _check_metrics(self) -> None:
        if not self.metrics:
            raise InputError("metrics must name at least one, such as 'ap'.")
        _check_different(self.metrics, "metrics")
        for name in self.metrics:
            if parse(name).tie_rule == "trec":
                raise InputError(f"metrics: {name} is for runs read from TREC files.")

    def _check_methods(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise InputError(f"two methods are called {twice!r}; give one of them a label.")
        baseline = self.significance.baseline
        if baseline is not None:
            Registry("method", dict.fromkeys(self.labels))[baseline]
        if self.paradigm == "evidence":
            from bittern.experiments.evidence.checks import check_evidence

            check_evidence(self)
            return
        if self.evidence:
            raise InputError("the table [evidence] is for paradigm = 'evidence'.")
        _check_lengths(self.n_bits, "n_bits")
        for method in self.method:
            _check_hasher(method)
            _check_lengths(method.n_bits, f"method {method.label}: n_bits")
            if method.name != EXACT and not (method.n_bits or self.n_bits):
                raise InputError(f"method {method.label}: n_bits is missing, such as [16, 32].")


def fingerprint_of(value: Any) -> str:
    """Short hash of plain values."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _assembled(table: Mapping[str, Any], made: dict[str, Any]) -> Protocol:
    """The protocol from its plain keys and from the tables that were read."""
    rest = {key: value for key, value in table.items() if key not in made}
    for key in ("dataset", "split", "title"):
        if key not in table:
            raise InputError(f"protocol: {key} is missing.")
    return read_table(Protocol, rest | made, "protocol")


def _check_hasher(method: Method) -> None:
    """The name and the parameters of a method, as its class has them."""
    where = f"method {method.label}"
    if method.name == EXACT:
        if method.grid or method.n_bits:
            raise InputError(f"{where}: a ranking without codes has neither grid nor n_bits.")
        Registry("distance", dict.fromkeys(DISTANCES))[method.parameters.get("metric", EUCLIDEAN)]
        known: list[str] = ["metric"]
    else:
        known = list(inspect.signature(HASHERS[method.name]).parameters)
    for given in (method.parameters, method.grid):
        check_keys(given, dict.fromkeys(k for k in known if k != "n_bits"), where)


def _check_lengths(lengths: tuple[int, ...], where: str) -> None:
    _check_different(lengths, where)
    for n_bits in lengths:
        check_count(n_bits, where, most=MAX_BITS)


def _check_different(values: Sequence[Any], where: str) -> None:
    """Refuse a value that is named twice: it would be counted twice."""
    for i, value in enumerate(values):
        if value in values[:i]:
            raise InputError(f"{where}: {value} is named twice.")


def _check_plain(value: Any, where: str) -> None:
    """Refuse what JSON has no word for: dates, infinities, letters that cannot be written."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            _check_plain(one, f"{where}: {key}")
    elif isinstance(value, (list, tuple)):
        for one in value:
            _check_plain(one, where)
    elif isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InputError(f"{where}: has a letter that cannot be written, got {value!r}.")
    elif not isinstance(value, (bool, int, float)) or not math.isfinite(value):
        raise InputError(f"{where}: must be texts, finite numbers, true or false, got {value!r}.")


def _without_nothing(value: Any) -> Any:
    """The same without keys that have no value: TOML has no word for it."""
    if isinstance(value, dict):
        return {k: _without_nothing(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_without_nothing(one) for one in value]
    return value


def _as_table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a table, got {value!r}.")
    return value


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
