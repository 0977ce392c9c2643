"""The summary of an experiment in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bittern.analysis import Analysis, Leader, Summary, Verdicts, analyse
from bittern.analysis.analysis import n_leaks
from bittern.experiments.records import Records
from bittern.report.results_table import DIGITS, metric_title, stored_note

MOST_NAMED = 4  # of a list; the others are counted
DISJOINT = "all sets are disjoint"
SETS = {
    "train": "training items",
    "validation_queries": "validation queries",
    "validation_database": "validation database items",
    "database": "database items",
    "unseen_database": "items of the unseen database",
}


def in_words(records: Records | Analysis, metric: str | None = None) -> str:
    """A paragraph: what was measured, what is best and by how much, what is significant."""
    return " ".join(sentences(records, metric))


def sentences(records: Records | Analysis, metric: str | None = None) -> list[str]:
    """The sentences of the summary, by default for the main metric."""
    analysis = analyse(records)
    if not len(analysis):
        return ["Nothing has been measured yet.", *_gaps(analysis)]
    metric = metric or analysis.main_metric
    leaders, verdicts = analysis.leaders(metric), analysis.verdicts(metric)
    return [
        *_setting(analysis),
        *filter(None, [stored_note(analysis)]),
        *_best(leaders, metric, analysis.records.task_text),
        *_significance(verdicts),
        *_tasks(analysis, metric),
        *_ties(verdicts),
        *_ceiling(leaders),
        *_bounds(analysis, metric),
        *_areas(analysis),
        *_undefined(analysis, metric),
        *_leaks(analysis),
        *_gaps(analysis),
    ]


def listed(words: Sequence[str]) -> str:
    """``a, b and c``; of a long list, the first few and the number of the others."""
    if len(words) > MOST_NAMED + 1:
        words = [*words[:MOST_NAMED], f"{len(words) - MOST_NAMED} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def leak_check(split: dict[str, Any]) -> str:
    """What the search for leaks found in a run's split.

    Uses only the counts in the record, because older records word it differently.
    """
    first, *details = str(split.get("leak_check", "")).splitlines() or [""]
    checked = re.search(r"([\d,]+) items (?:have|checked)", first)
    n = n_leaks(split)
    if checked is None:
        return first or (f"{n:,} items leak" if n else "no duplicates across the split")
    blank = re.search(r"([\d,]+) empty rows", first)
    found = (
        (f"{n:,} have duplicates" if n > 1 else "1 has a duplicate") if n else "no duplicates"
    ) + " across the split"
    skipped = f" ({blank[1]} empty rows not compared)" if blank else ""
    return "; ".join([f"{checked[1]} items checked: {found}{skipped}", *map(str.strip, details)])


def _setting(analysis: Analysis) -> list[str]:
    at = f" at {listed([str(n) for n in analysis.lengths])} bits" if analysis.lengths else ""
    runs = _count(len({record.run for record in analysis.records}), "run")
    methods = _count(len(analysis.methods), "method")
    measured = (
        f"{methods} {'was' if len(analysis.methods) == 1 else 'were'} measured on "
        f"{analysis.protocol.dataset.name}{at} in {runs}: {listed(analysis.methods)}."
    )
    split = analysis.records.records[0].split
    sizes = [f"{n:,} {SETS.get(name, name)}" for name, n in split.get("sizes", {}).items() if n]
    if not sizes:
        return [measured]
    overlaps = split.get("overlaps", DISJOINT)
    shared = "" if overlaps == DISJOINT else f"; {overlaps.replace('_', ' ')}"
    return [measured, f"The split {split['name']!r} has {listed(sizes)}{shared}."]


def _best(leaders: Sequence[Leader], metric: str, task: str = "") -> list[str]:
    title = metric_title(metric) + (f" ({task})" if task else "")
    if not leaders:
        return [f"{title[0].upper()}{title[1:]} is undefined for every method."]
    if len({one.methods for one in leaders}) == 1 and len(leaders) > 1:
        values = [f"{_number(one.mean)}{_bits(one)}{_margin(one)}" for one in leaders]
        best = _are(leaders[0].methods)
        return [f"By {title}, {best} best at every length: {'; '.join(values)}."]
    values = [
        f"{_are(one.methods)} best{_bits(one)} with {_number(one.mean)}{_margin(one)}"
        for one in leaders
    ]
    return [f"By {title}, {'; '.join(values)}."]


def _tasks(analysis: Analysis, metric: str) -> list[str]:
    """A sentence for each task that competes; of many tasks, what they have in common."""
    found = {task.name: one for task, one in analysis.tasks.items() if task.competes}
    if len(found) > MOST_NAMED:
        return [_wins(found, metric), *_extremes(found, metric)]
    return [
        _joined(_best(one.leaders(metric), metric, name)[0], one.verdicts(metric))
        for name, one in found.items()
    ]


def _wins(tasks: Mapping[str, Analysis], metric: str) -> str:
    """How many of the tasks each method is best in, at each length."""
    wins: dict[str, Counter[str]] = {}
    for one in tasks.values():
        for leader in one.leaders(metric):
            wins.setdefault(_bits(leader), Counter()).update(leader.methods)
    parts = [f"{_places(counts)}{at}" for at, counts in wins.items()]
    shared = any(counts.total() > len(tasks) for counts in wins.values())
    note = ", a shared first place counted for each" if shared else ""
    every = [verdicts for one in tasks.values() for verdicts in one.verdicts(metric)]
    return _joined(f"Of the {len(tasks)} tasks{note}, {'; '.join(parts)}.", every)


def _places(wins: Counter[str]) -> str:
    (first, n), *others = wins.most_common()
    return listed([f"{first} is best in {n}", *(f"{method} in {m}" for method, m in others)])


def _extremes(tasks: Mapping[str, Analysis], metric: str) -> list[str]:
    """The hardest and the easiest task, by the best value of any method."""
    best = {
        name: max(leaders, key=lambda leader: leader.mean)
        for name, one in tasks.items()
        if (leaders := one.leaders(metric))
    }
    if not best:
        return []
    hardest, easiest = (pick(best, key=lambda name: best[name].mean) for pick in (min, max))
    low, high = (f"{name} ({_number(best[name].mean)} at best)" for name in (hardest, easiest))
    return [f"The hardest task is {low}, the easiest {high}; the table has all of them."]


def _joined(best: str, verdicts: Sequence[Verdicts]) -> str:
    every = [one.is_different for against in verdicts for one in against]
    if not every:
        return best
    n = sum(every)
    return f"{best.removesuffix('.')}; {n} of {len(every)} differences are significant."


def _significance(verdicts: Sequence[Verdicts]) -> list[str]:
    every = [(against, one) for against in verdicts for one in against]
    if not every:
        return []
    baselines = list(dict.fromkeys(against.baseline for against in verdicts))
    whom = baselines[0] if len(baselines) == 1 else "the best of each length"
    others = [f"{one.method}{_bits(against)}" for against, one in every if not one.is_different]
    n, of = len(every) - len(others), len(every)
    subject = "The difference" if of == 1 else _n_of(n, of)
    verb = "is not" if n == 0 and of == 1 else "is" if n < 2 else "are"
    exceptions = f"; not significant: {listed(others)}" if others and n else ""
    return [
        f"{subject} from {whom} {verb} significant by every paired test with enough pairs "
        f"(Holm-corrected, α = {verdicts[0].alpha:g}){exceptions}.",
        *dict.fromkeys(one for against in verdicts for one in against.cautions),
    ]


def _ties(verdicts: Sequence[Verdicts]) -> list[str]:
    every = [(against, one) for against in verdicts for one in against]
    within = [f"{one.method}{_bits(against)}" for against, one in every if one.within_tie_spread]
    if within:
        subject = "The difference of" if len(within) == 1 else "The differences of"
        verb = "is" if len(within) == 1 else "are"
        return [f"{subject} {listed(within)} {verb} smaller than the tie spread."]
    return ["No difference is smaller than the tie spread."] if every else []


def _ceiling(leaders: Sequence[Leader]) -> list[str]:
    known = [one for one in leaders if one.ceiling is not None]
    if not known:
        return []
    best = max(known, key=lambda one: one.mean)
    way = "above" if best.from_ceiling > 0 else "below"
    return [
        f"Without codes, {best.ceiling} reaches {_number(best.ceiling_mean)}; the best code, "
        f"{best.methods[0]}{_bits(best)}, is {_number(abs(best.from_ceiling))} {way} it."
    ]


def _bounds(analysis: Analysis, metric: str) -> list[str]:
    bounds = analysis.records.bounds
    found = [one for one in analysis.summaries(metric) if one.method in bounds]
    named = [f"{one.method} ({_number(one.mean)})" for one in found if one.mean == one.mean]
    if not named:
        return []
    verb, noun = ("is", "an upper bound") if len(named) == 1 else ("are", "upper bounds")
    return [f"{listed(named)} {verb} {noun}, chosen by the judgements of the test queries."]


def _areas(analysis: Analysis) -> list[str]:
    if not {"ap", "auprc"} <= set(analysis.protocol.metrics):
        return []
    return [analysis.areas.sentence]


def _undefined(analysis: Analysis, metric: str) -> list[str]:
    found = [one for one in analysis.summaries(metric) if one.undefined]
    if not found:
        return [f"Every query has a value of {metric}."]
    worst = max(found, key=lambda one: one.undefined)
    return [
        f"Queries without a value of {metric} are left out of the means: at most "
        f"{worst.undefined:,} of {worst.n_queries:,}, for {worst.method}{_bits(worst)}."
    ]


def _leaks(analysis: Analysis) -> list[str]:
    checked = {r.run: r.split for r in analysis.records if "leaks" in r.split}
    if not checked:
        return ["The splits were not checked for leaks."]
    leaking = [run for run, split in sorted(checked.items()) if split["leaks"]]
    if not leaking:
        return [f"No leaks were found across the split in {_count(len(checked), 'run')}."]
    runs = f"{len(leaking)} of {_count(len(checked), 'run')}"
    found = leak_check(checked[leaking[0]])
    return [f"Leaks were found in {runs}, so the values are too high: {found}."]


def _gaps(analysis: Analysis) -> list[str]:
    n = len(analysis.records.missing)
    if not n:
        return []
    reasons = [f"{cell} ({reason})" for cell, reason in (analysis.records.failures or {}).items()]
    cells = f"{_count(n, 'cell')} of the protocol {'is' if n == 1 else 'are'} missing"
    return [f"{cells}; failed: {listed(reasons)}." if reasons else f"{cells}, not yet measured."]


def _margin(one: Leader) -> str:
    if not one.followers:
        return ""
    return f" ({_number(one.margin)} over {listed(one.followers)})"


def _bits(one: Leader | Summary | Verdicts) -> str:
    return "" if one.n_bits is None else f" at {one.n_bits} bits"


def _n_of(n: int, of: int) -> str:
    how_many = {0: "None of the", of: "All"}.get(n, f"{n} of")
    return f"{how_many} {of} differences"


def _are(methods: Sequence[str]) -> str:
    return f"{listed(methods)} {'is' if len(methods) == 1 else 'are'}"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _number(value: float) -> str:
    return f"{value:.{DIGITS}f}"
