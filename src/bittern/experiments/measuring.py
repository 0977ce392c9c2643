"""One cell: choose on validation data, fit on training data, and open the test sets once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import row_blocks
from bittern.codes import Codes
from bittern.experiments.cells import Cell
from bittern.experiments.clock import Clock
from bittern.experiments.curves import curves_of
from bittern.experiments.examples import examples_of
from bittern.experiments.material import Material
from bittern.experiments.memory import peak_memory
from bittern.experiments.protocol import EUCLIDEAN, EXACT, Protocol
from bittern.experiments.record import Record
from bittern.experiments.truth import Items
from bittern.experiments.tuning import Choice, choose
from bittern.experiments.values import values_of
from bittern.experiments.versions import versions
from bittern.hashing import HASHERS
from bittern.index import FlatIndex, TableSurface, table_surface
from bittern.profile import TieProfile
from bittern.relevance import Relevance

__all__ = ["measure"]

SURFACE: dict[str, Callable[[TableSurface], NDArray[Any]]] = {  # (n_k, n_l) each
    "precision": lambda surface: surface.precision,
    "recall": lambda surface: surface.recall,
    "f1": lambda surface: surface.f_beta(),
    "retrieved": lambda surface: surface.retrieved,
    "examined": lambda surface: np.where(surface.is_possible, surface.examined.sum(axis=0), np.nan),
    "empty": lambda surface: surface.n_empty,
}
FEW_PAIRS = 50_000_000  # queries × items whose real distances are all kept as columns
EXAMPLES_OF_RUN = 0


def measure(protocol: Protocol, cell: Cell, material: Material) -> Record:
    """Everything about one method at one length in one run."""
    clock = Clock()
    with peak_memory() as peak:
        choice, found = (_exact if cell.method.name == EXACT else _hashed)(
            protocol, cell, material, clock
        )
    return Record(
        method=cell.method.label,
        n_bits=cell.n_bits,
        run=cell.run,
        fingerprint=cell.fingerprint,
        parameters=choice.parameters,
        tuning=choice.tried,
        query_positions=tuple(material.queries.positions.tolist()),
        query_labels=_labels(material.queries),
        seconds=clock.seconds,
        peak_memory=peak.bytes,
        split=material.statement,
        versions=versions(),
        protocol=protocol.to_dict(),
        **found,
    )


def _hashed(
    protocol: Protocol, cell: Cell, material: Material, clock: Clock
) -> tuple[Choice, dict[str, Any]]:
    """A hasher's codes, ranked by Hamming distance or looked up in tables."""
    assert cell.n_bits is not None
    state = cell.random_state(protocol)
    choice = clock("tune", lambda: choose(protocol, cell, material, state))
    hasher = HASHERS[cell.method.name](cell.n_bits, **({"random_state": state} | choice.parameters))
    graded = cell.method.learns_from == "grades"
    train = material.train
    target = protocol.ground_truth.target(train, graded=graded)
    clock("fit", lambda: hasher.fit(train.vectors, target))
    queries, database = clock(
        "encode",
        lambda: tuple(hasher.encode(s.vectors) for s in (material.queries, material.database)),
    )
    truth = protocol.ground_truth.between(material.queries, material.database, train)
    return choice, clock(
        "evaluate", lambda: _found(protocol, cell, material, truth, queries, database)
    )


def _found(
    protocol: Protocol,
    cell: Cell,
    material: Material,
    truth: Relevance,
    queries: Codes,
    database: Codes,
) -> dict[str, Any]:
    profile = TieProfile.from_codes(queries, database, truth)
    found: dict[str, Any] = {
        "profile": profile,
        "values": values_of(profile, protocol.metrics),
        "curves": curves_of(profile),
        "n_relevant": tuple(profile.n_relevant.tolist()),
    }
    if protocol.tables is not None:
        found["surface"] = _surface(protocol, queries, database, truth)
    if cell.run == EXAMPLES_OF_RUN:
        index = FlatIndex(database)
        found["examples"] = examples_of(
            material, truth, lambda rows, k: _nearest(index.search(queries[rows], k=k))
        )
    return found


def _exact(
    protocol: Protocol, cell: Cell, material: Material, clock: Clock
) -> tuple[Choice, dict[str, Any]]:
    """The ranking by real distances."""
    queries, database = material.queries, material.database
    truth = protocol.ground_truth.between(queries, database, material.train)
    metric = cell.method.parameters.get("metric", EUCLIDEAN)
    compact = len(queries) * len(database) > FEW_PAIRS
    profile = clock(
        "evaluate",
        lambda: TieProfile.from_distances(
            _distances(queries.vectors, database.vectors, metric), truth, compact=compact
        ),
    )
    found: dict[str, Any] = {
        "values": values_of(profile, protocol.metrics),
        "curves": curves_of(profile),
        "n_relevant": tuple(profile.n_relevant.tolist()),
    }
    if cell.run == EXAMPLES_OF_RUN:

        def nearest(rows: NDArray[np.intp], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
            blocks = _distances(queries.vectors[rows], database.vectors, metric)
            distances = np.concatenate(list(blocks))
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
            return order, np.take_along_axis(distances, order, axis=1)

        found["examples"] = examples_of(material, truth, nearest)
    return Choice(dict(cell.method.parameters)), found


def _distances(
    queries: NDArray[Any], database: NDArray[Any], metric: str
) -> Iterator[NDArray[np.float64]]:
    """Blocks of distances, in double precision."""
    from sklearn.metrics import pairwise_distances

    database = database.astype(np.float64)
    for block in row_blocks(len(queries), 8 * len(database), memory=1 << 27):
        yield pairwise_distances(queries[block].astype(np.float64), database, metric)


def _surface(
    protocol: Protocol, queries: Codes, database: Codes, truth: Relevance
) -> dict[str, Any]:
    """What hash tables retrieve for every K and L, in plain values; NaN where K is too long."""
    grid = protocol.tables
    assert grid is not None
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


def _nearest(hits: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return hits.ids, hits.distances


def _labels(items: Items) -> tuple[int, ...] | None:
    return None if items.labels is None else tuple(items.labels.tolist())
