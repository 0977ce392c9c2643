"""The page: all results of an experiment in one self-contained HTML file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isnan
from typing import TYPE_CHECKING, Any

from bittern.analysis import Analysis, ClassMeans, analyse
from bittern.analysis.analysis import n_leaks
from bittern.experiments.record import Record
from bittern.experiments.records import PROTOCOL, Records
from bittern.io.files import write_text
from bittern.io.toml import to_toml
from bittern.report.charts import Figure, chart_style
from bittern.report.choices import CAPTION, choice_header, choice_rows
from bittern.report.figures import FIGURES
from bittern.report.figures.quality import MEGABYTE, bits_panel
from bittern.report.gallery import GalleryPart, gallery, image_rules
from bittern.report.results_table import (
    ResultsTable,
    bits_of,
    number,
    results_table,
    second_table,
    task_notes,
    task_tables,
)
from bittern.report.sentences import leak_check, sentences

if TYPE_CHECKING:
    from jinja2 import Environment

# The page can load nothing and run nothing, whatever a label may contain.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page, and the values that it shows."""

    anchor: str
    name: str  # in the contents
    heading: str
    kind: str  # the macro of templates/sections.html that writes it
    values: dict[str, Any]


Row = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts: each row has a header and its cells."""

    caption: str
    header: list[str]
    rows: list[Row]


def write_page(records: Records | Analysis, path: str | os.PathLike[str]) -> None:
    """Write the page as one self-contained HTML file, completely or not at all."""
    write_text(path, page_of(records))


def page_of(records: Records | Analysis) -> str:
    """The page as HTML; sections without content are left out."""
    analysis = analyse(records)
    shown = gallery(analysis)
    made = [
        _results(analysis),
        *_figure_sections(analysis),
        _gallery(shown),
        _split(analysis),
        _missing(analysis),
        _reproduction(analysis),
    ]
    return (
        environment()
        .get_template("page.html")
        .render(
            policy=POLICY,
            protocol=analysis.protocol,
            style=chart_style() + page_style() + image_rules(shown, analysis),
            leaks=_leak_warning(analysis),
            summary=sentences(analysis),
            sections=[section for section in made if section is not None],
        )
    )


def _results(analysis: Analysis) -> Section | None:
    """The main metric's table with its tests, the second metric, and the others."""
    if not len(analysis):
        return None
    main, others = results_table(analysis), analysis.protocol.metrics[2:]
    values = {
        "main": main,
        "legend": main.legend("bold", "†", "≈"),
        "verdicts": [one for one in main.verdicts if len(one)],
        "second": second_table(analysis),
        "tasks": [_task_part(one) for one in task_tables(analysis)],
        "task_notes": task_notes(analysis),
        "others": [
            *_other_tasks(analysis),
            *(results_table(analysis, metric, with_tests=False) for metric in others),
        ],
    }
    return Section("table", "Table", "Results", "results", values)


def _other_tasks(analysis: Analysis) -> list[ResultsTable]:
    """All tasks at each length, by the metrics after the main one."""
    metrics = analysis.protocol.metrics[1:]
    return [one for name in metrics for one in task_tables(analysis, name, with_tests=False)]


def _task_part(table: ResultsTable) -> dict[str, Any]:
    """All tasks at a length, with the legend, the notes and every comparison."""
    return {
        "table": table,
        "legend": table.legend("bold", "†", "≈"),
        "verdicts": list(
            zip((t.name for t in table.tasks if t.competes), table.verdicts, strict=True)
        ),
    }


def _figure_sections(analysis: Analysis) -> list[Section]:
    """The figures in order; those with one anchor share a section."""
    sections: dict[str, Section] = {}
    for name, kind in FIGURES.items():
        drawn = list(kind.each(analysis).values())
        if not drawn:
            continue
        if kind.anchor not in sections:
            details = DETAILS[name](analysis) if name in DETAILS else {}
            values = {"first": [], "figures": [], "panels": [], "tables": []} | details
            section = Section(kind.anchor, kind.name, drawn[0].heading, "figures", values)
            sections[kind.anchor] = section
        figures: list[Figure] = sections[kind.anchor].values["figures"]
        figures += drawn
    return list(sections.values())


