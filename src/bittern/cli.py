"""The command ``bittern``: parse, call, show."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import bittern
from bittern.errors import BitternError
from bittern.progress import Bar

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Short binary codes: made, searched, and honestly evaluated.",
)


def main() -> None:
    """Run the command line; what we raise on purpose is one sentence and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without our lines and signs
    try:
        app(prog_name="bittern")
    except BitternError as error:
        _stop(str(error))
    except MemoryError:
        _stop("there is not enough memory for this; evaluate shards of the database and add them.")
    except OSError as error:
        _stop(f"{error.filename or 'the output'}: {error.strerror or error}.")


class Format(StrEnum):
    """How scores are written."""

    table = "table"
    json = "json"
    csv = "csv"
    latex = "latex"


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"bittern {bittern.__version__}")
        raise typer.Exit


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
    from bittern import evaluation

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
    _show(evaluation.FORMATS[format](scores).rstrip("\n"))


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
    from bittern import fusing
    from bittern.evaluation import parse_metrics

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
        _show(fusing.FORMATS[format](fused.scores).rstrip("\n"))
    if format is Format.table:
        _show(("\n" if fused.scores else "") + fusing.note(request, fused))


@app.command()
def demo(
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the table: .svg, .png or .pdf.")
    ] = None,
    random_state: Annotated[int, typer.Option(help="Seed of the split and the codes.")] = 0,
) -> None:
    """Show what ties do to average precision, on images that come with scikit-learn."""
    from bittern import demo as first_look
    from bittern.evaluation import check_outputs

    check_outputs(plot=plot)
    with Bar("code lengths") as progress:
        rows = first_look.run_demo(random_state, progress)
    _show(first_look.table_of(rows))
    if plot is not None:
        first_look.draw(rows, plot)
        _show(f"\nThe picture is in {plot}.")


data = typer.Typer(no_args_is_help=True, help="Datasets: which there are, what is in them.")
app.add_typer(data, name="data")

Root = Annotated[
    Path | None,
    typer.Option(
        help="Folder of all data, or your own; default: BITTERN_DATA, else your data folder."
    ),
]


@data.command("list")
def list_data() -> None:
    """List every dataset by its name."""
    from bittern.data import describe

    _show(describe.list_datasets())


@data.command()
def info(
    name: Annotated[str, typer.Argument(help="A name from 'bittern data list'.")],
    root: Root = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the reader, like features=gist; may be repeated."),
    ] = None,
) -> None:
    """Read a dataset and tell its size, its statistics and what was checked."""
    from bittern.data import describe
    from bittern.data.catalogue import load, spec_of

    dataset = load(name, root, **describe.parse_options(option or []))
    _show(describe.describe(spec_of(name), dataset))


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name from 'bittern data list'.")],
    root: Root = None,
) -> None:
    """Download a dataset from its publisher; what is there already is kept or continued."""
    from bittern.data.catalogue import spec_of
    from bittern.data.fetch import fetch as download

    with Bar("downloading") as progress:
        paths = download(
            spec_of(name), root, lambda file, done, total: progress(done, total or done)
        )
    _show("\n".join(map(str, paths)) or f"{name} needs no files.")


features = typer.Typer(
    no_args_is_help=True, help="Features: which there are, and those of your pictures."
)
app.add_typer(features, name="features")


class OnError(StrEnum):
    """What a picture that cannot be read does."""

    stop = "stop"
    skip = "skip"


@features.command("list")
def list_features() -> None:
    """List every feature by its name, with what it takes."""
    from bittern.features import describe

    _show(describe.list_features())


@features.command()
def extract(
    folder: Annotated[Path, typer.Argument(help="A folder of pictures; sub-folders are classes.")],
    features: Annotated[
        str, typer.Option(help="Names from 'bittern features list', like 'hsv-global,gist'.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz file to write.")],
    on_error: Annotated[
        OnError, typer.Option(help="A picture that cannot be read stops the work or is skipped.")
    ] = OnError.stop,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
    fit_sample: Annotated[
        int, typer.Option(help="Pictures, drawn at random, that features which learn learn from.")
    ] = 1000,
    random_state: Annotated[int, typer.Option(help="Seed of that sample.")] = 0,
    most_pixels: Annotated[
        int | None, typer.Option(help="Accept pictures of up to so many pixels.")
    ] = None,
) -> None:
    """Describe all pictures of a folder by features, into one file.

    Stopped by Ctrl-C, an error or a crash, the same command goes on where it stopped.
    """
    from bittern.features import describe
    from bittern.features.extract import extract as describe_all
    from bittern.features.workers import allow_pixels

    allow_pixels(most_pixels)
    try:
        found = describe_all(
            folder,
            describe.parse_names(features),
            output,
            errors="skip" if on_error is OnError.skip else "raise",
            jobs=jobs,
            fit_sample=fit_sample,
            random_state=random_state,
        )
    except KeyboardInterrupt as stopped:
        typer.echo(f"bittern: {str(stopped) or 'stopped.'}", err=True)
        raise typer.Exit(130) from None
    _show(describe.summarise(found, output))


