"""Sections that let a reader trust the numbers: the split and its leaks, and what is missing."""

from __future__ import annotations

from typing import Any

from bittern.analysis.summary import n_values
from bittern.report.markup import Content, Html, fragment
from bittern.report.page.parts import section, table
from bittern.report.page.view import View

__all__ = ["leak_warning", "missing_cells", "split_statement"]


def leak_warning(view: View) -> Html | None:
    """A warning for the top of the page if items are on both sides of a wall."""
    leaks = [s for s in _statements(view).values() if s.get("leaks")]
    if not leaks:
        return None
    worst = max(leaks, key=lambda s: s["leaks"])
    runs = len(leaks)
    return Html.tag(
        "div",
        Html.tag("strong", "Leak. "),
        f"The split has items on both sides of a wall in {runs} run{'s' if runs > 1 else ''}: ",
        str(worst.get("leak_check") or f"{worst['leaks']:,} items"),
        ". Values on this page are not those of unseen data. ",
        Html.tag("a", "See the split.", href="#split"),
        class_="warning",
        role="alert",
    )


def split_statement(view: View) -> Html | None:
    """The split of each run: sizes, overlaps, fingerprint, leaks and undefined queries."""
    statements = _statements(view)
    if not statements:
        return None
    first = next(iter(statements.values()))
    facts = [
        ("split", str(first.get("name", "")) + _repeated(view)),
        ("overlaps", str(first.get("overlaps", ""))),
        ("balanced by", str(first.get("balanced_by") or "nothing")),
        ("preprocessing and notes", "; ".join(first.get("notes", [])) or "none"),
        ("undefined queries", _undefined(view)),
    ]
    return section(
        "The split, and the search for leaks",
        "split",
        _verdict(statements),
        _described(facts),
        _runs(statements),
    )


def missing_cells(view: View) -> Html | None:
    """What has not been measured, with the reason for what failed; nothing if all is there."""
    cells = view.records.missing
    if not cells:
        return None
    failures = view.records.failures or {}
    rows = [(cell.name, failures.get(cell.name, "not run yet")) for cell in cells]
    n = len(cells)
    return section(
        "Missing",
        "missing",
        Html.tag(
            "p",
            f"{n} of {n + len(view.records)} cells {'is' if n == 1 else 'are'} missing from every "
            f"number on this page; {len(failures)} of them failed.",
        ),
        table("Cells that were not measured", ["cell", "reason"], rows, class_="words"),
    )


def _statements(view: View) -> dict[int, dict[str, Any]]:
    """The statement of each run; that with the most leaks where records differ."""
    found: dict[int, dict[str, Any]] = {}
    for record in view.records:
        known = found.get(record.run)
        if record.split and (known is None or _leaks(record.split) > _leaks(known)):
            found[record.run] = record.split
    return dict(sorted(found.items()))


def _leaks(statement: dict[str, Any]) -> int:
    return int(statement.get("leaks") or 0)


def _verdict(statements: dict[int, dict[str, Any]]) -> Html:
    total = sum(_leaks(s) for s in statements.values())
    if total:
        checks = dict.fromkeys(str(s.get("leak_check")) for s in statements.values() if _leaks(s))
        return Html.tag(
            "div",
            Html.tag("strong", "Leaks were found. "),
            "; ".join(checks) + ".",
            class_="warning",
        )
    first = next(iter(statements.values()))
    return Html.tag(
        "p",
        Html.tag("strong", "No leak was found. "),
        f"{first.get('leak_check', '')}.",
        class_="verdict",
    )


def _runs(statements: dict[int, dict[str, Any]]) -> Html:
    names = list(next(iter(statements.values())).get("sizes", {}))
    header: list[Content] = ["run", *(n.replace("_", " ") for n in names), "leaks", "fingerprint"]
    rows = [
        [
            str(run),
            *(f"{s.get('sizes', {}).get(name, 0):,}" for name in names),
            f"{_leaks(s):,}",
            Html.tag("code", str(s.get("fingerprint", ""))),
        ]
        for run, s in statements.items()
    ]
    return table("Items in each set", header, rows)


def _described(facts: list[tuple[str, str]]) -> Html:
    pairs = [fragment(Html.tag("dt", name), Html.tag("dd", said)) for name, said in facts]
    return Html.tag("dl", *pairs)


def _repeated(view: View) -> str:
    return ", the same in every run" if view.records.protocol.split.repeated else ""


def _undefined(view: View) -> str:
    """How many queries each metric leaves out, over all records."""
    told = []
    for metric in view.records.protocol.metrics:
        counts = [
            (value.undefined, n_values(record, value))
            for record in view.records
            if (value := record.values.get(metric)) is not None and record.n_bits is not None
        ] or [
            (value.undefined, n_values(record, value))
            for record in view.records
            if (value := record.values.get(metric)) is not None
        ]
        lost, whole = (sum(side) for side in zip(*counts, strict=True)) if counts else (0, 0)
        if lost:
            told.append(f"{metric}: {lost:,} of {whole:,} over methods, lengths and runs")
    return "; ".join(told) or "none: every query has a value of every metric"
