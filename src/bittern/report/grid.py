"""The main table of an experiment, before anyone decides how to write it: methods × lengths."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from bittern.analysis import (
    Summary,
    Verdicts,
    best_by_length,
    compare_methods,
    summarise,
)
from bittern.errors import InputError
from bittern.experiments.records import Records
from bittern.metrics import METRICS, parse

__all__ = ["DIGITS", "Entry", "Grid", "grid_of", "metric_title", "missing"]

DIGITS = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the table, and what is marked beside it."""

    summary: Summary
    is_best: bool = False
    is_different: bool = False  # from the baseline, by every test that could tell
    within_tie_spread: bool = False

    @property
    def is_defined(self) -> bool:
        """Whether there is a value."""
        return not isnan(self.summary.mean)

    @property
    def mean(self) -> str:
        """The mean in digits."""
        return f"{self.summary.mean:.{DIGITS}f}"

    @property
    def deviation(self) -> str:
        """The deviation over runs in digits; empty for one run."""
        deviation = self.summary.deviation
        return "" if isnan(deviation) else f"{deviation:.{DIGITS}f}"


@dataclass(frozen=True, slots=True)
class Grid:
    """A row a method, a column a length; a method without codes has its value in every column.

    ``rows`` has None where nothing was measured.
    """

    metric: str
    columns: tuple[int | None, ...]  # one without a length if no method has codes
    rows: dict[str, tuple[Entry | None, ...]]
    verdicts: tuple[Verdicts, ...]  # of each column

    @property
    def headings(self) -> list[str]:
        """What stands above each column."""
        return [self.metric if n is None else f"{n} bits" for n in self.columns]

    @property
    def entries(self) -> list[Entry]:
        """Every value that was measured."""
        return [entry for row in self.rows.values() for entry in row if entry is not None]

    @property
    def baseline(self) -> str:
        """Whom the marks are against."""
        names = {one.baseline for one in self.verdicts}
        return names.pop() if len(names) == 1 else "the best of its column"

    def legend(self, best: str, different: str, tied: str) -> str:
        """What the marks mean that were used, given how each is written."""
        told = {
            f"{best} best{' code' if self.columns[0] else ''} of its column": any(
                e.is_best for e in self.entries
            ),
            f"{different} differs from {self.baseline} (every paired test with enough pairs, "
            f"Holm-corrected, α = {self.verdicts[0].alpha:g})": any(
                e.is_different for e in self.entries
            ),
            f"{tied} another order of tied items could turn the difference round": any(
                e.within_tie_spread for e in self.entries
            ),
        }
        said = [words for words, is_used in told.items() if is_used]
        return "; ".join(said) + "." if said else ""

    @property
    def cautions(self) -> list[str]:
        """What the tests lack, each said once."""
        return list(dict.fromkeys(one for against in self.verdicts for one in against.cautions))

    def runs(self) -> str:
        """Over how many runs the means are taken."""
        counts = sorted({entry.summary.n_runs for entry in self.entries})
        if counts == [1]:
            return "one run"
        span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        return f"mean ± standard deviation over {span} runs"


def grid_of(records: Records, metric: str | None = None) -> Grid:
    """The table of a metric, the main one if none is named."""
    if not len(records):
        failed = list((records.failures or {}).items())
        why = f" {len(failed)} cells failed, {failed[0][0]}: {failed[0][1]}" if failed else ""
        raise InputError(f"report: there are no records yet; `bittern run` makes them.{why}")
    metric = metric or records.protocol.main_metric
    columns: tuple[int | None, ...] = records.lengths or (None,)
    verdicts = tuple(compare_methods(records, metric, n_bits) for n_bits in columns)
    summaries = {(one.method, one.n_bits): one for one in summarise(records, metric)}
    best = best_by_length(records, metric)

    def entry(method: str, against: Verdicts) -> Entry | None:
        found = summaries.get((method, against.n_bits)) or summaries.get((method, None))
        if found is None:
            return None
        verdict = against.of(method)
        return Entry(
            summary=found,
            is_best=method in best[against.n_bits],
            is_different=verdict is not None and verdict.is_different,
            within_tie_spread=verdict is not None and verdict.within_tie_spread,
        )

    rows = {method: tuple(entry(method, one) for one in verdicts) for method in records.methods}
    return Grid(metric, columns, rows, verdicts)


def missing(records: Records) -> str:
    """How much of the protocol has not been measured; empty if nothing lacks."""
    n = len(records.missing)
    return f"{n:,} of {n + len(records):,} cells are not measured yet." if n else ""


def metric_title(metric: str) -> str:
    """A metric's name in words: ``precision@100`` is precision at 100."""
    name = parse(metric)
    entry = METRICS.get(name.metric)
    title = name.metric if entry is None else entry.title
    title += "" if name.cutoff is None else f" at {name.cutoff}"
    title += "" if name.radius is None else f" within radius {name.radius}"
    return title + "".join(f", {option}" for option in name.options)
