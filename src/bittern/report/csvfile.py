"""Every number as comma-separated text."""

from __future__ import annotations

import csv
import io
from math import isnan
from typing import Any

from bittern.analysis import Summary, summarise
from bittern.experiments.records import Records

__all__ = ["COLUMNS", "to_csv"]

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


def to_csv(records: Records) -> str:
    """A line for each method, length and metric, in full precision; empty where undefined.

    ``low`` and ``high`` are the 95 % interval of the mean.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for metric in records.protocol.metrics:
        writer.writerows(_row(one) for one in summarise(records, metric))
    return text.getvalue()


def _row(one: Summary) -> dict[str, Any]:
    pessimistic, optimistic = one.spread or (None, None)
    values = {
        "method": one.method,
        "n_bits": one.n_bits,
        "metric": one.metric,
        "mean": one.mean,
        "deviation": one.deviation,
        "low": one.interval[0],
        "high": one.interval[1],
        "pessimistic": pessimistic,
        "optimistic": optimistic,
        "n_runs": one.n_runs,
        "n_queries": one.n_queries,
        "undefined": one.undefined,
    }
    return {name: "" if _is_nothing(value) else value for name, value in values.items()}


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))
