"""Score codes or a TREC run against a ground truth: ``bittern evaluate``."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import bittern
from bittern.cli.app import (
    BitOrder,
    Format,
    Layout,
    VectorMetric,
    app,
    check_outputs,
    check_overwriting,
    echo,
    parse_metrics,
)
from bittern.cli.evaluated_files import (
    CodeFiles,
    CodeOptions,
    GroundTruthFiles,
    count_systems,
    parse_systems,
)
from bittern.cli.fit import Key
from bittern.cli.sharded import Dask, Processes, count_shards, executor_for
from bittern.errors import InputError

if TYPE_CHECKING:
    from bittern.metrics import MetricName, Scores, SystemScores
    from bittern.profile import TieProfile

ALONE = ""  # the name of a system that is the only one
FORMATS: dict[Format, Callable[[Scores | SystemScores], str]] = {
    Format.table: str,
    Format.json: lambda scores: scores.to_json(),
    Format.csv: lambda scores: scores.to_csv(),
    Format.latex: lambda scores: scores.to_latex(),
}


@app.command()
def evaluate(
    queries: Annotated[
        Path | None,
        typer.Argument(help="Codes of the queries: a file of bits, ±1, bytes or 64-bit words."),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Argument(
            help="Codes of the database. Omit it to search QUERIES against itself, each query left "
            "out of its own results."
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="A system to compare, instead of QUERIES and DATABASE: NAME=FILE with the arrays "
            "'queries' and 'database', or NAME=QUERIES,DATABASE; may be repeated."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="System that the others are tested against (default: the first)."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(help="randomisation (default), t-test, wilcoxon or sign, paired by query."),
    ] = None,
    query_labels: Annotated[
        Path | None,
        typer.Option(help="Class of each query: an array, or text with one label per line."),
    ] = None,
    database_labels: Annotated[
        Path | None, typer.Option(help="Class of each database item.")
    ] = None,
    query_tags: Annotated[
        Path | None, typer.Option(help="Tags of each query as multi-hot rows.")
    ] = None,
    database_tags: Annotated[Path | None, typer.Option(help="Tags of each database item.")] = None,
    graded: Annotated[
        bool, typer.Option("--graded", help="Use the number of shared tags as the gain.")
    ] = False,
    relevance: Annotated[
        Path | None,
        typer.Option(help="Matrix of gains, queries × database; may be a sparse .npz."),
    ] = None,
    query_vectors: Annotated[
        Path | None, typer.Option(help="Vectors of the queries, for --neighbours.")
    ] = None,
    database_vectors: Annotated[
        Path | None, typer.Option(help="Vectors of the database, for --neighbours.")
    ] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(help="So many nearest items by the vectors are relevant to a query."),
    ] = None,
    distance: Annotated[
        VectorMetric | None,
        typer.Option(help="Distance between vectors, for --neighbours (default: euclidean)."),
    ] = None,
    key: Key = None,
    bits: Annotated[
        int | None, typer.Option(help="Code length, if bytes or words are padded.")
    ] = None,
    signed: Annotated[
        bool,
        typer.Option(
            "--signed", help="Numbers above 0 are set bits, as in ±1 and in outputs of tanh."
        ),
    ] = False,
    code_layout: Layout = None,
    bitorder: Annotated[
        BitOrder | None,
        typer.Option(help="Order of the bits in packed bytes, as in np.packbits (default: big)."),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="TREC run, plain or .gz.")] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC relevance judgements, plain or .gz.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Metrics separated by commas, like 'ap,ndcg@100,precision@r2'."),
    ] = None,
    format: Annotated[Format, typer.Option(help="Format of the scores.")] = Format.table,
    per_query: Annotated[
        Path | None, typer.Option(help="Also write the values of each query to this CSV file.")
    ] = None,
    latex: Annotated[
        Path | None, typer.Option(help="Also write the table to this LaTeX file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also plot precision against recall: .svg, .png or .pdf.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Number of threads (default: all cores).")
    ] = None,
    shards: Annotated[
        Path | None,
        typer.Option(help="A sharded database instead of DATABASE; it has labels, tags, vectors."),
    ] = None,
    processes: Processes = None,
    dask: Dask = None,
) -> None:
    """Score codes, several systems of codes, or a TREC run, against a ground truth.

    Files are .npy, .npz, .pt, .mat, .csv, .tsv, .parquet or .h5. The ground truth is class labels,
    tags, a matrix of gains, or nearest neighbours by vectors; an .npz file of codes may contain its
    own array 'labels' or 'tags'. Scores are means over all orders of tied items; the table also
    shows the spread between the worst and the best order. Several systems are tested against the
    first one.

    Metrics: ap, ndcg, dcg, rr, r-precision; precision, recall, f1, hit-rate (and micro-…, macro-f1)
    at a cut-off (@100) or within a radius (@r2); auprc, interpolated-ap. Options: :optimistic
    :pessimistic :database-order :trec :retrieved :linear :empty-zero :trapezoid.
    """
    names = parse_metrics(metrics)
    truth = GroundTruthFiles(
        query_labels,
        database_labels,
        query_tags,
        database_tags,
        graded,
        relevance,
        query_vectors,
        database_vectors,
        neighbours,
        None if distance is None else distance.value,
        key,
    )
    layout = CodeOptions(bits, signed, code_layout, bitorder)
    outputs = Outputs(format, per_query, plot, latex)
    tests = {"--baseline": baseline, "--test": test}
    _check_source([bool(queries), bool(system), run is not None], qrels, names)
    _check_unused(run is not None, bool(system), {**layout.options, **truth.options}, tests)
    truth.check(sharded=shards is not None)
    layout.check()
    _check_shards(shards, queries, database, processes, dask)
    from bittern.io.arrays import parsing_once

    with parsing_once():  # a file may have both codes and labels
        systems = parse_systems(system) if system else {}
        if queries is not None:
            systems = {ALONE: CodeFiles(queries, database)}
        outputs.check([run, qrels, *truth.files, *_code_files(systems)])
        lengths: dict[str, int] = {}
        if run is not None and qrels is not None:
            profiles = {ALONE: bittern.TieProfile.from_trec(run, qrels)}
        elif shards is not None and queries is not None:
            with executor_for(processes, dask) as executor:
                profiles = {ALONE: count_shards(queries, shards, truth, layout, executor)}
        else:
            profiles, lengths = count_systems(systems, truth, layout, threads)
    scores = {name: bittern.evaluate(profile, names) for name, profile in profiles.items()}
    if system:
        from bittern.metrics import compare_systems

        test_name = "randomisation" if test is None else test
        outputs.write(compare_systems(scores, baseline, test=test_name, n_bits=lengths), profiles)
    else:
        outputs.write(scores[ALONE], profiles)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The options that say what is shown and written."""

    format: Format
    per_query: Path | None
    plot: Path | None
    latex: Path | None

    def check(self, inputs: list[Path | None]) -> None:
        """Raise an error now if a file could not be written later."""
        check_outputs(self.per_query, self.latex, plot=self.plot)
        check_overwriting([self.per_query, self.latex, self.plot], inputs)

    def write(self, scores: Scores | SystemScores, profiles: dict[str, TieProfile]) -> None:
        """Write the files that were asked for, and print the scores."""
        from bittern.io.files import write_text

        if self.per_query is not None:
            _write_per_query(scores, self.per_query)
        if self.latex is not None:
            write_text(self.latex, scores.to_latex())
        if self.plot is not None:
            _draw(self.plot, profiles)
        echo(FORMATS[self.format](scores).rstrip("\n"))


