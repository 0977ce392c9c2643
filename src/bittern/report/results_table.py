"""The main table of an experiment: methods × lengths, with marks; and as plain text."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isnan

from bittern.analysis import Analysis, Summary, Verdicts, analyse
from bittern.errors import InputError
from bittern.experiments.paradigm import Task
from bittern.experiments.records import Records
from bittern.metrics import METRICS, parse
from bittern.metrics.scores import aligned

DIGITS = 4
MANY_TASKS = 4  # more have short headings, if they differ in their queries alone
OPTIONS = {"retrieved": "divided by the relevant items found"}  # of metrics, in words


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the table, and its marks."""

    summary: Summary
    is_best: bool = False
    is_different: bool = False  # from the baseline, by every test with enough pairs
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

    def marks(self, different: str, tied: str) -> str:
        """The marks beside the value, given how each is written."""
        return different * self.is_different + tied * self.within_tie_spread


Rows = dict[str, tuple[Entry | None, ...]]


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """A row per method, a column per length; methods without codes have a value in each column.

    ``rows`` has None where nothing was measured.  ``task`` says which task the values are of, if
    there are several.  With ``tasks``, the columns are these tasks at one length.
    """

    metric: str
    columns: tuple[int | None, ...]  # a single None if no method has codes
    rows: Rows
    verdicts: tuple[Verdicts, ...]  # of each column; empty if the metric is not tested
    task: str = ""
    tasks: tuple[Task, ...] = ()

    @property
    def has_undefined(self) -> bool:
        """Whether any query has no value."""
        return any(entry.summary.undefined for entry in self.entries)

    @property
    def headings(self) -> list[str]:
        """The heading of each column of values."""
        if self.tasks:
            same = len({(task.found, task.setting) for task in self.tasks}) == 1
            is_short = same and len(self.tasks) > MANY_TASKS  # what all share is in the notes
            return [task.query if is_short else task.name for task in self.tasks]
        return [self.metric if n is None else f"{n} bits" for n in self.columns]

    @property
    def entries(self) -> list[Entry]:
        """Every value that was measured."""
        return [entry for row in self.rows.values() for entry in row if entry is not None]

    @property
    def title(self) -> str:
        """The metric in words, capitalised, and the task."""
        title = metric_title(self.metric)
        task = f", {self.task}" if self.task else ""
        return f"{title[0].upper()}{title[1:]}{task}"

    @property
    def caption(self) -> str:
        """The metric, and over how many runs the means are taken."""
        return f"{self.title}, {self.runs}"

    @property
    def runs(self) -> str:
        """Over how many runs the means are taken."""
        counts = sorted({entry.summary.n_runs for entry in self.entries})
        if counts == [1]:
            return "one run"
        span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        return f"mean ± standard deviation over {span} runs"

    @property
    def baseline(self) -> str:
        """The method that the others are tested against."""
        names = {one.baseline for one in self.verdicts}
        return names.pop() if len(names) == 1 else "the best of its column"

    def legend(self, best: str, different: str, tied: str) -> list[tuple[str, str]]:
        """Each mark that the table uses with its meaning, given how each is written."""
        code = " code" if self.columns[0] else ""
        alpha = f", α = {self.verdicts[0].alpha:g}" if self.verdicts else ""
        meanings = [
            (best, f"best{code} of its column", any(e.is_best for e in self.entries)),
            (
                different,
                f"differs from {self.baseline} (every paired test with enough pairs, "
                f"Holm-corrected{alpha})",
                any(e.is_different for e in self.entries),
            ),
            (
                tied,
                "another order of tied items could reverse the difference",
                any(e.within_tie_spread for e in self.entries),
            ),
        ]
        return [(mark, meaning) for mark, meaning, is_used in meanings if is_used]

    def legend_line(self, best: str, different: str, tied: str) -> str:
        """The legend in one line."""
        used = [f"{mark} {meaning}" for mark, meaning in self.legend(best, different, tied)]
        return "; ".join(used) + "." if used else ""

    @property
    def cautions(self) -> list[str]:
        """Where the tests fall short, each sentence once."""
        return list(dict.fromkeys(one for against in self.verdicts for one in against.cautions))


def results_table(
    records: Records | Analysis, metric: str | None = None, *, with_tests: bool = True
) -> ResultsTable:
    """The table of a metric, by default the main one."""
    analysis = analyse(records)
    if not len(analysis):
        failed = list((analysis.records.failures or {}).items())
        why = f" {len(failed)} cells failed, {failed[0][0]}: {failed[0][1]}" if failed else ""
        raise InputError(f"report: there are no records yet; make them with `bittern run`.{why}")
    metric = metric or analysis.main_metric
    verdicts = analysis.verdicts(metric) if with_tests else ()
    tested = dict(zip(analysis.columns, verdicts, strict=True)) if with_tests else {}
    summaries = {(one.method, one.n_bits): one for one in analysis.summaries(metric)}
    best = analysis.best(metric)

    def entry(method: str, n_bits: int | None) -> Entry | None:
        found = summaries.get((method, n_bits)) or summaries.get((method, None))
        if found is None:
            return None
        verdict = tested[n_bits].of(method) if with_tests else None
        return Entry(
            summary=found,
            is_best=method in best[n_bits],
            is_different=verdict is not None and verdict.is_different,
            within_tie_spread=verdict is not None and verdict.within_tie_spread,
        )

    rows = {m: tuple(entry(m, n_bits) for n_bits in analysis.columns) for m in analysis.methods}
    return ResultsTable(metric, analysis.columns, rows, verdicts, analysis.records.task_text)


