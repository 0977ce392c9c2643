"""Score codes, or a run: ``bittern evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bittern
from bittern.cli.app import Format, app, show
from bittern.progress import Bar


@app.command()
def evaluate(
    queries: Annotated[
        Path | None, typer.Argument(help="Codes of the queries: .npy or .npz of bits or octets.")
    ] = None,
    database: Annotated[
        Path | None,
        typer.Argument(
            help="Codes of the database; left out, QUERIES is searched by each of its own."
        ),
    ] = None,
    query_labels: Annotated[
        Path | None, typer.Option(help="Class of each query: .npy, .npz or text, one a line.")
    ] = None,
    database_labels: Annotated[
        Path | None, typer.Option(help="Class of each database item.")
    ] = None,
    query_tags: Annotated[
        Path | None, typer.Option(help="Multi-hot tags of each query: .npy or .npz.")
    ] = None,
    database_tags: Annotated[
        Path | None, typer.Option(help="Multi-hot tags of each database item.")
    ] = None,
    graded: Annotated[
        bool, typer.Option("--graded", help="The gain is the number of shared tags.")
    ] = False,
    relevance: Annotated[
        Path | None, typer.Option(help="Gains, queries by database: .npy, .npz, sparse .npz.")
    ] = None,
    bits: Annotated[
        int | None, typer.Option(help="Code length, where octets or words are padded.")
    ] = None,
    signed: Annotated[
        bool, typer.Option("--signed", help="Codes are ±1: what is above 0 is a set bit.")
    ] = False,
    run: Annotated[Path | None, typer.Option(help="A TREC run, plain or .gz.")] = None,
    qrels: Annotated[Path | None, typer.Option(help="TREC judgements, plain or .gz.")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Names with commas between, like 'ap,ndcg@100,precision@r2'."),
    ] = None,
    format: Annotated[Format, typer.Option(help="How the scores are written.")] = Format.table,
    per_query: Annotated[
        Path | None, typer.Option(help="Also write each query's values to this CSV file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw precision against recall: .svg, .png, .pdf.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads to count with; default: all cores.")
    ] = None,
) -> None:
    """Score codes, or a TREC run, against a ground truth.

    Ties are averaged over, and the spread between the worst and the best order is shown beside.
    The ground truth is class labels, tags, or a matrix of gains; an .npz of codes may bring its own
    arrays 'labels' or 'tags'.

    Names of metrics: ap, ndcg, dcg, rr, r-precision; precision, recall, f1, hit-rate (and micro-…)
    at a cut-off (@100) or within a radius (@r2); auprc, interpolated-ap; options :optimistic
    :pessimistic :trec :retrieved :linear :empty-zero :trapezoid.
    """
    from bittern.cli import evaluation

    request = evaluation.Request(
        queries=queries,
        database=database,
        query_labels=query_labels,
        database_labels=database_labels,
        query_tags=query_tags,
        database_tags=database_tags,
        graded=graded,
        relevance=relevance,
        n_bits=bits,
        signed=signed,
        run=run,
        qrels=qrels,
        metrics=evaluation.parse_metrics(metrics),
        per_query=per_query,
        plot=plot,
    )
    with Bar("comparing") as progress:
        profile = evaluation.profile_of(request, n_threads=threads, progress=progress)
    scores = bittern.evaluate(profile, request.metrics)
    evaluation.write(request, profile, scores)
    show(evaluation.FORMATS[format](scores).rstrip("\n"))
