"""Retrieval by codes: hashers ranked by Hamming distance, or looked up in hash tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, PositionArray, check_count, row_blocks
from bittern.codes import MAX_BITS, Codes
from bittern.data import Dataset
from bittern.errors import InputError
from bittern.experiments.paradigm import Clock, Paradigm, check_different
from bittern.experiments.ready_codes import CODES, check_ready, read_ready
from bittern.experiments.record import Example, Value, describe_profile
from bittern.experiments.run_data import (
    FitSets,
    RunData,
    SplitSet,
    prepare_run,
    trial_sets,
    validation_sets,
)
from bittern.experiments.search import Choice, choose
from bittern.experiments.truth import Classes
from bittern.hashing import HASHERS, Hasher
from bittern.index import FlatIndex
from bittern.io.toml import check_keys, read_table
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.registry import Registry
from bittern.relevance import Relevance
from bittern.tables import TableSurface, table_surface

if TYPE_CHECKING:
    from bittern.experiments.cells import Cell, Trial
    from bittern.experiments.protocol import Method, Protocol

EXACT = "exact"  # the ranking by real distances: a ceiling without codes
EUCLIDEAN = "euclidean"
DISTANCES = (EUCLIDEAN, "cosine", "manhattan")  # of that ranking
FEW_PAIRS = 50_000_000  # queries × items whose real distances are all kept as columns
HELD_OUT = 0.2  # share of training rows that validates if a split has no validation sets
EXAMPLES_OF_RUN, N_EXAMPLES, N_SHOWN = 0, 12, 12
SURFACE: dict[str, Callable[[TableSurface], NDArray[Any]]] = {  # (n_k, n_l) each
    "precision": lambda surface: surface.precision,
    "recall": lambda surface: surface.recall,
    "f1": lambda surface: surface.f_beta(),
    "retrieved": lambda surface: surface.retrieved,
    "examined": lambda surface: np.where(surface.is_possible, surface.examined.sum(axis=0), np.nan),
    "empty": lambda surface: surface.n_empty,
}

Search = Callable[[PositionArray, int], tuple[NDArray[Any], NDArray[Any]]]


class CodeRanking(Paradigm):
    """Rank the database by Hamming distance between codes, or by real distances (``exact``)."""

    tables = (HASHERS,)

    def check(self, protocol: Protocol) -> None:
        """Every method must be a hasher with known parameters and some lengths."""
        for method in protocol.method:
            if method.name == CODES:
                check_ready(protocol, method)
            else:
                _check_method(method)
        check_lengths(protocol, [m for m in protocol.method if m.name != EXACT])

    def lengths(self, protocol: Protocol, method: Method) -> Sequence[int | None]:
        """The method's own lengths, or the protocol's."""
        return (None,) if method.name == EXACT else method.n_bits or protocol.n_bits

    def needs_modules(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """What the hasher needs."""
        if method.name in (EXACT, CODES):
            return ()
        return modules_of(HASHERS.find(method.name), method.points)

    def prepare(self, protocol: Protocol, dataset: Dataset, run: int, folder: Path) -> RunData:
        """Split and preprocess; the training rows must have what makes items relevant."""
        data = prepare_run(protocol, dataset, run)
        protocol.ground_truth.check(data.train)
        if any(method.learns_from == "classes" for method in protocol.method):
            Classes(kind="classes").check(data.train)
        return data

    def measure(
        self, protocol: Protocol, cell: Cell, data: RunData, clock: Clock
    ) -> dict[str, Any]:
        """Choose on validation data, fit on training data, and open the test sets once."""
        other = {EXACT: _measure_distances, CODES: self._measure_ready}
        measure = other.get(cell.method.name, self._measure_codes)
        found = measure(protocol, cell, data, clock)
        labels = data.queries.labels
        return found | {
            "query_positions": tuple(data.queries.positions.tolist()),
            "query_labels": None if labels is None else tuple(labels.tolist()),
        }

    def _measure_codes(
        self, protocol: Protocol, cell: Cell, data: RunData, clock: Clock
    ) -> dict[str, Any]:
        choice = clock(
            "tune",
            lambda: choose_point(
                protocol, cell, data, lambda point, sets: _score(protocol, cell, point, sets)
            ),
        )
        hasher = _hasher(protocol, cell, choice.parameters)
        codes, trained = _longer_codes(data, cell, hasher), {}
        if codes is None:
            target = _target(protocol, cell, data.train)
            clock("fit", lambda: hasher.fit(data.train.vectors, target))
            trained = training_curves(hasher)
            sets = data.queries, data.database
            codes = clock("encode", lambda: [hasher.encode(one.vectors) for one in sets])
            if hasher.is_nested:
                data.nested_codes[cell.method.label] = hasher, codes
        return self._search(protocol, cell, data, clock, *codes) | {
            "parameters": choice.parameters,
            "tuning": choice.tried,
            "training_curves": trained,
        }

    def _measure_ready(
        self, protocol: Protocol, cell: Cell, data: RunData, clock: Clock
    ) -> dict[str, Any]:
        """Read the codes that another program made."""
        queries, database, parameters = clock("encode", lambda: read_ready(protocol, cell, data))
        found = self._search(protocol, cell, data, clock, queries, database)
        return found | {"parameters": parameters}

    def _search(
        self,
        protocol: Protocol,
        cell: Cell,
        data: RunData,
        clock: Clock,
        queries: Codes,
        database: Codes,
    ) -> dict[str, Any]:
        """What a search among the codes finds."""
        truth = protocol.ground_truth.between(data.queries, data.database, data.train)
        found = clock("evaluate", lambda: self._evaluate(protocol, queries, database, truth))
        if cell.run == EXAMPLES_OF_RUN:
            places = data.queries.positions, data.database.positions
            found["examples"] = some_examples(*places, truth, search_codes(queries, database))
        return found

    def measure_trial(
        self, protocol: Protocol, trial: Trial, data: RunData, clock: Clock
    ) -> dict[str, Any]:
        """Fit on a part of the training rows, and score the others; test sets are not touched."""
        metric, sets = protocol.search_metric, trial_sets(protocol, trial, data)
        hasher = _hasher(protocol, trial, trial.parameters)
        clock("fit", lambda: _fit_watched(protocol, trial, hasher, sets))
        profile = clock("encode", lambda: _profile(protocol, hasher, sets))
        score = clock("evaluate", lambda: evaluate(profile, [metric])[metric])
        return {
            "parameters": trial.parameters,
            "values": {metric: Value(mean=score.mean, undefined=score.undefined)},
            "training_curves": training_curves(hasher),
            "split": sets.describe(data),
        }

    def _evaluate(
        self, protocol: Protocol, queries: Codes, database: Codes, truth: Relevance
    ) -> dict[str, Any]:
        profile = TieProfile.from_codes(queries, database, truth)
        return {"profile": profile, **describe_profile(profile, protocol.metrics)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGrid:
    """Settings of hash tables: every K with every L."""

    bits_per_table: tuple[int, ...]
    n_tables: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("bits_per_table", "n_tables"):
            check_different(getattr(self, name), f"tables.{name}")


class HashTables(CodeRanking):
    """The same codes, also looked up in L hash tables of K bits."""

    table = "tables"

    def check(self, protocol: Protocol) -> None:
        """The table [tables] must have K and L."""
        super().check(protocol)
        self._grid(protocol)

    def _grid(self, protocol: Protocol) -> TableGrid:
        return read_table(TableGrid, protocol.settings, "tables")

    def _evaluate(
        self, protocol: Protocol, queries: Codes, database: Codes, truth: Relevance
    ) -> dict[str, Any]:
        found = super()._evaluate(protocol, queries, database, truth)
        return found | {"surface": _surface(self._grid(protocol), queries, database, truth)}


def _check_method(method: Method) -> None:
    """A hasher with parameters of its class, or ``exact`` with a distance."""
    if method.name != EXACT:
        check_parameters(method, list(inspect.signature(HASHERS.find(method.name)).parameters))
        return
    if method.grid or method.n_bits:
        raise InputError(
            f"method {method.label}: a ranking without codes has neither grid nor n_bits."
        )
    Registry("distance", dict.fromkeys(DISTANCES))[method.parameters.get("metric", EUCLIDEAN)]
    check_parameters(method, ["metric"])


def check_parameters(method: Method, known: Sequence[str]) -> None:
    """Raise InputError for a parameter that the method does not have."""
    for given in (method.parameters, method.grid):
        names = dict.fromkeys(name for name in known if name != "n_bits")
        check_keys(given, names, f"method {method.label}")


def modules_of(kind: type[Any], points: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The optional modules that a hasher needs with any of these parameters."""
    needed = [module for point in points for module in kind(**point).needs_modules]
    return tuple(dict.fromkeys(needed))


