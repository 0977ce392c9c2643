"""Several runs into one: ``bittern fuse``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import Format, app, show


@app.command()
def fuse(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs, plain or .gz; two or more.")],
    method: Annotated[
        str, typer.Option(help="How: comb-sum, comb-mnz, borda, reciprocal-rank, ….")
    ] = "comb-sum",
    normalise: Annotated[
        str | None,
        typer.Option(help="zscore, minmax, rank or none; default: the method's own."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="A number for each run, with commas between.")
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="TREC judgements, plain or .gz.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the fused run to this file.")] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Names with commas between, like 'ap,ndcg@10'.")
    ] = None,
    format: Annotated[Format, typer.Option(help="How the scores are written.")] = Format.table,
) -> None:
    """Fuse TREC runs into one, and score each of them and the fusion.

    Methods: comb-min, comb-max, comb-sum, comb-mnz, borda, reciprocal-rank, weighted-sum.  What a
    run lacks and another has is counted and told; how a method takes it, its documentation says.
    """
    from bittern.cli import fusing
    from bittern.cli.evaluation import parse_metrics

    request = fusing.Request(
        runs=tuple(runs),
        method=method,
        normalise=normalise,
        weights=fusing.parse_weights(weights),
        qrels=qrels,
        output=output,
        metrics=parse_metrics(metrics),
    )
    fused = fusing.fuse(request)
    fusing.write(request, fused)
    if fused.scores:
        show(fusing.FORMATS[format](fused.scores).rstrip("\n"))
    if format is Format.table:
        show(("\n" if fused.scores else "") + fusing.note(request, fused))
