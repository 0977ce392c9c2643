"""Every text format of a report by its name; CSV is written here."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import asdict
from math import isnan
from typing import Any

from bittern.analysis import Analysis, Summary, analyse
from bittern.experiments.records import Records
from bittern.registry import Registry
from bittern.report.latex import to_latex
from bittern.report.markdown import to_markdown
from bittern.report.results_table import to_text
from bittern.report.sentences import in_words

COLUMNS = (
    "method",
    "n_bits",
    "metric",
    "mean",
    "deviation",
    "low",
    "high",
    "pessimistic",
    "optimistic",
    "n_runs",
    "n_queries",
    "undefined",
)


def to_csv(records: Records | Analysis) -> str:
    """A line for each method, length and metric, in full precision; empty where undefined.

    ``low`` and ``high`` are the 95 % interval of the mean.  A column ``task`` says which task a
    line is of, if the paradigm has several.
    """
    analysis = analyse(records)
    parts = [analysis, *analysis.tasks.values()]
    text = io.StringIO()
    columns = (*COLUMNS, "task") if analysis.tasks else COLUMNS
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for metric in analysis.protocol.metrics:
        for part in parts:
            task = {"task": part.records.task_text}
            writer.writerows(_row(one) | task for one in part.summaries(metric))
    return text.getvalue()


def _row(one: Summary) -> dict[str, Any]:
    values = asdict(one) | {"low": one.interval[0], "high": one.interval[1]}
    values["pessimistic"], values["optimistic"] = one.spread or (None, None)
    return {name: "" if _is_undefined(values[name]) else values[name] for name in COLUMNS}


def _is_undefined(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


REPORTS: Registry[Callable[[Records | Analysis], str]] = Registry(
    "report format",
    {
        "text": to_text,
        "words": in_words,
        "markdown": to_markdown,
        "latex": to_latex,
        "csv": to_csv,
    },
)
