"""Compute scores from a profile, or from codes and a ground truth, and show them in tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from bittern import notebook
from bittern.checks import Float64Array, check_count, check_list
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.extras import import_extra
from bittern.metrics.latex import escaped, tabular
from bittern.metrics.names import MetricName, can_break_ties, compute, parse
from bittern.metrics.pooled import Pooled, interval, mean_of
from bittern.metrics.precision import retrieved_at
from bittern.profile import TieProfile
from bittern.registry import Registry
from bittern.relevance import Relevance

if TYPE_CHECKING:
    import pandas

DEFAULT_METRICS = ("ap", "ndcg", "precision@100", "recall@100", "auprc")
HEADER = ("metric", "mean", "95 % interval", "tie spread", "undefined")

Names = str | MetricName | Iterable[str | MetricName]


@overload
def evaluate(
    profile: TieProfile, /, metrics: Names | None = ..., *, random_state: int = ...
) -> Scores: ...
@overload
def evaluate(
    codes: tuple[Codes, Codes, Relevance],
    /,
    metrics: Names | None = ...,
    *,
    random_state: int = ...,
) -> Scores: ...
@overload
def evaluate(
    queries: Codes,
    database: Codes,
    relevance: Relevance,
    /,
    metrics: Names | None = ...,
    *,
    random_state: int = ...,
) -> Scores: ...


def evaluate(*arguments: Any, metrics: Names | None = None, random_state: int = 0) -> Scores:
    """Scores of a profile under the named metrics: ``bt.evaluate(profile, ["ap", "ndcg@100"])``.

    ``metrics`` are names, ``random_state`` is the seed of the bootstrap intervals.  With queries,
    database and relevance instead of the profile, this is :func:`evaluate_codes`.
    """
    if arguments and isinstance(arguments[0], tuple):
        arguments = (*arguments[0], *arguments[1:])
    kinds = (Codes, Codes, Relevance) if len(arguments) > 2 else (TieProfile,)
    if not 0 <= len(arguments) - len(kinds) <= 1 or not all(map(isinstance, arguments, kinds)):
        got = ", ".join(type(argument).__name__ for argument in arguments) or "nothing"
        raise InputError(
            "evaluate: takes a TieProfile, or queries and database as Codes and a Relevance, "
            f"then the metrics; got {got}."
        )
    if len(arguments) > len(kinds):
        if metrics is not None:
            raise InputError("evaluate: metrics are given twice.")
        *arguments, metrics = arguments  # type: ignore[assignment]
    profile = TieProfile.from_codes(*arguments) if len(kinds) > 1 else arguments[0]
    parsed = _parse_all(DEFAULT_METRICS if metrics is None else metrics)
    check_count(random_state, "evaluate: random_state", least=0)
    return Scores([Score(name, profile, random_state) for name in parsed], profile)


def evaluate_codes(
    queries: Codes,
    database: Codes,
    relevance: Relevance,
    metrics: Names | None = None,
    *,
    random_state: int = 0,
) -> Scores:
    """Scores of all queries against the whole database, under the named metrics.

    ``bt.evaluate_codes(queries, database, relevance, ["ap", "ndcg@100"])``.
    """
    profile = TieProfile.from_codes(queries, database, relevance)
    return evaluate(profile, metrics, random_state=random_state)


def _parse_all(metrics: Names) -> list[MetricName]:
    """The parsed names, without repetitions."""
    if isinstance(metrics, str | MetricName):
        metrics = [metrics]
    parsed = [parse(name) for name in check_list(metrics, "evaluate: metrics", "list of names")]
    if not parsed:
        raise InputError("evaluate: needs at least one metric.")
    return list(dict.fromkeys(parsed))


class Score:
    """One metric over all queries.

    ``per_query`` has a value for each query, NaN where it is undefined; ``mean`` leaves those out
    and ``undefined`` counts them.  Micro metrics and areas have one value, in ``mean``, and
    ``per_query`` is None.
    """

    def __init__(self, name: MetricName, profile: TieProfile, random_state: int = 0) -> None:
        self.name = name
        self._profile, self._random_state = profile, random_state
        values = compute(profile, name)
        self.per_query: Float64Array | None = None
        if isinstance(values, Pooled):
            self._pooled = values
            self.undefined = int(np.isnan(values()))
        else:
            self.per_query = values
            self._pooled = mean_of(values)
            self.undefined = int(np.isnan(values).sum())

    @property
    def query_ids(self) -> NDArray[np.str_] | None:
        """Ids of the queries, or None if they have only positions."""
        return self._profile.query_ids

    @cached_property
    def mean(self) -> float:
        """Mean over the queries where the metric is defined, or the micro value."""
        return self._pooled()

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 % bootstrap interval of the mean over queries; NaN if it does not exist."""
        if self._pooled.parts.shape[1] == 1:  # an area over real distances has no sums to resample
            return (np.nan, np.nan)
        return interval(self._pooled, self._random_state)

    @cached_property
    def spread(self) -> tuple[float, float] | None:
        """Pessimistic and optimistic mean; None if ties do not matter or a rule breaks them."""
        if self.name.tie_rule or not can_break_ties(self.name):
            return None
        worst, best = (
            Score(self._with_rule(rule), self._profile).mean
            for rule in ("pessimistic", "optimistic")
        )
        return worst, best

    def to_dict(self) -> dict[str, Any]:
        """Plain values: mean, interval, spread, undefined and number of queries."""
        return {
            "metric": str(self.name),
            "mean": self.mean,
            "interval": list(self.interval),
            "tie_spread": None if self.spread is None else list(self.spread),
            "undefined": self.undefined,
            "queries": self._profile.n_queries,
        }

    def __float__(self) -> float:
        return self.mean

    def __repr__(self) -> str:
        return f"<{self.name} = {self.mean:.4f}, {self.undefined} undefined>"

    def _with_rule(self, rule: str) -> MetricName:
        name = self.name
        return MetricName(name.metric, name.cutoff, name.radius, (*name.options, rule))