def check_lengths(protocol: Protocol, methods: Sequence[Method]) -> None:
    """Raise InputError unless each of these methods has lengths, its own or the protocol's."""
    lengths = {"n_bits": protocol.n_bits}
    lengths |= {f"method {one.label}: n_bits": one.n_bits for one in methods}
    for where, given in lengths.items():
        check_different(given, where)
        for n_bits in given:
            check_count(n_bits, where, most=MAX_BITS)
    for method in methods:
        if not (method.n_bits or protocol.n_bits):
            raise InputError(
                f"method {method.label}: n_bits is missing; give [16, 32], for example."
            )


def choose_point(
    protocol: Protocol,
    cell: Cell,
    data: RunData,
    score: Callable[[dict[str, Any], FitSets], float],
) -> Choice:
    """What the search chose; without one, the point of the grid with the best score on validation.

    Validation queries are searched in the validation database (3.5 of [Moran-2016]).  If the split
    has neither, a fifth of the training rows is held out, and each of them is searched among the
    others.  Test sets are not touched.
    """
    if cell.choice is not None:
        return cell.choice
    if protocol.search is not None and cell.needs_search:
        raise InputError(f"{cell.name}: its parameters are not chosen yet; run the search first.")
    points = cell.method.points
    if len(points) == 1:
        return Choice(points[0])
    sets = validation_sets(data, cell.random_state(protocol), HELD_OUT)
    return choose([{"parameters": point, "score": score(point, sets)} for point in points])