def _other_metrics(analysis: Analysis) -> dict[str, Any]:
    metrics = analysis.protocol.metrics[1:]
    return {"panels": [bits_panel(analysis, metric, title=metric) for metric in metrics]}


def _cost_table(analysis: Analysis) -> dict[str, Any]:
    found = analysis.costs
    stages = list(found[0].seconds)
    rows: list[Row] = [
        (
            cost.method,
            [
                bits_of(cost.n_bits),
                "–" if cost.stored_bits is None else f"{cost.stored_bits / 8:.4g}",
                *map(_seconds, cost.seconds.values()),
                f"{cost.peak_memory / MEGABYTE:,.0f}" if cost.peak_memory else "–",
                number(cost.mean),
            ],
        )
        for cost in found
    ]
    seconds = [f"{stage} (s)" for stage in stages]
    header = ["method", "length", "bytes per code", *seconds, "memory (MB)", "quality"]
    caption = "Bytes of a stored code, mean seconds of each stage, and peak memory"
    return {"tables": [Table(caption, header, rows)]}


def _seconds(value: float) -> str:
    return "–" if isnan(value) else f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def _tie_tables(analysis: Analysis) -> dict[str, Any]:
    return {"tables": [_tie_table(analysis, n_bits) for n_bits in analysis.lengths]}


def _tie_table(analysis: Analysis, n_bits: int) -> Table:
    """The expected value, that in database order if it was measured, and both extremes."""
    metric = analysis.main_metric
    names = [metric, f"{metric}:database-order"]
    shown = [name for name in names if name in analysis.protocol.metrics]
    means = {
        name: {s.method: s for s in analysis.summaries(name) if s.n_bits == n_bits}
        for name in shown
    }
    rows: list[Row] = []
    for method, found in means[metric].items():
        worst, best = found.spread or (None, None)
        values = [number(means[name][method].mean) for name in shown]
        rows.append((method, [*values, f"({number(best)}, {number(worst)})"]))
    caption = f"{metric} by the order of tied items, {bits_of(n_bits)}"
    return Table(caption, ["method", *shown, "(best order, worst order)"], rows)


def _class_tables(analysis: Analysis) -> dict[str, Any]:
    return {"tables": [_class_table(analysis, found) for found in analysis.classes]}


def _class_table(analysis: Analysis, found: ClassMeans) -> Table:
    means = found.means or {}
    rows: list[Row] = [
        (
            analysis.class_name(one),
            [f"{found.n_queries[i]:,}", *(number(values[i]) for values in means.values())],
        )
        for i, one in enumerate(found.classes)
    ]
    caption = f"{found.metric} by class, {bits_of(found.n_bits)}"
    return Table(caption, ["class", "queries", *means], rows)


def _choice_table(analysis: Analysis) -> dict[str, Any]:
    name, *header = choice_header(analysis)
    rows: list[Row] = [(method, cells) for method, *cells in choice_rows(analysis)]
    return {"first": [Table(CAPTION, [name, *header], rows)]}


# What is folded below a figure: more panels, or its numbers as tables; ``first`` is above it.
DETAILS: dict[str, Callable[[Analysis], dict[str, Any]]] = {
    "bits": _other_metrics,
    "costs": _cost_table,
    "classes": _class_tables,
    "search": _choice_table,
    "ties": _tie_tables,
    "ties-boxes": _tie_tables,
}


def _gallery(parts: list[GalleryPart]) -> Section | None:
    """Queries with their nearest items, if the experiment has images."""
    if not parts:
        return None
    heading = "Queries and their neighbours"
    return Section("gallery", "Gallery", heading, "gallery", {"parts": parts})


