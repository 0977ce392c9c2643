"""Score codes or a TREC run against a ground truth: ``bittern evaluate``."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import bittern
from bittern.cli.app import (
    BitOrder,
    Format,
    VectorMetric,
    app,
    check_outputs,
    check_overwriting,
    parse_metrics,
)
from bittern.cli.fit import Key
from bittern.errors import InputError
from bittern.progress import Bar

if TYPE_CHECKING:
    from bittern.codes import Codes
    from bittern.metrics import Scores
    from bittern.profile import TieProfile
    from bittern.relevance import Relevance

FORMATS: dict[Format, Callable[[Scores], str]] = {
    Format.table: str,
    Format.json: lambda scores: scores.to_json(),
    Format.csv: lambda scores: scores.to_csv(),
    Format.latex: lambda scores: scores.to_latex(),
}


@app.command()
def evaluate(
    queries: Annotated[
        Path | None,
        typer.Argument(help="Codes of the queries: .npy or .npz of bits, bytes or 64-bit words."),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Argument(
            help="Codes of the database. Omit it to search QUERIES against itself, each query left "
            "out of its own results."
        ),
    ] = None,
    query_labels: Annotated[
        Path | None,
        typer.Option(help="Class of each query: .npy, .npz, or text with one label per line."),
    ] = None,
    database_labels: Annotated[
        Path | None, typer.Option(help="Class of each database item.")
    ] = None,
    query_tags: Annotated[
        Path | None, typer.Option(help="Tags of each query as multi-hot rows: .npy or .npz.")
    ] = None,
    database_tags: Annotated[Path | None, typer.Option(help="Tags of each database item.")] = None,
    graded: Annotated[
        bool, typer.Option("--graded", help="Use the number of shared tags as the gain.")
    ] = False,
    relevance: Annotated[
        Path | None,
        typer.Option(help="Matrix of gains, queries × database: .npy, .npz or sparse .npz."),
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
        bool, typer.Option("--signed", help="Read codes of ±1: numbers above 0 are set bits.")
    ] = False,
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
    plot: Annotated[
        Path | None, typer.Option(help="Also plot precision against recall: .svg, .png or .pdf.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Number of threads (default: all cores).")
    ] = None,
) -> None:
    """Score codes, or a TREC run, against a ground truth.

    Scores are means over all orders of tied items; the table also shows the spread between the
    worst and the best order. The ground truth is class labels, tags, a matrix of gains, or nearest
    neighbours by vectors; an .npz file of codes may contain its own array 'labels' or 'tags'.

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
    formats = {"--bits": bits, "--signed": signed, "--bitorder": bitorder}
    _check_source(queries, run, qrels, {**formats, **truth.options})
    truth.check()
    if run is None and any(name.tie_rule == "trec" for name in names):
        raise InputError(
            "evaluate: ':trec' breaks ties by document ids; it is for --run with --qrels."
        )
    check_outputs(per_query, plot=plot)
    check_overwriting([per_query, plot], [queries, database, run, qrels, *truth.files])
    if run is not None and qrels is not None:
        profile = bittern.TieProfile.from_trec(run, qrels)
    else:
        from bittern.inputs import read_codes

        assert queries is not None
        read = partial(
            read_codes, n_bits=bits, signed=signed, bitorder=(bitorder or BitOrder.big).value
        )
        profile = _count_codes(queries, database, truth, read, threads)
    scores = bittern.evaluate(profile, names)
    if per_query is not None:
        _write_per_query(scores, per_query)
    if plot is not None:
        from bittern.report.plots import draw_pr_curves

        draw_pr_curves(plot, bittern.pr_curve(profile), bittern.interpolated_pr_curve(profile))
    typer.echo(FORMATS[format](scores).rstrip("\n"))


