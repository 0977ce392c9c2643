"""The tables: methods by lengths, the best bold, with marks of significance and of ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bittern.analysis import Verdicts, best_by_length, summarise
from bittern.report.grid import Entry, Grid, grid_of, metric_title
from bittern.report.markup import Content, Html, fragment
from bittern.report.page.parts import bits_of, folded, section, table
from bittern.report.page.view import View

__all__ = ["tables"]

DIFFERENT, TIED, NOTHING = "†", "≈", "–"
Rows = Mapping[str, Sequence[Entry | None]]


def tables(view: View) -> Html | None:
    """The main metric's table with its verdicts, and the others folded."""
    if not len(view.records):
        return None
    grid = grid_of(view.records)
    rest = [metric for metric in view.records.protocol.metrics if metric != grid.metric]
    compared = any(len(one) for one in grid.verdicts)
    return section(
        "Results",
        "table",
        _table(view, grid.metric, grid.rows, grid.runs()),
        _legend(grid),
        folded("Every comparison in words", _sentences(grid.verdicts)) if compared else None,
        folded("The other metrics", *(_other(view, metric) for metric in rest)) if rest else None,
    )


def _other(view: View, metric: str) -> Html:
    """A table without tests: methods are compared by the main metric."""
    summaries = {(one.method, one.n_bits): one for one in summarise(view.records, metric)}
    best = best_by_length(view.records, metric)
    rows: dict[str, list[Entry | None]] = {}
    for method in view.records.methods:
        found = [summaries.get((method, n), summaries.get((method, None))) for n in view.lengths]
        rows[method] = [
            None if one is None else Entry(one, is_best=method in best.get(one.n_bits, ()))
            for one in found
        ]
    return _table(view, metric, rows, "")


def _table(view: View, metric: str, rows: Rows, over: str) -> Html:
    title = metric_title(metric)
    caption = ", ".join(filter(None, [f"{title[0].upper()}{title[1:]} ({metric})", over]))
    if any(one is not None and one.summary.undefined for row in rows.values() for one in row):
        caption += "; in brackets, queries without a value, over all runs"
    header: list[Content] = ["method", *(bits_of(n) if n else metric for n in view.lengths)]
    return table(
        caption,
        header,
        [[method, *map(_cell, row)] for method, row in rows.items()],
        class_="values",
    )


def _cell(entry: Entry | None) -> Html | str:
    if entry is None:
        return NOTHING
    marks = DIFFERENT * entry.is_different + TIED * entry.within_tie_spread
    undefined = entry.summary.undefined
    mean = entry.mean if entry.is_defined else NOTHING
    return fragment(
        Html.tag("strong", mean) if entry.is_best else mean,
        _aside(f" ± {entry.deviation}") if entry.deviation else None,
        Html.tag("sup", marks, class_="marks") if marks else None,
        _aside(f" ({undefined:,})") if undefined else None,
    )


def _aside(words: str) -> Html:
    return Html.tag("span", words, class_="aside")


def _legend(grid: Grid) -> Html:
    """What bold and the marks mean, and what the tests rest on."""
    told = grid.legend("bold", DIFFERENT, TIED)
    entries = [Html.tag("li", _entry(words)) for words in told.rstrip(".").split("; ") if words]
    cautions = Html.tag("p", " ".join(grid.cautions), class_="note") if grid.cautions else None
    return fragment(Html.tag("ul", *entries, class_="notes") if entries else None, cautions)


def _entry(words: str) -> Html:
    """A line of the legend, its mark as it stands in the table."""
    mark, _, meaning = words.partition(" ")
    return fragment(Html.tag("strong", mark), f" {meaning}")


def _sentences(verdicts: Sequence[Verdicts]) -> Html:
    return fragment(
        *(
            fragment(
                None if found.n_bits is None else Html.tag("h3", bits_of(found.n_bits)),
                Html.tag("p", found.note),
                Html.tag("ul", *(Html.tag("li", one.sentence) for one in found)),
            )
            for found in verdicts
            if len(found)
        )
    )