class Scores(Mapping[str, Score]):
    """Scores by the names of their metrics; printing shows a table."""

    def __init__(self, scores: list[Score], profile: TieProfile) -> None:
        self._scores = Registry("score", {str(score.name): score for score in scores})
        self._profile = profile

    def __getitem__(self, name: str) -> Score:
        return self._scores[str(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    @property
    def query_ids(self) -> NDArray[Any]:
        """Ids of the queries, or their positions."""
        ids = self._profile.query_ids
        return np.arange(self._profile.n_queries) if ids is None else ids

    def rows(self) -> list[list[str]]:
        """Cells of the table: metric, mean, interval, tie spread, undefined."""
        return [
            [
                name,
                shown_number(score.mean),
                shown_range(score.interval),
                shown_range(score.spread),
                str(score.undefined) if score.undefined else "",
            ]
            for name, score in self.items()
        ]

    def note(self) -> str:
        """Number of queries, and how many have nothing relevant or nothing within a radius."""
        sentence = self.queries_note()
        lookups = sorted({s.name.radius for s in self.values() if s.name.radius is not None})
        for radius in lookups:
            found = retrieved_at(self._profile, None, radius).retrieved
            if nothing := int((found == 0).sum()):
                sentence += f" {nothing:,} found nothing within radius {radius}."
        return sentence

    def queries_note(self) -> str:
        """Number of queries, and how many have nothing relevant."""
        n, empty = self._profile.n_queries, self.n_empty
        left_out = f" {empty:,} with nothing relevant: left out of means, kept in micro sums."
        return f"{n:,} quer{'y' if n == 1 else 'ies'}.{left_out if empty else ''}"

    @property
    def n_empty(self) -> int:
        """Number of queries with nothing relevant."""
        return int((self._profile.n_relevant == 0).sum())

    def __str__(self) -> str:
        lines = aligned([list(HEADER), *self.rows()])
        return "\n".join([lines[0], "─" * len(lines[0]), *lines[1:], self.note()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return notebook.card("Scores", notebook.table(HEADER, self.rows()), note=self.note())

    def per_query_columns(self) -> dict[str, NDArray[Any]]:
        """Query ids, then the values of every metric with one value per query."""
        columns: dict[str, NDArray[Any]] = {"query": self.query_ids}
        for name, score in self.items():
            if score.per_query is not None:
                columns[name] = score.per_query
        return columns

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row per metric."""
        frames = import_extra("pandas", "Scores.to_frame()")
        return frames.DataFrame(self.records()).set_index("metric")

    def to_json(self, **options: Any) -> str:
        """JSON text, one object per metric; undefined values are null."""
        plain = [with_nulls(score.to_dict()) for score in self.values()]
        return json.dumps(plain, allow_nan=False, **options)

    def to_csv(self) -> str:
        """Comma-separated text, one line per metric, at full precision."""
        return comma_separated(self.records())

    def records(self) -> list[dict[str, Any]]:
        """The columns of each metric; NaN where there is no value."""
        return [
            {
                "metric": name,
                "mean": s.mean,
                "low": s.interval[0],
                "high": s.interval[1],
                "pessimistic": np.nan if s.spread is None else s.spread[0],
                "optimistic": np.nan if s.spread is None else s.spread[1],
                "undefined": s.undefined,
                "queries": self._profile.n_queries,
            }
            for name, s in self.items()
        ]

    def to_latex(self) -> str:
        """A LaTeX tabular that needs the package booktabs."""
        return tabular(HEADER, [list(map(escaped, row)) for row in self.rows()])


def shown_number(value: float) -> str:
    """A score as tables show it."""
    return "undefined" if np.isnan(value) else f"{value:.4f}"


def shown_range(pair: tuple[float, float] | None) -> str:
    """An interval as tables show it; empty if there is none."""
    if pair is None or np.isnan(pair).any():
        return ""
    return f"[{pair[0]:.4f}, {pair[1]:.4f}]"


def comma_separated(records: list[dict[str, Any]]) -> str:
    """A line for each record under a header, in full; NaN is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({key: "" if value != value else value for key, value in record.items()})
    return text.getvalue()


def aligned(rows: list[list[str]], n_left: int = 1, gap: int = 2) -> list[str]:
    """Rows as text: the first ``n_left`` columns aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        (gap * " ").join(
            cell.ljust(width) if i < n_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def with_nulls(value: Any) -> Any:
    """A value as JSON has it: NaN is None, and a NumPy number is Python's."""
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, Mapping):
        return {key: with_nulls(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [with_nulls(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