@dataclass(frozen=True, slots=True)
class GroundTruthFiles:
    """The options that say what is relevant."""

    query_labels: Path | None
    database_labels: Path | None
    query_tags: Path | None
    database_tags: Path | None
    graded: bool
    relevance: Path | None
    query_vectors: Path | None
    database_vectors: Path | None
    neighbours: int | None
    distance: str | None
    key: str | None

    @property
    def options(self) -> dict[str, Path | bool | int | str | None]:
        """Each option by its name on the command line."""
        return {
            "--query-labels": self.query_labels,
            "--database-labels": self.database_labels,
            "--query-tags": self.query_tags,
            "--database-tags": self.database_tags,
            "--graded": self.graded,
            "--relevance": self.relevance,
            "--query-vectors": self.query_vectors,
            "--database-vectors": self.database_vectors,
            "--neighbours": self.neighbours,
            "--distance": self.distance,
            "--key": self.key,
        }

    @property
    def files(self) -> list[Path]:
        """The files given."""
        return [value for value in self.options.values() if isinstance(value, Path)]

    @property
    def has_labels(self) -> bool:
        """Whether a file of labels is given."""
        return self.query_labels is not None or self.database_labels is not None

    @property
    def has_tags(self) -> bool:
        """Whether a file of tags is given."""
        return self.query_tags is not None or self.database_tags is not None

    def check(self) -> None:
        """Raise InputError if options contradict each other."""
        if self.neighbours is None:
            for option in ("--query-vectors", "--database-vectors", "--distance", "--key"):
                if self.options[option] is not None:
                    raise InputError(f"evaluate: {option} needs --neighbours, such as 10.")
        elif self.query_vectors is None or self.database_vectors is None:
            raise InputError("evaluate: --neighbours needs --query-vectors and --database-vectors.")
        if self.neighbours is not None and (self.has_labels or self.has_tags or self.graded):
            raise InputError(f"evaluate: {ONE_TRUTH}")
        if self.graded and (self.has_labels or self.relevance is not None):
            raise InputError(
                "evaluate: --graded is for tags; labels have no grades, --relevance has its own."
            )
        matrices = (self.relevance is not None) + (self.neighbours is not None)
        if self.has_labels + self.has_tags + matrices > 1:
            raise InputError(f"evaluate: {ONE_TRUTH}")

    def read(self, queries: Path, database: Path | None) -> Relevance:
        """Gains, labels or tags from the files given; otherwise from the files of codes."""
        from bittern import inputs

        if self.relevance is not None:
            return bittern.Relevance.from_matrix(inputs.read_gains(self.relevance))
        if self.neighbours is not None:
            return self._nearest(database)
        if not (self.has_tags or self.graded):
            given = self.query_labels, self.database_labels
            if labels := _find_files("labels", given, queries, database):
                query_labels, database_labels = map(inputs.read_labels, labels)
                return bittern.Relevance.from_classes(query_labels, database_labels)
        given = self.query_tags, self.database_tags
        if tags := _find_files("tags", given, queries, database):
            query_tags, database_tags = map(inputs.read_tags, tags)
            return bittern.Relevance.from_tags(query_tags, database_tags, graded=self.graded)
        raise InputError(
            "evaluate: there is no ground truth; give --query-labels and --database-labels, "
            "--query-tags and --database-tags, --relevance, or --neighbours, or an array 'labels' "
            "or 'tags' in the .npz files of codes."
        )

    def _nearest(self, database: Path | None) -> Relevance:
        """The nearest items by the vectors."""
        from bittern.checks import check_count
        from bittern.inputs import read_vectors

        if database is None:
            raise InputError("evaluate: --neighbours is for two files of codes.")
        assert self.query_vectors is not None and self.database_vectors is not None
        files = self.query_vectors, self.database_vectors
        queries, items = (read_vectors(path, key=self.key) for path in files)
        if queries.shape[1:] != items.shape[1:]:
            raise InputError(
                f"evaluate: {queries.path} has vectors of {queries.shape[1]} numbers, "
                f"{items.path} of {items.shape[1]}."
            )
        k = check_count(self.neighbours, "evaluate: --neighbours", most=len(items))
        metric = self.distance or "euclidean"
        return bittern.Relevance.from_neighbours(queries[:], items[:], k, metric=metric)


ONE_TRUTH = "give one ground truth: labels, tags, --relevance or --neighbours."


def _find_files(
    kind: str, given: tuple[Path | None, Path | None], queries: Path, database: Path | None
) -> tuple[Path, Path] | None:
    """The files with labels (or tags) of queries and database, by default those of the codes."""
    from bittern.inputs import has_array

    query_file, database_file = given
    if database is None:  # queries are the database, so one of the two is enough
        query_file = query_file or database_file
        database_file = database_file or query_file
    if query_file is None and has_array(queries, kind):
        query_file = queries
    if database_file is None and has_array(database or queries, kind):
        database_file = database or queries
    if query_file is None and database_file is None:
        return None
    if query_file is None or database_file is None:
        missing = "query" if query_file is None else "database"
        raise InputError(f"evaluate: --{missing}-{kind} is missing.")
    return query_file, database_file


def _check_source(
    queries: Path | None, run: Path | None, qrels: Path | None, code_options: dict[str, object]
) -> None:
    """Raise InputError unless codes or a run are given; a run takes no options of codes."""
    if (run is None) != (qrels is None):
        raise InputError("evaluate: --run and --qrels go together.")
    if (run is None) == (queries is None):
        raise InputError(
            "evaluate: give files of codes (QUERIES and DATABASE), or --run with --qrels."
        )
    unused = [name for name, value in code_options.items() if value not in (None, False)]
    if run is not None and unused:
        raise InputError(
            f"evaluate: {unused[0]} is for codes; the ground truth of a run is --qrels."
        )


def _count_codes(
    queries: Path,
    database: Path | None,
    truth: GroundTruthFiles,
    read: Callable[[Path], Codes],
    n_threads: int | None,
) -> TieProfile:
    """Read codes and ground truth, and count, with a progress bar."""
    import numpy as np

    q = read(queries)
    d = q if database is None else read(database)
    if q.n_bits != d.n_bits:
        raise InputError(
            f"evaluate: {queries} has codes of {q.n_bits} bits, {database} of {d.n_bits}; if bytes "
            "are padded, give the length with --bits."
        )
    relevance = truth.read(queries, database)
    for what, path, n_truth, n_codes in (
        ("queries", queries, relevance.n_queries, len(q)),
        ("items", database or queries, relevance.n_database, len(d)),
    ):
        if n_truth != n_codes:
            raise InputError(
                f"evaluate: the ground truth is for {n_truth} {what}, {path} has {n_codes} codes."
            )
    if database is None:
        relevance = relevance.excluding(np.arange(len(q)))
    with Bar("comparing") as progress:
        return bittern.TieProfile.from_codes(
            q, d, relevance, n_threads=n_threads, progress=progress
        )


def _write_per_query(scores: Scores, path: Path) -> None:
    """One line per query, one column per metric; undefined values are empty."""
    from bittern.io.files import write_text

    columns = scores.per_query_columns()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow(["" if value != value else value for value in row])
    write_text(path, text.getvalue())
