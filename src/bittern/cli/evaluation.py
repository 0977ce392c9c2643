"""What ``bittern evaluate`` does: files in, a profile and its scores out."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from bittern import inputs
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.io.files import atomic_write
from bittern.metrics import (
    DEFAULT_METRICS,
    MetricName,
    Scores,
    interpolated_pr_curve,
    parse,
    pr_curve,
)
from bittern.parallel import Progress
from bittern.profile import TieProfile
from bittern.relevance import Relevance

__all__ = ["FORMATS", "Request", "check_outputs", "parse_metrics", "profile_of", "write"]

FORMATS: dict[str, Callable[[Scores], str]] = {
    "table": str,
    "json": Scores.to_json,
    "csv": Scores.to_csv,
    "latex": Scores.to_latex,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The files of an evaluation: codes with a ground truth, or a TREC run with judgements.

    ``per_query`` and ``plot`` are written; all that can be wrong with them is refused here, before
    the work.
    """

    queries: Path | None = None
    database: Path | None = None
    query_labels: Path | None = None
    database_labels: Path | None = None
    query_tags: Path | None = None
    database_tags: Path | None = None
    graded: bool = False
    relevance: Path | None = None
    n_bits: int | None = None
    signed: bool = False
    run: Path | None = None
    qrels: Path | None = None
    metrics: tuple[MetricName, ...] = tuple(map(parse, DEFAULT_METRICS))
    per_query: Path | None = None
    plot: Path | None = None

    def __post_init__(self) -> None:
        if (self.run is None) != (self.qrels is None):
            raise InputError("evaluate: --run and --qrels go together.")
        if (self.run is None) == (self.queries is None):
            raise InputError(
                "evaluate: give files of codes (QUERIES and DATABASE), or --run with --qrels."
            )
        self._check_options()
        check_outputs(per_query=self.per_query, plot=self.plot)
        self._check_inputs_stay()

    def _check_options(self) -> None:
        """Refuse what would be ignored, or fail after the work."""
        given = {f.name for f in fields(self) if getattr(self, f.name) not in (None, False)}
        unused = sorted(given & ONLY_FOR_CODES) if self.run is not None else []
        if unused:
            option = "--" + unused[0].replace("n_bits", "bits").replace("_", "-")
            raise InputError(
                f"evaluate: {option} is for codes; a run has its ground truth in --qrels."
            )
        if self.graded and given & {"query_labels", "database_labels", "relevance"}:
            raise InputError(
                "evaluate: --graded is for tags; labels have no grades, --relevance has its own."
            )
        if self.run is None and any(name.tie_rule == "trec" for name in self.metrics):
            raise InputError(
                "evaluate: ':trec' breaks ties by document ids; it is for --run with --qrels."
            )

    def _check_inputs_stay(self) -> None:
        paths = [
            (f.name, path.resolve())
            for f in fields(self)
            if isinstance(path := getattr(self, f.name), Path)
        ]
        for output in (path for name, path in paths if name in ("per_query", "plot")):
            if [path for _, path in paths].count(output) > 1:
                raise InputError(f"{output}: would be written over; give it another name.")


ONLY_FOR_CODES = {
    "query_labels",
    "database_labels",
    "query_tags",
    "database_tags",
    "graded",
    "relevance",
    "n_bits",
    "signed",
}


def parse_metrics(names: str | None) -> tuple[MetricName, ...]:
    """Names with commas between; the default ones if there are none."""
    listed = DEFAULT_METRICS if names is None else [name.strip() for name in names.split(",")]
    return tuple(map(parse, listed))


def check_outputs(*, per_query: Path | None = None, plot: Path | None = None) -> None:
    """Refuse, before the work, a path that could not be written after it."""
    if plot is not None:
        from bittern.report.figures import figure_format

        figure_format(plot)
    for path in (per_query, plot):
        if path is None:
            continue
        if path.is_dir():
            raise FileError(f"{path}: is a folder; give the name of a file to write.")
        if path.is_symlink() or (path.exists() and not path.is_file()):
            # A whole file takes the place of what is there; /dev/stdout must not be lost to it.
            raise FileError(f"{path}: is a link or a device; give the name of a file to write.")
        if not path.parent.is_dir():
            raise FileError(f"{path}: cannot be written, there is no folder {path.parent}.")
        if not os.access(path.parent, os.W_OK):
            raise FileError(f"{path}: cannot be written, the folder {path.parent} is read-only.")


