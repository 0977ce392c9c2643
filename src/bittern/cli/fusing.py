"""What ``bittern fuse`` does: runs in, a fused run and the scores of all out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from bittern.cli.evaluation import check_outputs
from bittern.errors import InputError
from bittern.fusion.lists import FusedRun, fuse_runs
from bittern.fusion.normalise import NORMALISATIONS
from bittern.fusion.table import FUSIONS
from bittern.io.trec import (
    Qrels,
    Run,
    read_qrels,
    read_run,
    write_run,
)
from bittern.metrics import DEFAULT_METRICS, MetricName, Scores, evaluate, parse
from bittern.profile import TieProfile

__all__ = ["FORMATS", "Fused", "Request", "fuse", "note", "parse_weights", "write"]

Named: TypeAlias = list[tuple[str, Scores]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Runs to fuse, how, and what to do with the fused one: score it, write it, or both."""

    runs: tuple[Path, ...]
    method: str = "comb-sum"
    normalise: str | None = None
    weights: tuple[float, ...] | None = None
    qrels: Path | None = None
    output: Path | None = None
    metrics: tuple[MetricName, ...] = tuple(map(parse, DEFAULT_METRICS))

    def __post_init__(self) -> None:
        if len(self.runs) < 2:
            raise InputError("fuse: give at least two runs.")
        if self.qrels is None and self.output is None:
            raise InputError("fuse: give --qrels to score the runs, --output to write, or both.")
        FUSIONS[self.method]
        if self.normalise is not None:
            NORMALISATIONS[self.normalise]
        if self.weights is not None and len(self.weights) != len(self.runs):
            raise InputError(
                f"fuse: --weights must be one for each of {len(self.runs)} runs, "
                f"got {len(self.weights)}."
            )
        check_outputs(per_query=self.output)
        inputs = {path.resolve() for path in (*self.runs, self.qrels) if path is not None}
        if self.output is not None and self.output.resolve() in inputs:
            raise InputError(f"{self.output}: would be written over; give it another name.")


@dataclass(frozen=True, slots=True)
class Fused:
    """The fused run, and the scores of every run and then of it, if there are judgements."""

    fused: FusedRun
    scores: Named


def fuse(request: Request) -> Fused:
    """Read the runs, fuse them, and score them all."""
    qrels = None if request.qrels is None else read_qrels(request.qrels)
    runs = [read_run(path) for path in request.runs]
    fused = fuse_runs(runs, request.method, normalise=request.normalise, weights=request.weights)
    named = [*zip(map(str, request.runs), runs, strict=True), (request.method, fused.run)]
    if qrels is None:
        return Fused(fused, [])
    return Fused(fused, [(name, _scored(run, qrels, request)) for name, run in named])


def write(request: Request, fused: Fused) -> None:
    """Write the fused run where it was asked for."""
    if request.output is not None:
        write_run(fused.fused.run, request.output, tag=request.method)


def note(request: Request, fused: Fused) -> str:
    """What was fused, and what was missing from which run, in a sentence or two."""
    found = fused.fused
    n_queries, n_rows = len(found.run.query_ids), len(found.run.documents)
    n_runs = len(request.runs)
    sentences = [f"{request.method} of {n_runs} runs: {n_queries:,} queries, {n_rows:,} documents."]
    for path, documents, queries in zip(
        request.runs, found.missing.tolist(), found.missing_queries.tolist(), strict=True
    ):
        if documents:
            nothing = f", and has nothing for {queries:,} of the queries" if queries else ""
            sentences.append(f"{path} lacks {documents:,} of the documents{nothing}.")
    return " ".join(sentences)


def parse_weights(text: str | None) -> tuple[float, ...] | None:
    """Numbers with commas between, or nothing."""
    if text is None:
        return None
    try:
        weights = tuple(float(number) for number in text.split(","))
    except ValueError:
        raise InputError(
            f"fuse: --weights must be numbers with commas between, got {text!r}."
        ) from None
    if not np.isfinite(weights).all():
        raise InputError(f"fuse: --weights must be finite, got {text!r}.")
    return weights


def _scored(run: Run, qrels: Qrels, request: Request) -> Scores:
    return evaluate(TieProfile.from_run(run, qrels), request.metrics)


def _tables(named: Named) -> str:
    return "\n\n".join(f"{name}\n{scores}" for name, scores in named)


def _json(named: Named) -> str:
    rows = [{"run": name, "scores": json.loads(scores.to_json())} for name, scores in named]
    return json.dumps(rows)


def _csv(named: Named) -> str:
    lines: list[str] = []
    for name, scores in named:
        header, *rows = scores.to_csv().splitlines()
        quoted = name.replace('"', '""')
        lines += [f'"{quoted}",{row}' for row in rows]
    return "\n".join([f"run,{header}", *lines])


def _latex(named: Named) -> str:
    return "\n".join(f"% {name}\n{scores.to_latex()}" for name, scores in named)


FORMATS: dict[str, Callable[[Named], str]] = {
    "table": _tables,
    "json": _json,
    "csv": _csv,
    "latex": _latex,
}