def _split(analysis: Analysis) -> Section | None:
    """The split of each run: sizes, overlaps, fingerprint, leaks and undefined queries."""
    splits = analysis.splits
    if not splits:
        return None
    first = next(iter(splits.values()))
    sets = list(first.get("sizes", {}))
    same = ", the same in every run" if analysis.protocol.split.repeated else ""
    leaks = dict.fromkeys(leak_check(one) for one in splits.values() if n_leaks(one))
    values = {
        "leaks": "; ".join(leaks),
        "check": leak_check(first) if "leaks" in first else "",
        "facts": {
            "split": f"{first.get('name', '')}{same}",
            "overlaps": str(first.get("overlaps", "")),
            "balanced by": str(first.get("balanced_by") or "nothing"),
            "preprocessing and notes": "; ".join(first.get("notes", [])) or "none",
            "undefined queries": _undefined(analysis),
        },
        "header": ["run", *(name.replace("_", " ") for name in sets), "leaks", "fingerprint"],
        "runs": [
            (
                str(run),
                [
                    *(f"{one.get('sizes', {}).get(name, 0):,}" for name in sets),
                    f"{n_leaks(one):,}",
                    str(one.get("fingerprint", "")),
                ],
            )
            for run, one in splits.items()
        ],
    }
    heading = "The split, and the check for leaks"
    return Section("split", "Split and leaks", heading, "split", values)


def _leak_warning(analysis: Analysis) -> dict[str, Any] | None:
    """How many runs leak, and the worst of them."""
    leaking = [split for split in analysis.splits.values() if n_leaks(split)]
    if not leaking:
        return None
    return {"runs": len(leaking), "check": leak_check(max(leaking, key=n_leaks))}


def _undefined(analysis: Analysis) -> str:
    counts = {metric: analysis.undefined(metric) for metric in analysis.protocol.metrics}
    lost = [
        f"{metric}: {n:,} of {of:,} over methods, lengths and runs"
        for metric, (n, of) in counts.items()
        if n
    ]
    return "; ".join(lost) or "none: every query has a value of every metric"


def _missing(analysis: Analysis) -> Section | None:
    """The cells that were not measured, with the reason for those that failed."""
    cells = analysis.records.missing
    if not cells:
        return None
    failures = analysis.records.failures or {}
    values = {
        "n_cells": len(cells) + len(analysis),
        "n_failed": sum(cell.name in failures for cell in cells),
        "cells": [(cell.name, [failures.get(cell.name, "not run yet")]) for cell in cells],
    }
    return Section("missing", "Missing", "Missing", "missing", values)


def _reproduction(analysis: Analysis) -> Section:
    """The protocol, the commands, the versions and the fingerprints of cells."""
    # A folder may have been filled by several versions; each set is shown once.
    known = {json.dumps(r.versions, sort_keys=True): r.versions for r in analysis.records}
    sets = list(known.values())
    programs = dict.fromkeys(name for versions in sets for name in versions)
    values = {
        "protocol_text": _protocol_text(analysis),
        "fingerprint": analysis.protocol.fingerprint,
        "version_header": ["", *_set_names(len(sets))],
        "versions": [(name, [one.get(name, "–") for one in sets]) for name in programs],
        "cells": [
            (r.method, [bits_of(r.n_bits), str(r.run), r.fingerprint, _chosen(r)])
            for r in analysis.records
        ],
    }
    return Section("again", "Run it again", "Run it again", "reproduction", values)


def _set_names(n: int) -> list[str]:
    return ["version"] if n == 1 else [f"set {i + 1}" for i in range(n)]


def _protocol_text(analysis: Analysis) -> str:
    """The protocol's file with its comments; without a file, the protocol as TOML."""
    folder = analysis.records.folder
    if folder is not None and (folder / PROTOCOL).is_file():
        return (folder / PROTOCOL).read_text(encoding="utf-8")
    return to_toml(analysis.protocol.to_dict())


def _chosen(record: Record) -> str:
    """The parameters that were tuned on validation data."""
    if not record.tuning:
        return "–"
    tried = {key for one in record.tuning for key in one["parameters"]}
    return ", ".join(f"{k} = {v}" for k, v in record.parameters.items() if k in tried)


def page_style() -> str:
    """The style sheet of all pages."""
    return files("bittern.report").joinpath("templates/page.css").read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """The templates of all pages, which escape what they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("bittern.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"bits": bits_of, "thousands": "{:,}".format}
    return made
