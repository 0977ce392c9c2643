"""One cell of the paradigm "evidence": learn on the training partition, open the test one once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bittern.experiments.cells import Cell
from bittern.experiments.clock import Clock
from bittern.experiments.curves import curves_of
from bittern.experiments.evidence.gathering import Gathering, Settings
from bittern.experiments.evidence.methods import OPTIONS, Fused, way_of
from bittern.experiments.evidence.plan import TRAINING, plan_of
from bittern.experiments.evidence.sides import Side
from bittern.experiments.material import Root
from bittern.experiments.memory import peak_memory
from bittern.experiments.protocol import Protocol
from bittern.experiments.record import Record
from bittern.experiments.values import values_of
from bittern.experiments.versions import versions
from bittern.features import FEATURES
from bittern.profile import TieProfile

__all__ = ["measure_evidence"]

LOOKS = "judgements of the test queries: a bound, not a method"


def measure_evidence(
    protocol: Protocol, cell: Cell, root: Root, folder: str | os.PathLike[str]
) -> Record:
    """Everything about one feature or combination in one run.

    Vectors and scores are kept below ``folder``, for the other cells.  A query is a set of
    examples, so ``query_positions`` only number the queries, which all methods of a run share.
    """
    clock, plan, way = Clock(), plan_of(protocol), way_of(cell.method.name)
    with peak_memory() as peak:
        gathering = Gathering.of(protocol, cell.run, root, Path(folder))
        settings = _settings(protocol, cell)
        names = clock("tune", lambda: _names(protocol, cell, gathering, settings))
        train, test = clock(
            "encode",
            lambda: (
                gathering.side(TRAINING, names, settings) if way.learns else None,
                gathering.side(plan.partition, names, settings),
            ),
        )
        given = {k: v for k, v in cell.method.parameters.items() if k not in OPTIONS}
        state = gathering.random_state
        fused = clock("fit", lambda: way.combine(train, test, given, state))
        found = clock("evaluate", lambda: _found(protocol, test, fused))
    asked = getattr(gathering.asked, plan.partition)
    return Record(
        method=cell.method.label,
        n_bits=None,
        run=cell.run,
        fingerprint=cell.fingerprint,
        parameters=_told(cell, gathering, settings, names, fused),
        query_positions=tuple(range(len(asked.images))),
        query_labels=tuple(asked.categories.tolist()),
        seconds=clock.seconds,
        peak_memory=peak.bytes,
        split=gathering.statement,
        versions=versions(),
        protocol=protocol.to_dict(),
        **found,
    )


def _settings(protocol: Protocol, cell: Cell) -> Settings:
    """The method's own, or the protocol's."""
    plan, given = plan_of(protocol), cell.method.parameters
    return Settings(given.get("k", plan.k), given.get("n_negatives", plan.n_negatives))


def _names(
    protocol: Protocol, cell: Cell, gathering: Gathering, settings: Settings
) -> tuple[str, ...]:
    """The features that the method works with."""
    method = cell.method
    if way_of(method.name).is_alone:
        return (method.name,)
    names = tuple(method.parameters.get("features", plan_of(protocol).features))
    best = method.parameters.get("best")
    return names if best is None else gathering.best(names, best, settings)


def _found(protocol: Protocol, test: Side, fused: Fused) -> dict[str, Any]:
    profile = TieProfile.from_distances(-fused.scores, test.relevance)
    return {
        "values": values_of(profile, protocol.metrics),
        "curves": curves_of(profile),
        "n_relevant": tuple(profile.n_relevant.tolist()),
    }


def _told(
    cell: Cell, gathering: Gathering, settings: Settings, names: tuple[str, ...], fused: Fused
) -> dict[str, Any]:
    """What was asked for, what it came to, and what was learned."""
    told: dict[str, Any] = dict(cell.method.parameters) | {
        "features": list(names),
        "k": settings.k,
        "n_negatives": settings.n_negatives,
    }
    if fused.learned:
        told["learned"] = fused.learned
    if way_of(cell.method.name).is_oracle:
        told["looks_at"] = LOOKS
    if any(FEATURES[name].takes == "texts" for name in names):
        told["withheld_words"] = list(gathering.words.withheld)
    return told
