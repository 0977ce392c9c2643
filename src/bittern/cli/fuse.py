"""Fuse TREC runs into one, and score them: ``bittern fuse``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bittern.cli.app import Format, app, check_outputs, echo, parse_metrics
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.fusion import FusedRun
    from bittern.metrics import Scores

    NamedScores = list[tuple[str, Scores]]  # of every run, then of the fused one


@app.command()
def fuse(
    runs: Annotated[list[Path], typer.Argument(help="Two or more TREC runs, plain or .gz.")],
    method: Annotated[str, typer.Option(help="Fusion method (see above).")] = "comb-sum",
    normalise: Annotated[
        str | None,
        typer.Option(help="zscore, minmax, rank or none (default: depends on the method)."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="A weight for each run, for example '1,0.5'.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC judgements, plain or .gz, to score the runs.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File to write the fused run to.")] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Metrics separated by commas, for example 'ap,ndcg@10'.")
    ] = None,
    format: Annotated[Format, typer.Option(help="Format of the scores.")] = Format.table,
) -> None:
    """Fuse TREC runs into one, and score the runs and the fusion.

    Reports how many documents each run lacks. Methods: comb-min, comb-max, comb-sum, comb-mnz,
    borda, reciprocal-rank, weighted-sum.
    """
    from bittern.fusion import fuse_runs
    from bittern.io.trec import read_qrels, read_run, write_run
    from bittern.metrics import evaluate
    from bittern.profile import TieProfile

    run_weights, metric_names = _parse_weights(weights, len(runs)), parse_metrics(metrics)
    _check_names(method, normalise)
    _check_files(runs, qrels, output)
    judgements = None if qrels is None else read_qrels(qrels)
    read = [read_run(path) for path in runs]
    fused = fuse_runs(read, method, normalise=normalise, weights=run_weights)
    scores: NamedScores = []
    if judgements is not None:
        scores = [
            (name, evaluate(TieProfile.from_run(run, judgements), metric_names))
            for name, run in zip([*map(str, runs), method], [*read, fused.run], strict=True)
        ]
    if output is not None:
        write_run(fused.run, output, tag=method)
    if scores:
        echo(FORMATS[format](scores).rstrip("\n"))
    if format is Format.table:
        echo(("\n" if scores else "") + _summary(method, runs, fused))


def _check_names(method: str, normalise: str | None) -> None:
    from bittern.fusion import FUSIONS, NORMALISATIONS

    FUSIONS.find(method)
    if normalise is not None:
        NORMALISATIONS[normalise]


def _check_files(runs: list[Path], qrels: Path | None, output: Path | None) -> None:
    """Raise an error now if an input is missing or an output could not be written later."""
    if len(runs) < 2:
        raise InputError("fuse: give at least two runs.")
    if qrels is None and output is None:
        raise InputError("fuse: give --qrels to score the runs, --output to write, or both.")
    check_outputs(output)
    inputs = {path.resolve() for path in (*runs, qrels) if path is not None}
    if output is not None and output.resolve() in inputs:
        raise InputError(f"{output}: would be overwritten; choose another name.")


def _parse_weights(text: str | None, n_runs: int) -> tuple[float, ...] | None:
    """Parse finite numbers separated by commas, one for each run."""
    import numpy as np

    if text is None:
        return None
    try:
        weights = tuple(float(number) for number in text.split(","))
    except ValueError:
        raise InputError(
            f"fuse: --weights must be numbers separated by commas, got {text!r}."
        ) from None
    if not np.isfinite(weights).all():
        raise InputError(f"fuse: --weights must be finite, got {text!r}.")
    if len(weights) != n_runs:
        raise InputError(
            f"fuse: --weights must have one number for each of {n_runs} runs, got {len(weights)}."
        )
    return weights


def _summary(method: str, runs: list[Path], fused: FusedRun) -> str:
    """The size of the fused run, and what each run lacks."""
    n_queries, n_rows = len(fused.run.query_ids), len(fused.run.documents)
    sentences = [f"{method} of {len(runs)} runs: {n_queries:,} queries, {n_rows:,} documents."]
    missing = zip(runs, fused.missing.tolist(), fused.missing_queries.tolist(), strict=True)
    for path, documents, queries in missing:
        if documents:
            nothing = f", and has nothing for {queries:,} of the queries" if queries else ""
            sentences.append(f"{path} lacks {documents:,} of the documents{nothing}.")
    return " ".join(sentences)


def _tables(named: NamedScores) -> str:
    return "\n\n".join(f"{name}\n{scores}" for name, scores in named)


def _json(named: NamedScores) -> str:
    rows = [{"run": name, "scores": json.loads(scores.to_json())} for name, scores in named]
    return json.dumps(rows)


def _csv(named: NamedScores) -> str:
    lines: list[str] = []
    for name, scores in named:
        header, *rows = scores.to_csv().splitlines()
        quoted = name.replace('"', '""')
        lines += [f'"{quoted}",{row}' for row in rows]
    return "\n".join([f"run,{header}", *lines])


def _latex(named: NamedScores) -> str:
    return "\n".join(f"% {name}\n{scores.to_latex()}" for name, scores in named)


FORMATS: dict[str, Callable[[NamedScores], str]] = {
    "table": _tables,
    "json": _json,
    "csv": _csv,
    "latex": _latex,
}
