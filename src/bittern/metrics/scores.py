"""Scores: values of metrics with what one needs to trust them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import MissingExtraError
from bittern.metrics import bootstrap, table
from bittern.metrics.micro import Pooled
from bittern.metrics.names import MetricName
from bittern.metrics.precision import retrieved_at
from bittern.metrics.ranks import ratio
from bittern.profile import TieProfile
from bittern.registry import Registry

if TYPE_CHECKING:
    import pandas

__all__ = ["Score", "Scores", "aligned"]


class Score:
    """One metric over all queries.

    ``per_query`` has a value for each query, NaN where it is undefined (None for micro metrics and
    areas, which have one value); ``mean`` leaves those out and ``undefined`` counts them.
    """

    def __init__(self, name: MetricName, profile: TieProfile, random_state: int = 0) -> None:
        self.name = name
        self._profile, self._random_state = profile, random_state
        values = table.compute(profile, name)
        self.per_query: NDArray[np.float64] | None = None
        if isinstance(values, Pooled):
            self._pooled = values
            self.undefined = int(np.isnan(values()))
        else:
            self.per_query = values
            self._pooled = _mean_of(values)
            self.undefined = int(np.isnan(values).sum())

    @property
    def query_ids(self) -> NDArray[np.str_] | None:
        """Names of the queries, or None where they have positions only."""
        return self._profile.query_ids

    @cached_property
    def mean(self) -> float:
        """Mean over the queries where the metric is defined, or the micro value."""
        return self._pooled()

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 % bootstrap interval of the mean over queries; NaN where it cannot be had."""
        if self._pooled.parts.shape[1] == 1:  # an area of real distances: no sums to resample
            return (np.nan, np.nan)
        return bootstrap.interval(self._pooled, self._random_state)

    @cached_property
    def spread(self) -> tuple[float, float] | None:
        """Pessimistic and optimistic mean; None where ties have no order, or it is given."""
        if self.name.tie_rule or not table.can_break_ties(self.name):
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
    """Scores by the names of their metrics; printing them shows a table."""

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
        """Names of the queries, or their positions."""
        ids = self._profile.query_ids
        return np.arange(self._profile.n_queries) if ids is None else ids

    def rows(self) -> list[list[str]]:
        """The table's cells: metric, mean, interval, tie spread, undefined."""
        return [
            [
                name,
                _number(score.mean),
                _range(score.interval),
                _range(score.spread),
                str(score.undefined) if score.undefined else "",
            ]
            for name, score in self.items()
        ]

    def note(self) -> str:
        """What the table rests on, in a sentence or two."""
        n = self._profile.n_queries
        empty = int((self._profile.n_relevant == 0).sum())
        sentence = f"{n:,} quer{'y' if n == 1 else 'ies'}."
        if empty:
            sentence += f" {empty:,} with nothing relevant: left out of means, kept in micro sums."
        lookups = sorted({s.name.radius for s in self.values() if s.name.radius is not None})
        for radius in lookups:
            found = retrieved_at(self._profile, None, radius).retrieved
            if nothing := int((found == 0).sum()):
                sentence += f" {nothing:,} found nothing within radius {radius}."
        return sentence

    def __str__(self) -> str:
        lines = aligned([list(HEADER), *self.rows()])
        return "\n".join([lines[0], "─" * len(lines[0]), *lines[1:], self.note()])

    def per_query_columns(self) -> dict[str, NDArray[Any]]:
        """Query ids, then the values of every metric that has one for each query."""
        columns: dict[str, NDArray[Any]] = {"query": self.query_ids}
        for name, score in self.items():
            if score.per_query is not None:
                columns[name] = score.per_query
        return columns

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row a metric."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError(
                "Scores: to_frame() needs pandas; install it with pip install 'bittern[io]'."
            ) from None
        rows = [
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
        return pandas.DataFrame(rows).set_index("metric")

    def to_json(self, **options: Any) -> str:
        """JSON text, one object a metric; undefined values are null."""
        plain = [_without_nan(score.to_dict()) for score in self.values()]
        return json.dumps(plain, allow_nan=False, **options)

    def to_csv(self) -> str:
        """Comma-separated text, one line a metric, full precision."""
        lines = ["metric,mean,low,high,pessimistic,optimistic,undefined,queries"]
        for name, s in self.items():
            numbers = [s.mean, *s.interval, *(s.spread or (np.nan, np.nan))]
            cells = ["" if np.isnan(x) else repr(x) for x in numbers]
            lines.append(",".join([name, *cells, str(s.undefined), str(self._profile.n_queries)]))
        return "\n".join(lines) + "\n"

    def to_latex(self) -> str:
        """A LaTeX tabular; it needs the package booktabs."""
        rows = [" & ".join(map(_latex, row)) + r" \\" for row in self.rows()]
        head = " & ".join(HEADER).replace("%", r"\%") + r" \\"
        return "\n".join(
            [
                r"\begin{tabular}{lrrrr}",
                r"\toprule",
                head,
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
                "",
            ]
        )


HEADER = ("metric", "mean", "95 % interval", "tie spread", "undefined")


def _mean_of(values: NDArray[np.float64]) -> Pooled:
    defined = ~np.isnan(values)
    parts = np.stack([np.where(defined, values, 0.0), defined], axis=1)
    return Pooled(parts, lambda sums: ratio(sums[:, 0], sums[:, 1]))


def _number(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.4f}"


def _range(pair: tuple[float, float] | None) -> str:
    if pair is None or np.isnan(pair).any():
        return ""
    return f"[{pair[0]:.4f}, {pair[1]:.4f}]"


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows as text: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _latex(cell: str) -> str:
    return cell.replace("_", r"\_").replace("%", r"\%")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and np.isnan(value) else value
