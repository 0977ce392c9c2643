"""Two experiments in one table, as plain text or Markdown."""

from __future__ import annotations

from math import isnan

from bittern.analysis import Difference, Differences
from bittern.metrics.scores import aligned
from bittern.report.markdown import markdown_text
from bittern.report.results_table import DIGITS, metric_title, number

HEADINGS = ("method", "length", "runs", "first", "second", "difference", "95 % interval", "p")


def differences_to_text(found: Differences) -> str:
    """The two titles, a row for each method and length, and a sentence."""
    rows = [list(HEADINGS), *map(_cells, found.rows)]
    lines = [line.rstrip() for line in aligned(rows, n_left=2)]
    rule = "─" * max(map(len, lines))
    table = "\n".join([lines[0], rule, *lines[1:], rule])
    return f"{_titles(found)}\n\n{table}\n{differences_in_words(found)}\n"


def differences_to_markdown(found: Differences, *, level: int = 2, heading: str = "") -> str:
    """The same as a Markdown section."""
    cells = [list(HEADINGS), ["---", "---", *["--:"] * 6], *map(_cells, found.rows)]
    table = "\n".join(f"| {' | '.join(map(_shown, row))} |" for row in cells)
    task = f": {found.tasks[0]}" if found.tasks[0] else ""
    title = heading or f"{found.titles[0]}, against {found.titles[1]}{task}"
    text = markdown_text(f"{_titles(found)} {differences_in_words(found)}")
    return f"{'#' * level} {markdown_text(title)}\n\n{text}\n\n{table}\n"


def differences_in_words(found: Differences) -> str:
    """How large the differences are, how many are significant, and whether queries are shared."""
    known = [row for row in found.rows if not isnan(row.difference)]
    if not known:
        return f"No run has a value of {found.metric} in both experiments."
    low, high = (f(known, key=lambda row: row.difference) for f in (min, max))
    n, of = found.n_significant, len(found.rows)
    queries = "have the same queries" if found.same_queries else "have different queries"
    text = (
        f"From the first to the second, {metric_title(found.metric)} changes by {_change(low)} "
        f"to {_change(high)}; {n} of {of} differences {'is' if n == 1 else 'are'} significant "
        f"(Wilcoxon over runs, Holm-corrected, α = {found.alpha:g})."
    )
    if found.least_p > found.alpha:
        text += f" With this number of runs, p is never below {found.least_p:.2g}."
    return f"{text} The runs of both {queries}."


def _titles(found: Differences) -> str:
    named = zip(("First", "Second"), found.titles, found.tasks, strict=True)
    return "\n".join(f"{which}: {title}{task and f', {task}'}." for which, title, task in named)


def _cells(row: Difference) -> list[str]:
    length = "–" if row.n_bits is None else f"{row.n_bits} bits"
    low, high = row.interval
    return [
        row.method,
        length,
        str(row.n_runs),
        number(row.first, DIGITS),
        number(row.second, DIGITS),
        _signed(row.difference),
        "–" if isnan(low) else f"{_signed(low)} to {_signed(high)}",
        "–" if isnan(row.p_value) else f"{row.p_value:.3f}",
    ]


def _change(row: Difference) -> str:
    at = "" if row.n_bits is None else f" at {row.n_bits} bits"
    return f"{_signed(row.difference)} ({row.method}{at})"


def _shown(cell: str) -> str:
    return cell if set(cell) <= {"-", ":"} else markdown_text(cell)


def _signed(value: float) -> str:
    return "–" if isnan(value) else f"{value:+.{DIGITS}f}".replace("-", "−")