index = typer.Typer(
    no_args_is_help=True,
    help="Collections of codes that last: make them, change them, take them elsewhere.",
)
app.add_typer(index, name="index")

Place = Annotated[str, typer.Argument(help="A collection: a file, or milvus://host:port/NAME.")]
Source = Annotated[
    Path, typer.Option("--from", help="A folder of pictures, or vectors in .npy or .npz.")
]


@index.command("create")
def create_index(
    name: Place,
    source: Source,
    features: Annotated[str, typer.Option(help="How pictures become vectors.")] = "deep",
    hasher: Annotated[str, typer.Option(help="How vectors become codes.")] = "itq",
    bits: Annotated[int, typer.Option(help="Length of the codes.")] = 64,
    fit_sample: Annotated[
        int, typer.Option(help="Items, drawn at random, that the hasher learns from.")
    ] = 20_000,
    random_state: Annotated[int, typer.Option(help="Seed of that sample and of the hasher.")] = 0,
    on_error: Annotated[
        OnError, typer.Option(help="A picture that cannot be read stops the work or is skipped.")
    ] = OnError.stop,
) -> None:
    """Describe pictures, or take vectors; fit a hasher; encode and store them all.

    Stopped while pictures are described, the same command goes on where it stopped.
    """
    from bittern import collecting

    plan = collecting.Plan(
        source=source,
        features=features,
        hasher=hasher,
        n_bits=bits,
        fit_sample=fit_sample,
        random_state=random_state,
        skips=on_error is OnError.skip,
    )
    _show(collecting.create(name, plan))


@index.command("add")
def add_to_index(
    name: Place,
    source: Source,
    on_error: Annotated[
        OnError, typer.Option(help="A picture that cannot be read stops the work or is skipped.")
    ] = OnError.stop,
) -> None:
    """Add pictures or vectors, encoded as the others were."""
    from bittern import collecting

    _show(collecting.add_to(name, source, skips=on_error is OnError.skip))


@index.command("remove")
def remove_from_index(
    name: Place,
    id: Annotated[list[int] | None, typer.Option(help="An item; may be repeated.")] = None,
    where: Annotated[str | None, typer.Option(help="A condition like \"label = 'cat'\".")] = None,
) -> None:
    """Remove items by their ids, or all that meet a condition."""
    from bittern import collecting

    _show(collecting.remove_from(name, id or None, where))


@index.command("info")
def index_info(name: Place) -> None:
    """Tell what a collection holds and how its codes are made."""
    from bittern import collecting

    _show(collecting.describe(name))


@index.command("export")
def export_index(
    name: Place,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet, .npy (octets) or .faiss file.")
    ],
) -> None:
    """Write a collection's items for other programs."""
    from bittern import collecting

    _show(collecting.export(name, output))


class SearchFormat(StrEnum):
    """How answers are written."""

    table = "table"
    json = "json"


@app.command()
def search(
    name: Place,
    image: Annotated[
        list[Path] | None, typer.Option(help="A picture to look for; several are examples.")
    ] = None,
    unlike: Annotated[
        list[Path] | None, typer.Option(help="A picture that answers should not be like.")
    ] = None,
    row: Annotated[
        int | None, typer.Option(help="The item of this id, or this row of --vectors.")
    ] = None,
    vectors: Annotated[Path | None, typer.Option(help="A file of vectors, for --row.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many answers.")] = 20,
    radius: Annotated[
        int | None, typer.Option(help="All within this distance, instead of the k nearest.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="A condition like \"label = 'cat'\".")] = None,
    format: Annotated[
        SearchFormat, typer.Option(help="How the answers are written.")
    ] = SearchFormat.table,
    montage: Annotated[
        Path | None, typer.Option(help="Also draw the pictures found: .png, .jpg.")
    ] = None,
) -> None:
    """Search a collection: by a picture, by a row, or by examples for and against."""
    from bittern import searching

    question = searching.Question(
        images=tuple(image or ()),
        unlike=tuple(unlike or ()),
        row=row,
        vectors=vectors,
        k=k,
        radius=radius,
        where=where,
    )
    answer = searching.ask(name, question)
    _show(searching.FORMATS[format](answer))
    if montage is not None:
        searching.draw_montage(answer, montage)


def _show(text: str) -> None:
    typer.echo(text)


def _stop(sentence: str) -> None:
    typer.echo(f"bittern: {sentence}", err=True)
    sys.exit(2)
