"""Several systems on the same queries, in one table: scores, tie spreads and significance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.metrics.latex import escaped, tabular
from bittern.metrics.scores import (
    Score,
    Scores,
    aligned,
    comma_separated,
    shown_number,
    shown_range,
    with_nulls,
)
from bittern.metrics.significance import Comparison, Comparisons, compare
from bittern.registry import Registry

BEST, DIFFERENT, TIED = "*", "†", "≈"
LATEX_MARKS = {DIFFERENT: r"\dagger", TIED: r"\approx"}


class SystemScores(Mapping[str, Scores]):
    """The scores of each system by its name; printing shows one table.

    ``comparisons`` has, for each metric with a value per query, the paired tests of every system
    against ``baseline``, Holm-corrected over the systems.
    """

    def __init__(
        self,
        scores: Mapping[str, Scores],
        baseline: str,
        comparisons: Mapping[str, Comparisons],
        n_bits: Mapping[str, int] | None = None,
    ) -> None:
        self._scores = Registry("system", dict(scores))
        self.baseline, self.comparisons = baseline, dict(comparisons)
        self.n_bits = dict(n_bits or {})
        self.metrics = list(next(iter(scores.values())))

    def __getitem__(self, name: str) -> Scores:
        return self._scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def comparison(self, system: str, metric: str) -> Comparison | None:
        """The test of a system against the baseline; None for the baseline, or without a test."""
        tested = self.comparisons.get(metric, ())
        return next((one for one in tested if one.first == system), None)

    def within_tie_spread(self, system: str, metric: str) -> bool:
        """Whether another order of tied items could reverse the difference from the baseline.

        That is, the mean of one of the two lies inside the tie spread of the other.
        """
        one, other = self[system][metric], self[self.baseline][metric]
        return system != self.baseline and (_is_inside(one, other) or _is_inside(other, one))

    def is_best(self, system: str, metric: str) -> bool:
        """Whether no system has a higher mean."""
        means = [scores[metric].mean for scores in self.values()]
        return bool(self[system][metric].mean == np.nanmax([*means, -np.inf]))

    def header(self) -> list[str]:
        """Names of the columns."""
        return ["method", *(["bits"] if self.n_bits else []), *self.metrics]

    def note(self) -> str:
        """The marks, the test, and what is undefined, in sentences."""
        first = self[self.baseline]
        lines = [self._legend(), self._tests(), *self._untested(), first.queries_note()]
        return "\n".join(filter(None, [*lines, *self._undefined()]))

    def __str__(self) -> str:
        rows = [[*self._head(name), *(self._cell(name, m) for m in self.metrics)] for name in self]
        heading = self.header()
        lines = [line.rstrip() for line in aligned([heading, *rows])]
        rule = "─" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, self.note()])

    def __repr__(self) -> str:
        return str(self)

    def per_query_columns(self) -> dict[str, NDArray[Any]]:
        """The system and its values for each query, one system after the other."""
        parts = {name: scores.per_query_columns() for name, scores in self.items()}
        names = [np.full(len(part["query"]), name) for name, part in parts.items()]
        columns = {"system": np.concatenate(names)}
        for column in next(iter(parts.values())):
            columns[column] = np.concatenate([part[column] for part in parts.values()])
        return columns

    def to_json(self, **options: Any) -> str:
        """JSON text, one object per system; undefined values are null."""
        plain = [
            {
                "system": name,
                "n_bits": self.n_bits.get(name),
                "scores": [
                    score.to_dict() | {"comparison": self._compared(name, metric)}
                    for metric, score in scores.items()
                ],
            }
            for name, scores in self.items()
        ]
        return json.dumps(with_nulls(plain), allow_nan=False, **options)

    def to_csv(self) -> str:
        """Comma-separated text, one line per system and metric, at full precision."""
        return comma_separated(
            [
                {"system": name, "n_bits": self.n_bits.get(name, "")}
                | record
                | (self._compared(name, record["metric"]) or NO_COMPARISON)
                for name, scores in self.items()
                for record in scores.records()
            ]
        )

    def to_latex(self) -> str:
        """A LaTeX tabular that needs the package booktabs, with the note as a comment above it."""
        rows = [
            [*map(escaped, self._head(name)), *(self._latex_cell(name, m) for m in self.metrics)]
            for name in self
        ]
        comment = "".join(f"% {line}\n" for line in self.note().replace("*", "bold").splitlines())
        return comment + tabular(self.header(), rows)

    def _head(self, name: str) -> list[str]:
        return [name, *([str(self.n_bits[name])] if self.n_bits else [])]

    def _marks(self, name: str, metric: str) -> str:
        found = self.comparison(name, metric)
        is_different = found is not None and found.significant
        return DIFFERENT * is_different + TIED * self.within_tie_spread(name, metric)

    def _cell(self, name: str, metric: str) -> str:
        """The mean between its marks, and the tie spread; digits align."""
        score = self[name][metric]
        best = BEST if self.is_best(name, metric) else " "
        marks = f"{self._marks(name, metric):<2}"
        return f"{best}{shown_number(score.mean)}{marks} {shown_range(score.spread)}".rstrip(" ")

    def _latex_cell(self, name: str, metric: str) -> str:
        score = self[name][metric]
        value = shown_number(score.mean)
        value = rf"\textbf{{{value}}}" if self.is_best(name, metric) else value
        marks = "".join(LATEX_MARKS[mark] for mark in self._marks(name, metric))
        raised = f"$^{{{marks}}}$" if marks else ""
        spread = shown_range(score.spread)
        return f"{value}{raised} {{\\small {spread}}}" if spread else f"{value}{raised}"

    def _compared(self, name: str, metric: str) -> dict[str, Any] | None:
        found = self.comparison(name, metric)
        if found is None:
            return None
        return {
            "baseline": found.second,
            "difference": found.difference,
            "p_value": found.p_value,
            "adjusted_p": found.adjusted_p,
            "significant": found.significant,
            "within_tie_spread": self.within_tie_spread(name, metric),
        }

    def _legend(self) -> str:
        used = "".join(self._marks(name, metric) for name in self for metric in self.metrics)
        parts = [f"{BEST} best of its column"]
        parts += [f"{DIFFERENT} differs from {self.baseline}"] if DIFFERENT in used else []
        parts += [f"{TIED} another order of tied items could reverse the difference"] * (
            TIED in used
        )
        spread = any(s.spread for scores in self.values() for s in scores.values())
        parts += ["[worst, best order of tied items]"] if spread else []
        return "; ".join(parts) + "."

    def _tests(self) -> str:
        """Which test, and how it was corrected."""
        tested = next(iter(self.comparisons.values()), None)
        if tested is None:
            return ""
        n, outcome = len(self) - 1, tested[0].outcome
        over = f", Holm-corrected over {n} systems for each metric" if n > 1 else ""
        return (
            f"Compared with {self.baseline}: {outcome.name} paired by query, {outcome.alternative}"
            f"{over}, α = {tested.alpha:g}."
        )

    def _untested(self) -> list[str]:
        """Which metrics are not tested, and which systems have too few pairs."""
        pooled = [m for m in self.metrics if self[self.baseline][m].per_query is None]
        verb = "has" if len(pooled) == 1 else "have"
        lines = [f"{', '.join(pooled)} {verb} one value for all queries: not tested."]
        few = [
            f"{metric} of {name}"
            for metric in self.metrics
            for name in self
            if metric not in pooled
            and name != self.baseline
            and self.comparison(name, metric) is None
        ]
        return lines * bool(pooled) + [f"Too few pairs to test {', '.join(few)}."] * bool(few)

    def _undefined(self) -> list[str]:
        """How many queries each system leaves undefined, beside those with nothing relevant."""
        lines = []
        for metric in self.metrics:
            counts = {
                name: scores[metric].undefined - scores.n_empty
                for name, scores in self.items()
                if scores[metric].per_query is not None
            }
            listed = ", ".join(f"{n:,} of {name}" for name, n in counts.items() if n > 0)
            lines += [f"{metric} is undefined for more queries: {listed}."] * bool(listed)
        return lines


def compare_systems(
    scores: Mapping[str, Scores],
    baseline: str | None = None,
    *,
    test: str = "randomisation",
    alpha: float = 0.05,
    n_bits: Mapping[str, int] | None = None,
) -> SystemScores:
    """Scores of several systems on the same queries, each tested against the baseline.

    The baseline is the first system if none is named.  ``test`` is a name in
    ``significance.TESTS``; p-values are two-sided and Holm-corrected over the systems, separately
    for each metric; a system with fewer than two pairs is not tested.  ``n_bits`` are the code
    lengths, for the table.
    """
    if not isinstance(scores, Mapping) or len(scores) < 2:
        raise InputError("compare_systems: needs the scores of at least 2 systems, by name.")
    if not isinstance(n_bits, Mapping | None):
        raise InputError("compare_systems: n_bits must be the lengths of codes, by name.")
    baseline = next(iter(scores)) if baseline is None else baseline
    Registry("system", dict(scores))[baseline]
    metrics = {name: list(of) for name, of in scores.items()}
    if any(names != metrics[baseline] for names in metrics.values()):
        raise InputError("compare_systems: all systems must have the same metrics.")
    sizes = {name: len(of.query_ids) for name, of in scores.items()}
    for name, n in sizes.items():
        if n != sizes[baseline]:
            raise InputError(
                f"compare_systems: {name} has {n} queries and {baseline} has {sizes[baseline]}; "
                "all systems must have the same queries."
            )
    comparisons = {
        metric: compare(values, baseline, test=test, alpha=alpha)
        for metric in metrics[baseline]
        if baseline in (values := _testable(scores, metric, baseline)) and len(values) > 1
    }
    return SystemScores(scores, baseline, comparisons, n_bits)


def _testable(scores: Mapping[str, Scores], metric: str, baseline: str) -> dict[str, Any]:
    """Values per query of the baseline, and of each system with two pairs or more."""
    first = scores[baseline][metric].per_query
    if first is None:
        return {}
    values = {name: of[metric].per_query for name, of in scores.items()}
    return {
        name: v for name, v in values.items() if v is not None and (~np.isnan(v - first)).sum() > 1
    }


def _is_inside(one: Score, other: Score) -> bool:
    """Whether the mean of one lies inside the tie spread of the other."""
    return other.spread is not None and other.spread[0] < one.mean < other.spread[1]


NO_COMPARISON = dict.fromkeys(
    ("baseline", "difference", "p_value", "adjusted_p", "significant", "within_tie_spread"), ""
)
