"""Protocol: an experiment written down before it is run."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bittern.checks import check_count
from bittern.data import DATASETS, SPLITS
from bittern.errors import InputError
from bittern.experiments.changes import apply_changes
from bittern.experiments.crossmodal import CrossModal
from bittern.experiments.evidence import Evidence
from bittern.experiments.near_duplicates import NearDuplicates
from bittern.experiments.open_vocabulary import OpenVocabulary
from bittern.experiments.paradigm import Paradigm, check_different
from bittern.experiments.retrieval import CodeRanking, HashTables
from bittern.experiments.run_data import is_own
from bittern.experiments.search import SearchSettings, draw_points
from bittern.experiments.truth import Truth, read_truth
from bittern.io.cache import fingerprint_of
from bittern.io.protocol_files import TEXTS, extended, read_protocol_file
from bittern.io.protocol_files import find_protocol as find_protocol  # public here
from bittern.io.protocol_files import shipped as shipped
from bittern.io.toml import check_keys, read_table
from bittern.metrics import parse
from bittern.registry import Registry

PARADIGMS: Registry[Paradigm] = Registry(
    "paradigm",
    {
        "ranking": CodeRanking(),
        "tables": HashTables(),
        "evidence": Evidence(),
        "crossmodal": CrossModal(),
        "open-vocabulary": OpenVocabulary(),
        "near-duplicates": NearDuplicates(),
    },
)
TESTS = Registry("test", dict.fromkeys(("wilcoxon", "t-test", "randomisation")))
LEARNS_FROM = ("grades", "yes-or-no", "classes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSettings:
    """A dataset, and the preprocessing that is learned on each run's training rows.

    ``path`` is the file or folder of your own data (``arrays``, ``embeddings``, ``folder``); a
    relative one starts from the protocol's folder.
    """

    name: str
    path: str | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of its reader
    modality: str | None = None  # the first one by default
    rows: int | None = None  # use only the first rows
    steps: tuple[str, ...] | None = None  # those of the papers by default

    def __post_init__(self) -> None:
        DATASETS.find(self.name)
        if self.path is not None and not is_own(self.name):
            raise InputError(
                f"dataset.path: is for your own data, such as 'arrays'; {self.name} has its place "
                "in the data folder (--root, or BITTERN_DATA)."
            )
        if self.rows is not None:
            check_count(self.rows, "dataset.rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """A split by name with its sizes; ``repeated`` uses the split of run 0 in every run."""

    name: str
    sizes: dict[str, Any] = field(default_factory=dict)
    repeated: bool = False

    def __post_init__(self) -> None:
        known = list(inspect.signature(SPLITS[self.name]).parameters)[2:]
        check_keys(self.sizes, dict.fromkeys(known), f"split.sizes ({self.name})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A row of the table: a hash function, or a ranking without one.

    ``parameters`` go to its constructor.  ``grid`` lists values of more parameters: every
    combination is tried on validation data, for each length and run, or as the protocol's
    ``search`` says.  ``learns_from`` says whether training sees grades, only yes and no, or the
    class labels, whatever the ground truth is.
    """

    name: str
    label: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, Any] = field(default_factory=dict)
    learns_from: str = "grades"
    n_bits: tuple[int, ...] = ()  # instead of the protocol's

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name)
        if self.learns_from not in LEARNS_FROM:
            raise InputError(
                f"method {self.label}: learns_from must be {' or '.join(map(repr, LEARNS_FROM))}, "
                f"got {self.learns_from!r}."
            )
        for name, values in self.grid.items():
            if not isinstance(values, list) or not values:
                raise InputError(
                    f"method {self.label}: grid.{name} must be a list of values, got {values!r}."
                )
        if both := sorted(self.grid.keys() & self.parameters.keys()):
            raise InputError(f"method {self.label}: {both[0]} is in both parameters and grid.")

    @property
    def points(self) -> list[dict[str, Any]]:
        """The parameters with every combination of the grid."""
        if not self.grid:
            return [self.parameters]
        return [self.parameters | point for point in draw_points(self.grid, None, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignificanceSettings:
    """Paired tests, their level, and the baseline; the best method is the default baseline."""

    tests: tuple[str, ...] = ("wilcoxon", "t-test", "randomisation")
    alpha: float = 0.05
    baseline: str | None = None

    def __post_init__(self) -> None:
        for name in self.tests:
            TESTS[name]
        check_different(self.tests, "significance.tests")
        if not 0 < self.alpha < 1:
            raise InputError(f"significance.alpha must be between 0 and 1, got {self.alpha}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Everything that can change a number in the report, and four texts that cannot.

    The first metric is the main one: it decides grids and comparisons.  ``settings`` is the
    paradigm's own table, such as ``[tables]`` or ``[evidence]``.  With ``search``, grids are
    searched first, once for all runs; without, inside each cell.  ``base`` is the folder that paths
    in it start from; by default that of its file.
    """

    title: str  # of the table and the page
    dataset: DatasetSettings  # the table [dataset]
    split: SplitSettings  # the table [split]
    method: tuple[Method, ...]  # a table [[method]] for each row
    truth: dict[str, Any] = field(default_factory=lambda: {"kind": "classes"})  # its table
    n_bits: tuple[int, ...] = ()  # code lengths
    reproduces: str = ""  # which table or figure of a paper
    differs: str = ""  # from the paper
    takes: str = ""  # time, in words
    paradigm: str = "ranking"  # the kind of experiment
    runs: int = 10  # each with a split of its own
    random_state: int = 0  # seed of splits and methods
    metrics: tuple[str, ...] = ("ap", "ndcg", "precision@100", "auprc")  # the main one first
    settings: dict[str, Any] = field(default_factory=dict)
    significance: SignificanceSettings = field(default_factory=SignificanceSettings)  # its table
    search: SearchSettings | None = None  # its table
    base: str = field(default="", compare=False)  # folder that paths start from

    def __post_init__(self) -> None:
        kind = self.kind
        check_count(self.runs, "runs")
        check_count(self.random_state, "random_state", least=0)
        self._check_metrics()
        self._check_labels()
        kind.check(self)
        self._check_search()
        read_truth(self.truth)

    @staticmethod
    def load(path: str | os.PathLike[str], changes: Sequence[str] = ()) -> Protocol:
        """Read a TOML file, and check all of it before any work starts.

        ``changes`` replace values of the file, as in ``["runs=1", "dataset.name=nuswide"]``.
        """
        source, table = Path(path), read_protocol_file(path)
        try:
            whole = extended(table, source.parent)
            protocol = Protocol.of(apply_changes(whole, changes) if changes else whole)
            return replace(protocol, base=str((source.parent / protocol.base).resolve()))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        except KeyError as error:  # an unknown name
            raise type(error)(f"{source}: {error}") from None

    @staticmethod
    def of(table: Mapping[str, Any]) -> Protocol:
        """The protocol that a table describes; files that it names start from this folder."""
        table = extended(table, Path())
        own = {kind.table: None for kind in PARADIGMS.values() if kind.table}
        known = {name: None for name in Protocol.__dataclass_fields__ if name != "settings"}
        check_keys(table, known | own, "protocol")
        _check_plain(table, "protocol")
        for key in ("dataset", "split", "title"):
            if key not in table:
                raise InputError(f"protocol: {key} is missing.")
        records = {
            "dataset": DatasetSettings,
            "split": SplitSettings,
            "significance": SignificanceSettings,
            "search": SearchSettings,
        }
        made: dict[str, Any] = {
            key: read_table(kind, _as_table(table[key], key), key)
            for key, kind in records.items()
            if key in table
        }
        made["method"] = _read_methods(table)
        made["settings"] = _read_settings(table)
        rest = {key: one for key, one in table.items() if key not in made and key not in own}
        return read_table(Protocol, rest | made, "protocol")

    @property
    def kind(self) -> Paradigm:
        """The paradigm itself; ``paradigm`` is its name."""
        return PARADIGMS[self.paradigm]

    @property
    def ground_truth(self) -> Truth:
        """What makes an item relevant."""
        return read_truth(self.truth)

    @property
    def main_metric(self) -> str:
        """The metric that methods are compared by."""
        return self.metrics[0]

    @property
    def search_metric(self) -> str:
        """The metric that decides grids."""
        return self.main_metric if self.search is None else self.search.metric or self.main_metric

    @property
    def labels(self) -> tuple[str, ...]:
        """The methods' labels, in order."""
        return tuple(method.label for method in self.method)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them; :meth:`of` takes them back."""
        plain = asdict(self)
        settings = plain.pop("settings")
        plain.pop("base")  # a place on this machine
        plain["evidence"] = {}  # in every protocol so far, so that fingerprints stay the same
        if self.kind.table is not None:
            plain[self.kind.table] = settings
        return json.loads(json.dumps(_without_none(plain)))

    @property
    def fingerprint(self) -> str:
        """Short hash of everything that can change a number."""
        whole = self.to_dict()
        whole["dataset"].pop("path", None)  # a place, which may change
        return fingerprint_of({k: v for k, v in whole.items() if k not in TEXTS})

    def _check_metrics(self) -> None:
        if not self.metrics:
            raise InputError("metrics must name at least one metric, such as 'ap'.")
        check_different(self.metrics, "metrics")
        for name in self.metrics:
            if parse(name).tie_rule == "trec":
                raise InputError(f"metrics: {name} is for runs read from TREC files.")

    def _check_labels(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise InputError(f"two methods are called {twice!r}; give one of them a label.")
        if self.significance.baseline is not None:
            Registry("method", dict.fromkeys(self.labels))[self.significance.baseline]

    def _check_search(self) -> None:
        if self.search is None:
            return
        searched = [method for method in self.method if method.grid]
        if not searched:
            raise InputError("search: no method has a grid; leave out [search], or add a grid.")
        for method in searched:
            for name, values in method.grid.items():
                check_different(values, f"method {method.label}: grid.{name}")
        if beyond := [run for run in self.search.runs if run >= self.runs]:
            raise InputError(
                f"search.runs: there are {self.runs} runs, counted from 0, got {beyond[0]}."
            )


def _read_methods(table: Mapping[str, Any]) -> tuple[Method, ...]:
    listed = table.get("method", [])
    methods = tuple(
        read_table(Method, _as_table(one, "method"), f"method {position}")
        for position, one in enumerate(listed if isinstance(listed, list) else [listed], start=1)
    )
    if not methods:
        raise InputError("protocol: method is missing; start each one with a line [[method]].")
    return methods


def _read_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of the protocol's paradigm; those of other paradigms must be empty."""
    chosen, settings = table.get("paradigm", "ranking"), {}
    if isinstance(chosen, str):
        PARADIGMS[chosen]
    for name, kind in PARADIGMS.items():
        given = {} if kind.table is None else _as_table(table.get(kind.table, {}), kind.table)
        if name == chosen:
            settings = dict(given)
        elif given:
            raise InputError(f"the table [{kind.table}] is for paradigm = {name!r}.")
    return settings


def _check_plain(value: Any, where: str) -> None:
    """Raise InputError for what JSON cannot hold, such as dates and infinities."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            _check_plain(one, f"{where}: {key}")
    elif isinstance(value, (list, tuple)):
        for one in value:
            _check_plain(one, where)
    elif isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InputError(f"{where}: has a character that cannot be written, got {value!r}.")
    elif isinstance(value, int) and abs(value) >= 1 << 63:
        raise InputError(f"{where}: must be a number of at most 64 bits.")
    elif not isinstance(value, (bool, int, float)) or not math.isfinite(value):
        raise InputError(f"{where}: must be text, finite numbers, true or false, got {value!r}.")


def _without_none(value: Any) -> Any:
    """The same without keys whose value is None, which TOML cannot write."""
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(one) for one in value]
    return value


def _as_table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a table, got {value!r}.")
    return value
