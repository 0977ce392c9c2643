"""Find how few bytes are enough: ``bittern advise``."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bittern.cli.app import VectorMetric, app, check_outputs, echo, handle_interrupt, whole
from bittern.cli.fit import Key
from bittern.errors import InputError
from bittern.progress import Bar

if TYPE_CHECKING:
    from bittern.inputs import VectorFile


class AdviceFormat(StrEnum):
    """Output formats."""

    table = "table"
    json = "json"


class VectorStore(StrEnum):
    """What the vectors that rescore are kept as."""

    float32 = "float32"
    int8 = "int8"


@app.command()
def advise(
    vectors: Annotated[
        Path, typer.Option(help="Vectors (n, dim): .npy, .npz, .pt, .mat, .csv, .parquet or .h5.")
    ],
    key: Key = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Class of each row, or tags (n, n_tags)."),
    ] = None,
    tags: Annotated[Path | None, typer.Option(help="Tags of each row as multi-hot rows.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Vectors of your own queries (default: rows held out).")
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            help="What is relevant to your queries, as TREC judgements; ids are those beside the "
            "vectors, or row numbers from 0."
        ),
    ] = None,
    target: Annotated[
        float, typer.Option(help="Share of the float ranking's quality to keep.")
    ] = 0.95,
    items: Annotated[
        float | None,
        typer.Option(
            help="Number of items that you will search, such as 1e7 (default: the number of rows)."
        ),
    ] = None,
    rescore: Annotated[
        int, typer.Option(help="Most rescoring that the answer may use: 4 sorts 4 × k candidates.")
    ] = 4,
    rescore_from: Annotated[
        VectorStore,
        typer.Option(help="Vectors that rescore: float32, or int8, which take a quarter."),
    ] = VectorStore.float32,
    methods: Annotated[
        str | None, typer.Option(help="Methods, separated by commas: 'tcq,int8,itq'.")
    ] = None,
    bytes: Annotated[
        str | None,
        typer.Option(
            "--bytes", help="Sizes in bytes, separated by commas (default: 8,16,32,64,128)."
        ),
    ] = None,
    bits: Annotated[
        str | None, typer.Option(help="The same in bits, for short hash codes.")
    ] = None,
    metric: Annotated[
        VectorMetric, typer.Option(help="Distance that ranks the vectors.")
    ] = VectorMetric.euclidean,
    k: Annotated[
        int,
        typer.Option("-k", help="Number of first results that count; of relevant neighbours, too."),
    ] = 10,
    candidates: Annotated[
        int | None, typer.Option(help="Also measure rescoring of so many candidates.")
    ] = None,
    budget: Annotated[float, typer.Option(help="Time limit in seconds.")] = 120.0,
    splits: Annotated[
        int, typer.Option(help="Maximum number of splits into training rows and database.")
    ] = 5,
    random_state: Annotated[int, typer.Option(help="Seed for the splits and models.")] = 0,
    every: Annotated[
        bool, typer.Option("--all", help="Show every trial, not only those that matter.")
    ] = False,
    format: Annotated[AdviceFormat, typer.Option(help="Output format.")] = AdviceFormat.table,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the frontier: .svg, .png or .pdf.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Save the model that was measured: in an .npz file, or with a program that uses "
            "it and the answer in a new folder."
        ),
    ] = None,
) -> None:
    """Find the fewest bytes that rank nearly as well as the vectors themselves.

    Tries number formats, quantisers and hash functions on rows held out of training, with and
    without rescoring of candidates. Nearest neighbours are relevant; with labels, items of the
    query's class; with your own queries and judgements, what these say. Ctrl-C ends with the answer
    so far.
    """
    from bittern import experiments, inputs
    from bittern.experiments.advice.contenders import modules_of
    from bittern.experiments.advice.export import check_export
    from bittern.experiments.advice.export import export as export_advice
    from bittern.extras import require
    from bittern.io.arrays import modules_to_read
    from bittern.report.plots import draw_advice

    if labels is not None and tags is not None:
        raise InputError("advise: give --labels or --tags, not both.")
    if qrels is not None and queries is None:
        raise InputError("advise: --qrels needs the --queries that it is about.")
    check_outputs(plot=plot)
    if export is not None:
        check_export(export)
    require(modules_of(methods) | modules_to_read(vectors, labels, tags, queries))
    with handle_interrupt(), Bar("trying") as progress:
        y = None if labels is None else inputs.read_labels(labels)
        y = y if tags is None else inputs.read_tags(tags)
        given = inputs.read_vectors(vectors, key=key)
        asked = None if queries is None else inputs.read_vectors(queries)
        advice = experiments.advise(
            given.vectors,
            y,
            target=target,
            items=None if items is None else whole(items, "advise: --items"),
            methods=methods,
            n_bytes=bytes,
            n_bits=bits,
            metric=metric.value,
            queries=None if asked is None else asked.vectors,
            relevance=None if qrels is None else _judgements(qrels, asked, given),
            budget=budget,
            k=k,
            rescore=rescore,
            rescore_from=rescore_from.value,
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
        lines.append(f"The frontier is in {plot}.")
    if export is not None:
        lines.append(export_advice(advice, export))
    if lines and is_table:
        echo("\n" + "\n".join(lines))


def _judgements(path: Path, queries: VectorFile | None, items: VectorFile) -> Any:
    """The gains of a file of judgements, by row of the queries and of the vectors."""
    from bittern.experiments.advice.judgements import gains_of
    from bittern.io.trec import read_qrels

    assert queries is not None
    return gains_of(read_qrels(path), _ids(queries), _ids(items), str(path))


def _ids(file: VectorFile) -> Iterable[object]:
    """The ids beside the vectors, or the numbers of their rows."""
    stored = file.rows.ids
    return range(len(file)) if stored is None else stored.tolist()