def _check_source(given: list[bool], qrels: Path | None, metrics: tuple[MetricName, ...]) -> None:
    """Raise InputError unless just one of codes, systems and a run is given."""
    _, has_systems, has_run = given
    if has_run != (qrels is not None):
        raise InputError("evaluate: --run and --qrels go together.")
    if has_systems and sum(given) > 1:
        raise InputError("evaluate: --system names all files of codes; give no others beside it.")
    if sum(given) != 1:
        raise InputError(
            "evaluate: give files of codes (QUERIES and DATABASE), --system for several systems, "
            "or --run with --qrels."
        )
    if not has_run and any(name.tie_rule == "trec" for name in metrics):
        raise InputError(
            "evaluate: ':trec' breaks ties by document ids; it is for --run with --qrels."
        )


def _check_shards(
    shards: Path | None,
    queries: Path | None,
    database: Path | None,
    processes: int | None,
    dask: str | None,
) -> None:
    """Raise InputError if options for shards do not fit the others."""
    if shards is None and (processes is not None or dask is not None):
        raise InputError("evaluate: --processes and --dask are for --shards.")
    if shards is not None and (queries is None or database is not None):
        raise InputError("evaluate: --shards takes the place of DATABASE; give QUERIES beside it.")


def _check_unused(
    has_run: bool,
    has_systems: bool,
    of_codes: Mapping[str, object],
    of_systems: Mapping[str, object],
) -> None:
    """Raise InputError if an option would be ignored."""
    for option, value in of_codes.items():
        if has_run and value not in (None, False):
            raise InputError(
                f"evaluate: {option} is for codes; the ground truth of a run is --qrels."
            )
    for option, value in of_systems.items():
        if not has_systems and value is not None:
            raise InputError(f"evaluate: {option} is for several systems, given with --system.")


def _code_files(systems: dict[str, CodeFiles]) -> list[Path | None]:
    return [path for files in systems.values() for path in (files.queries, files.database)]


def _draw(path: Path, profiles: dict[str, TieProfile]) -> None:
    from bittern.report.plots import draw_pr_curves, draw_pr_curves_of_systems

    curves = {
        name: (bittern.pr_curve(profile), bittern.interpolated_pr_curve(profile))
        for name, profile in profiles.items()
    }
    if len(curves) == 1:
        draw_pr_curves(path, *next(iter(curves.values())))
    else:
        draw_pr_curves_of_systems(path, curves)


def _write_per_query(scores: Scores | SystemScores, path: Path) -> None:
    """One line per query, one column per metric; undefined values are empty."""
    from bittern.io.files import write_text

    columns = scores.per_query_columns()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow(["" if value != value else value for value in row])
    write_text(path, text.getvalue())
