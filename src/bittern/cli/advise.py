"""Find how few bits are enough: ``bittern advise``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import echo

from bittern.cli.app import VectorMetric, app, check_outputs, handle_interrupt
from bittern.cli.fit import Key
from bittern.errors import InputError
from bittern.progress import Bar


class AdviceFormat(StrEnum):
    """Output formats."""

    table = "table"
    json = "json"


@app.command()
def advise(
    vectors: Annotated[Path, typer.Option(help="Vectors (n, dim): .npy, .npz, .parquet or HDF5.")],
    key: Key = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Class of each row, or tags (n, n_tags): .npy, .npz or text."),
    ] = None,
    tags: Annotated[
        Path | None, typer.Option(help="Tags of each row as multi-hot rows: .npy or .npz.")
    ] = None,
    target: Annotated[
        float, typer.Option(help="Share of the float ranking's quality to keep.")
    ] = 0.95,
    methods: Annotated[
        str | None, typer.Option(help="Methods, separated by commas: 'lsh,itq'.")
    ] = None,
    bits: Annotated[
        str | None, typer.Option(help="Lengths, separated by commas (default: 8 to 512).")
    ] = None,
    metric: Annotated[
        VectorMetric, typer.Option(help="Distance that ranks the vectors.")
    ] = VectorMetric.euclidean,
    k: Annotated[
        int,
        typer.Option("-k", help="Number of nearest neighbours that are relevant, without labels."),
    ] = 10,
    candidates: Annotated[
        int, typer.Option(help="Number of candidates to rerank by the vectors.")
    ] = 100,
    budget: Annotated[float, typer.Option(help="Time limit in seconds.")] = 120.0,
    splits: Annotated[
        int, typer.Option(help="Maximum number of splits into training rows and database.")
    ] = 5,
    random_state: Annotated[int, typer.Option(help="Seed for the splits and hashers.")] = 0,
    every: Annotated[
        bool, typer.Option("--all", help="Show every trial, not only the best of each length.")
    ] = False,
    format: Annotated[AdviceFormat, typer.Option(help="Output format.")] = AdviceFormat.table,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the curve: .svg, .png or .pdf.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Save the hasher that was measured, for 'encode' and 'index create': in an .npz "
            "file, or with the answer in a new folder."
        ),
    ] = None,
) -> None:
    """Find the fewest bits that rank nearly as well as the vectors themselves.

    Tries methods and lengths on rows held out of training. With labels, items of the query's class
    are relevant; without labels, its nearest neighbours are.
    """
    from bittern import experiments, inputs
    from bittern.experiments.advice.advisor import modules_of
    from bittern.experiments.advice.record import check_export
    from bittern.experiments.advice.record import export as export_advice
    from bittern.extras import require
    from bittern.io.arrays import modules_to_read
    from bittern.report.plots import draw_advice

    if labels is not None and tags is not None:
        raise InputError("advise: give --labels or --tags, not both.")
    check_outputs(plot=plot)
    if export is not None:
        check_export(export)
    require(modules_of(methods) | modules_to_read(vectors, labels, tags))
    with handle_interrupt(), Bar("trying") as progress:
        y = None if labels is None else inputs.read_labels(labels)
        y = y if tags is None else inputs.read_tags(tags)
        advice = experiments.advise(
            inputs.read_vectors(vectors, key=key).vectors,
            y,
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
    echo(advice.text(every=every) if is_table else advice.to_json(indent=1))
    lines = []
    if plot is not None:
        draw_advice(plot, advice)
        lines.append(f"The curve is in {plot}.")
    if export is not None:
        lines.append(export_advice(advice, export))
    if lines and is_table:
        echo("\n" + "\n".join(lines))