def _score(protocol: Protocol, cell: Cell, point: dict[str, Any], sets: FitSets) -> float:
    hasher = _hasher(protocol, cell, point)
    hasher.fit(sets.train.vectors, _target(protocol, cell, sets.train))
    profile = _profile(protocol, hasher, sets)
    return float(evaluate(profile, [protocol.main_metric])[protocol.main_metric].mean)


def _profile(protocol: Protocol, hasher: Hasher, sets: FitSets) -> TieProfile:
    """The profile of the queries; each is left out of its own results."""
    queries, database = sets.queries, sets.database
    relevance = protocol.ground_truth.between(queries, database, sets.train)
    if queries is database:
        relevance = relevance.excluding(np.arange(len(queries)))
    left = hasher.encode(queries.vectors)
    right = left if queries is database else hasher.encode(database.vectors)
    return TieProfile.from_codes(left, right, relevance)


def _fit_watched(protocol: Protocol, trial: Trial, hasher: Hasher, sets: FitSets) -> None:
    """Fit; a hasher that watches held-out rows also records its curves on them."""
    watched: dict[str, Any] = {}
    if getattr(hasher, "watches_held_out", False):
        target = _target(protocol, trial, sets.queries, sets.train)
        watched["held_out"] = (sets.queries.vectors, target)
    hasher.fit(sets.train.vectors, _target(protocol, trial, sets.train), **watched)


def training_curves(hasher: Any) -> dict[str, tuple[float, ...]]:
    """Metrics after each epoch, of hashers that record them."""
    curves = getattr(hasher, "curves_", None) or {}
    arrays = {name: np.asarray(one, np.float64) for name, one in curves.items()}
    return {n: tuple(np.where(np.isfinite(a), a, np.nan).tolist()) for n, a in arrays.items()}


def _longer_codes(data: RunData, cell: Cell, hasher: Hasher) -> list[Codes] | None:
    """Codes of queries and database, cut from longer ones of the same nested method, if any."""
    before, codes = data.nested_codes.get(cell.method.label, (None, []))
    if not hasher.is_nested or before is None or before.n_bits < hasher.n_bits:
        return None
    if before.get_params() != hasher.get_params() | {"n_bits": before.n_bits}:
        return None
    return [one.truncate(hasher.n_bits) for one in codes]


def _hasher(protocol: Protocol, cell: Cell, parameters: dict[str, Any]) -> Hasher:
    options = {"random_state": cell.random_state(protocol)} | parameters
    return HASHERS.find(cell.method.name)(cell.n_bits, **options)