def profile_of(
    request: Request, *, n_threads: int | None = None, progress: Progress | None = None
) -> TieProfile:
    """Read the files and count."""
    if request.run is not None and request.qrels is not None:
        return TieProfile.from_trec(request.run, request.qrels)
    assert request.queries is not None
    queries = _codes(request, request.queries)
    database = queries if request.database is None else _codes(request, request.database)
    if queries.n_bits != database.n_bits:
        raise InputError(
            f"evaluate: {request.queries} has codes of {queries.n_bits} bits, {request.database} "
            f"of {database.n_bits}; where octets are padded, give the length with --bits."
        )
    truth = _truth(request, len(queries), len(database))
    if request.database is None:
        truth = truth.excluding(np.arange(len(queries)))
    return TieProfile.from_codes(queries, database, truth, n_threads=n_threads, progress=progress)


def write(request: Request, profile: TieProfile, scores: Scores) -> None:
    """Write the files that were asked for."""
    if request.per_query is not None:
        _write_per_query(scores, request.per_query)
    if request.plot is not None:
        from bittern.report.figures import draw_pr_curves

        draw_pr_curves(request.plot, pr_curve(profile), interpolated_pr_curve(profile))


def _write_per_query(scores: Scores, path: Path) -> None:
    """One line a query, one column a metric; undefined values are empty."""
    columns = scores.per_query_columns()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow(["" if value != value else value for value in row])
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def _codes(request: Request, path: Path) -> Codes:
    return inputs.read_codes(path, n_bits=request.n_bits, signed=request.signed)


def _truth(request: Request, n_queries: int, n_database: int) -> Relevance:
    """The one ground truth that was given, checked against the codes."""
    truth = _read_truth(request)
    for what, path, n_truth, n_codes in (
        ("queries", request.queries, truth.n_queries, n_queries),
        ("items", request.database or request.queries, truth.n_database, n_database),
    ):
        if n_truth != n_codes:
            raise InputError(
                f"evaluate: the ground truth is for {n_truth} {what}, {path} has {n_codes} codes."
            )
    return truth


def _read_truth(request: Request) -> Relevance:
    """Gains, labels or tags from the files asked for; else those that the codes bring."""
    has_labels = request.query_labels is not None or request.database_labels is not None
    has_tags = request.query_tags is not None or request.database_tags is not None
    if has_labels + has_tags + (request.relevance is not None) > 1:
        raise InputError("evaluate: give one ground truth: labels, tags, or --relevance.")
    if request.relevance is not None:
        return Relevance.from_matrix(inputs.read_gains(request.relevance))
    labels = None
    if not (has_tags or request.graded):
        labels = _sources(request, "labels", request.query_labels, request.database_labels)
    if labels is not None:
        query_labels, database_labels = map(inputs.read_labels, labels)
        return Relevance.from_classes(query_labels, database_labels)
    tags = _sources(request, "tags", request.query_tags, request.database_tags)
    if tags is not None:
        query_tags, database_tags = map(inputs.read_tags, tags)
        return Relevance.from_tags(query_tags, database_tags, graded=request.graded)
    raise InputError(
        "evaluate: there is no ground truth; give --query-labels and --database-labels, "
        "--query-tags and --database-tags, or --relevance, or an array 'labels' or 'tags' in the "
        ".npz files of codes."
    )


def _sources(
    request: Request, kind: str, query_file: Path | None, database_file: Path | None
) -> tuple[Path, Path] | None:
    """Files of the queries' and the database's labels (or tags): as given, or the codes' own."""
    assert request.queries is not None
    own = request.database or request.queries
    if request.database is None:  # one file: what is said of one side holds for both
        query_file = query_file or database_file
        database_file = database_file or query_file
    if query_file is None and inputs.has_array(request.queries, kind):
        query_file = request.queries
    if database_file is None and inputs.has_array(own, kind):
        database_file = own
    if query_file is None and database_file is None:
        return None
    if query_file is None or database_file is None:
        missing = "query" if query_file is None else "database"
        raise InputError(f"evaluate: --{missing}-{kind} is missing.")
    return query_file, database_file
