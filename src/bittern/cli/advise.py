"""How few bits will do: ``bittern advise``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bittern.cli.app import app, show, telling_interruptions
from bittern.progress import Bar


class Metric(StrEnum):
    """Distance between vectors."""

    euclidean = "euclidean"
    cosine = "cosine"


class AdviceFormat(StrEnum):
    """How an advice is written."""

    table = "table"
    json = "json"


@app.command()
def advise(
    vectors: Annotated[Path, typer.Option(help="Vectors (n, dim): .npy, or .npz of 'vectors'.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="Class of each row, or tags (n, n_tags): .npy, .npz or text."),
    ] = None,
    target: Annotated[
        float, typer.Option(help="Share of the float ranking's quality to keep.")
    ] = 0.95,
    methods: Annotated[
        str | None, typer.Option(help="Names with commas between, like 'lsh,itq'.")
    ] = None,
    bits: Annotated[
        str | None, typer.Option(help="Lengths with commas between; default: 8 to 512.")
    ] = None,
    metric: Annotated[
        Metric, typer.Option(help="Distance between vectors that ranks them.")
    ] = Metric.euclidean,
    k: Annotated[
        int, typer.Option("-k", help="Nearest neighbours that are the truth without labels.")
    ] = 10,
    candidates: Annotated[
        int, typer.Option(help="First items, to be reranked by the vectors, to look for them in.")
    ] = 100,
    budget: Annotated[float, typer.Option(help="Seconds that it may take, about.")] = 120.0,
    splits: Annotated[int, typer.Option(help="Splits into training rows and database.")] = 5,
    random_state: Annotated[int, typer.Option(help="Seed of the splits and of the hashers.")] = 0,
    every: Annotated[
        bool, typer.Option("--all", help="Show all that was tried, not the best of each length.")
    ] = False,
    format: Annotated[
        AdviceFormat, typer.Option(help="How the advice is written.")
    ] = AdviceFormat.table,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the curve: .svg, .png or .pdf.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="Make this folder, with the hasher as it was measured.")
    ] = None,
) -> None:
    """Tell how few bits keep most of the quality of ranking by the vectors themselves.

    Methods and lengths are tried on rows held out of their training.  Relevant are items of the
    query's class, if there are labels, else its nearest neighbours by the vectors.
    """
    from bittern import experiments, inputs
    from bittern.cli.evaluation import check_outputs
    from bittern.experiments.advising import files
    from bittern.report.advice import draw_advice

    check_outputs(plot=plot)
    if export is not None:
        files.check_export(export)
    with telling_interruptions(), Bar("trying") as progress:
        advice = experiments.advise(
            files.map_vectors(vectors),
            None if labels is None else inputs.read_labels(labels),
            target=target,
            methods=methods,
            n_bits=bits,
            metric=metric.value,
            budget=budget,
            k=k,
            candidates=candidates,
            n_splits=splits,
            random_state=random_state,
            progress=progress,
        )
    is_table = format is AdviceFormat.table
    show(advice.text(every=every) if is_table else advice.to_json(indent=1))
    told = []
    if plot is not None:
        draw_advice(plot, advice)
        told.append(f"The curve is in {plot}.")
    if export is not None:
        told.append(files.export(advice, export))
    if told and is_table:
        show("\n" + "\n".join(told))
