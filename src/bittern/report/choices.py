"""What a search chose, as a table: for the page, Markdown and the terminal."""

from __future__ import annotations

from bittern.analysis import Analysis, SearchOutcome, analyse
from bittern.experiments.records import Records
from bittern.experiments.search import point_text
from bittern.metrics.scores import aligned
from bittern.report.results_table import bits_of, number

CAPTION = "Chosen on held-out rows; test queries were not used"


def choice_header(analysis: Analysis) -> list[str]:
    """The columns; the score is that of held-out rows."""
    return ["method", "length", "chosen", analysis.protocol.search_metric, "points", "range"]


def choice_rows(analysis: Analysis) -> list[list[str]]:
    """A row per method and length: what was chosen, its score, and all scores' range."""
    return [_row(outcome) for outcome in analysis.searches]


def choices_to_text(records: Records | Analysis) -> str:
    """The choices as plain text."""
    analysis = analyse(records)
    rows = aligned([choice_header(analysis), *choice_rows(analysis)], n_left=3)
    return "\n".join([CAPTION, "", *rows])


def _row(outcome: SearchOutcome) -> list[str]:
    low, high = outcome.reach
    lacking = f" ({outcome.n_missing} trials missing)" if outcome.n_missing else ""
    return [
        outcome.method,
        bits_of(outcome.n_bits),
        point_text(outcome.chosen.point),
        number(outcome.chosen.score),
        f"{len(outcome.tried)} of {outcome.size}{lacking}",
        f"{number(low)} to {number(high)}",
    ]