def _target(protocol: Protocol, cell: Cell, items: SplitSet, train: SplitSet | None = None) -> Any:
    """What the method learns from; None if it would not look at it."""
    if not any(_hasher(protocol, cell, point)._takes_y for point in cell.method.points):
        return None
    return target_of(protocol, cell, items, train)


def target_of(
    protocol: Protocol, cell: Cell, items: SplitSet, train: SplitSet | None = None
) -> Any:
    """The ``y`` of some rows, as the method's ``learns_from`` asks for it."""
    if cell.method.learns_from == "classes":
        return Classes(kind="classes").target(items, graded=False)
    graded = cell.method.learns_from == "grades"
    return protocol.ground_truth.target(items, graded=graded, train=train)


def _measure_distances(
    protocol: Protocol, cell: Cell, data: RunData, clock: Clock
) -> dict[str, Any]:
    """The ranking by real distances."""
    queries, database = data.queries, data.database
    truth = protocol.ground_truth.between(queries, database, data.train)
    metric = cell.method.parameters.get("metric", EUCLIDEAN)
    compact = len(queries) * len(database) > FEW_PAIRS
    profile = clock(
        "evaluate",
        lambda: TieProfile.from_distances(
            _distances(queries.vectors, database.vectors, metric), truth, compact=compact
        ),
    )
    found = describe_profile(profile, protocol.metrics)
    if cell.run == EXAMPLES_OF_RUN:
        search = _search_vectors(queries.vectors, database.vectors, metric)
        found["examples"] = some_examples(queries.positions, database.positions, truth, search)
    return found | {"parameters": dict(cell.method.parameters)}


def _distances(
    queries: NDArray[Any], database: NDArray[Any], metric: str
) -> Iterator[Float64Array]:
    """Blocks of distances, in double precision."""
    from sklearn.metrics import pairwise_distances

    database = database.astype(np.float64)
    for block in row_blocks(len(queries), 8 * len(database), memory=1 << 27):
        yield pairwise_distances(queries[block].astype(np.float64), database, metric)


def _surface(grid: TableGrid, queries: Codes, database: Codes, truth: Relevance) -> dict[str, Any]:
    """What hash tables retrieve for every K and L, in plain values; NaN if K exceeds the code."""
    widths = sorted(k for k in grid.bits_per_table if k <= queries.n_bits)
    tables = sorted(grid.n_tables)
    longer = [[np.nan] * len(tables)] * (len(grid.bits_per_table) - len(widths))
    sides: dict[str, list[Any]] = {name: [] for name in SURFACE}
    if widths:
        surface = table_surface(queries, database, truth, bits_per_table=widths, n_tables=tables)
        sides = {name: read(surface).tolist() for name, read in SURFACE.items()}
    return {
        "bits_per_table": sorted(grid.bits_per_table),
        "n_tables": tables,
        **{name: values + longer for name, values in sides.items()},
    }


def some_examples(
    queries: PositionArray, database: PositionArray, truth: Relevance, search: Search
) -> tuple[Example, ...]:
    """A few queries, spread evenly over the test queries, with their nearest items.

    ``queries`` and ``database`` are positions in the dataset; ``search(rows, k)`` gives positions
    in the database and distances for rows of the queries.
    """
    n = min(N_EXAMPLES, len(queries))
    rows = np.unique(np.linspace(0, len(queries) - 1, n).astype(np.intp))
    k = min(N_SHOWN, len(database))
    examples = []
    for row, items, distances in zip(rows, *search(rows, k), strict=True):
        levels = truth.levels_of(np.full(k, row), np.asarray(items))
        examples.append(
            Example(
                query=int(queries[row]),
                items=tuple(database[items].tolist()),
                distances=tuple(np.asarray(distances).tolist()),
                relevant=tuple((levels > 0).tolist()),
            )
        )
    return tuple(examples)


def search_codes(queries: Codes, database: Codes) -> Search:
    """A search among codes."""
    index = FlatIndex(database)

    def search(rows: PositionArray, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        hits = index.search(queries[rows], k=k)
        return hits.ids, hits.distances

    return search


def _search_vectors(queries: NDArray[Any], database: NDArray[Any], metric: str) -> Search:
    def search(rows: PositionArray, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        distances = np.concatenate(list(_distances(queries[rows], database, metric)))
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return order, np.take_along_axis(distances, order, axis=1)

    return search