def task_tables(
    analysis: Analysis, metric: str | None = None, *, with_tests: bool = True
) -> list[ResultsTable]:
    """All tasks side by side, a table per length; empty if the paradigm has just one.

    Tasks that do not compete have no marks.
    """
    found = {
        task: results_table(one, metric, with_tests=with_tests and task.competes)
        for task, one in analysis.tasks.items()
    }
    return [_task_table(analysis, found, n) for n in analysis.columns] if found else []


def task_notes(analysis: Analysis) -> list[str]:
    """What the settings of the tasks mean, each in a sentence."""
    meanings = {task.setting: task.explanation for task in analysis.tasks}
    return [f"{setting}: {meaning}" for setting, meaning in meanings.items()]


def _task_table(
    analysis: Analysis, found: dict[Task, ResultsTable], n_bits: int | None
) -> ResultsTable:
    columns = {task: one.columns.index(n_bits) for task, one in found.items()}

    def entry(method: str, task: Task) -> Entry | None:
        one = found[task].rows.get(method, {columns[task]: None})[columns[task]]
        return one if one is None or task.competes else Entry(one.summary)

    tables = list(found.values())
    rows = {m: tuple(entry(m, task) for task in found) for m in analysis.methods}
    return ResultsTable(
        metric=tables[0].metric,
        columns=(n_bits,) * len(found),
        rows={m: row for m, row in rows.items() if any(one is not None for one in row)},
        verdicts=tuple(one.verdicts[columns[task]] for task, one in found.items() if one.verdicts),
        task=f"each task at {bits_of(n_bits)}",
        tasks=tuple(found),
    )


def second_table(analysis: Analysis, metric: str | None = None) -> ResultsTable | None:
    """The protocol's second metric beside its main one; None beside a metric that was asked for."""
    if metric is not None or len(analysis.protocol.metrics) < 2:
        return None
    return results_table(analysis, analysis.protocol.metrics[1], with_tests=False)


def missing(analysis: Analysis) -> str:
    """How many cells of the protocol are not measured yet; empty if none."""
    n = len(analysis.records.missing)
    return f"{n:,} of {n + len(analysis):,} cells are not measured yet." if n else ""


def stored_note(analysis: Analysis) -> str:
    """Which codes store more bits than their length says; empty if none does."""
    longer: dict[str, list[str]] = {}
    for cost in analysis.costs:
        if cost.n_bits and cost.stored_bits and cost.stored_bits > cost.n_bits:
            at = f"{number(cost.stored_bits, 1).removesuffix('.0')} at {cost.n_bits}"
            longer.setdefault(cost.method, []).append(at)
    if not longer:
        return ""
    listed = "; ".join(f"{method} {', '.join(at)}" for method, at in longer.items())
    return f"Thermometer codes store more bits than their length: {listed}."


def metric_title(metric: str) -> str:
    """A metric's name in words: ``precision@100`` is precision at 100."""
    name = parse(metric)
    entry = METRICS.find(name.metric) if ":" in name.metric else METRICS.get(name.metric)
    title = name.metric if entry is None else entry.title
    title += "" if name.cutoff is None else f" at {name.cutoff}"
    title += "" if name.radius is None else f" within radius {name.radius}"
    return title + "".join(f", {OPTIONS.get(option, option)}" for option in name.options)


def bits_of(n_bits: int | None) -> str:
    """A code length in words."""
    return "no codes" if n_bits is None else f"{n_bits} bit{'s' if n_bits != 1 else ''}"


def number(value: float | None, decimals: int = 3) -> str:
    """A value as figures and small tables show it; a dash if it is undefined."""
    return "–" if value is None or not isfinite(value) else f"{value:.{decimals}f}"


BEST, DIFFERENT, TIED, NOTHING = "*", "†", "≈", "–"


def to_text(records: Records | Analysis, metric: str | None = None) -> str:
    """The main table as plain text, with a legend: methods × lengths, mean ± deviation.

    The table of the second metric follows, unless ``metric`` names one; and if the paradigm has
    several tasks, a table of all of them at each length.
    """
    analysis = analyse(records)
    tables = [results_table(analysis, metric), second_table(analysis, metric)]
    tables += task_tables(analysis, metric)
    drawn = [_drawn(table) for table in tables if table is not None]
    ending = filter(None, (*task_notes(analysis), stored_note(analysis), missing(analysis)))
    return "\n".join(["\n\n".join(drawn), *ending]).rstrip() + "\n"


def _drawn(table: ResultsTable) -> str:
    """Caption, table and legend."""
    rows = [["method", *table.headings]]
    rows += [[method, *map(_cell, row)] for method, row in table.rows.items()]
    rows[0][1:] = [f"{heading}  " for heading in rows[0][1:]]  # headings end above the digits
    lines = [line.rstrip() for line in aligned(rows)]
    rule = "─" * max(map(len, lines))
    return "\n".join([table.caption, "", lines[0], rule, *lines[1:], rule, _legend(table)])


def _legend(table: ResultsTable) -> str:
    lines = [table.legend_line(BEST, DIFFERENT, TIED), *table.cautions]
    return "\n".join(filter(None, lines))


def _cell(entry: Entry | None) -> str:
    """A value between its marks; absent marks leave a space, so that digits align."""
    if entry is None or not entry.is_defined:
        return f" {NOTHING}  "
    value = f"{entry.mean} ± {entry.deviation}" if entry.deviation else entry.mean
    return f"{BEST if entry.is_best else ' '}{value}{entry.marks(DIFFERENT, TIED):<2}"
