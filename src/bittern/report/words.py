"""The summary in words, made of the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from bittern.analysis import (
    Leader,
    Summary,
    Verdicts,
    areas_against_means,
    compare_methods,
    leaders,
    summarise,
)
from bittern.experiments.records import Records
from bittern.report.grid import DIGITS, metric_title

__all__ = ["in_words", "listed", "sentences"]

MOST_NAMED = 4  # of a list, before the rest is only counted
DISJOINT = "all sets are disjoint"
SETS = {
    "train": "training items",
    "validation_queries": "validation queries",
    "validation_database": "items to validate with",
    "database": "database items",
}


def in_words(records: Records, metric: str | None = None) -> str:
    """A paragraph: what was run, who is best and by how much, what is significant, what is not."""
    return " ".join(sentences(records, metric))


def sentences(records: Records, metric: str | None = None) -> list[str]:
    """The sentences of the summary, for the main metric if none is named."""
    if not len(records):
        return ["Nothing has been measured yet.", *_gaps(records)]
    metric = metric or records.protocol.main_metric
    lengths: tuple[int | None, ...] = records.lengths or (None,)
    verdicts = [compare_methods(records, metric, n_bits) for n_bits in lengths]
    return [
        *_what(records),
        *_best(leaders(records, metric), metric),
        *_significance(verdicts),
        *_ties(verdicts),
        *_ceiling(leaders(records, metric)),
        *_bounds(records, metric),
        *_areas(records),
        *_undefined(records, metric),
        *_leaks(records),
        *_gaps(records),
    ]


def listed(words: Sequence[str]) -> str:
    """``a, b and c``; of a long list, the first few and the number of the others."""
    if len(words) > MOST_NAMED + 1:
        words = [*words[:MOST_NAMED], f"{len(words) - MOST_NAMED} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _what(records: Records) -> list[str]:
    at = f" at {listed([str(n) for n in records.lengths])} bits" if records.lengths else ""
    runs = _count(len({record.run for record in records}), "run")
    methods = _count(len(records.methods), "method")
    told = (
        f"{methods} {'was' if len(records.methods) == 1 else 'were'} measured on "
        f"{records.protocol.dataset.name}{at} in {runs}: {listed(records.methods)}."
    )
    split = records.records[0].split
    sizes = [f"{n:,} {SETS.get(name, name)}" for name, n in split.get("sizes", {}).items() if n]
    overlaps = split.get("overlaps", DISJOINT)
    shared = "" if overlaps == DISJOINT else f"; {overlaps.replace('_', ' ')}"
    return [told, f"The split {split['name']!r} has {listed(sizes)}{shared}."] if sizes else [told]


def _best(found: Sequence[Leader], metric: str) -> list[str]:
    title = metric_title(metric)
    if not found:
        return [f"No {title} is defined for any method."]
    if len({one.methods for one in found}) == 1 and len(found) > 1:
        led = [f"{_number(one.mean)}{_bits(one)}{_margin(one)}" for one in found]
        return [f"By {title}, {_are(found[0].methods)} best at every length: {'; '.join(led)}."]
    led = [
        f"{_are(one.methods)} best{_bits(one)} with {_number(one.mean)}{_margin(one)}"
        for one in found
    ]
    return [f"By {title}, {'; '.join(led)}."]


def _significance(verdicts: Sequence[Verdicts]) -> list[str]:
    every = [(against, one) for against in verdicts for one in against]
    if not every:
        return []
    baselines = list(dict.fromkeys(against.baseline for against in verdicts))
    whom = baselines[0] if len(baselines) == 1 else "the best of each length"
    others = [f"{one.method}{_bits(against)}" for against, one in every if not one.is_different]
    apart = len(every) - len(others)
    said = (
        f"Of {_count(len(every), 'difference')} from {whom}, {_how_many(apart, len(every))} "
        "significant in every paired test with enough pairs to tell (Holm-corrected, "
        f"α = {verdicts[0].alpha:g})"
    )
    said += f", not so {listed(others)}." if others and apart else "."
    return [said, *dict.fromkeys(one for against in verdicts for one in against.cautions)]


def _ties(verdicts: Sequence[Verdicts]) -> list[str]:
    every = [(against, one) for against in verdicts for one in against]
    spread = [f"{one.method}{_bits(against)}" for against, one in every if one.within_tie_spread]
    if spread:
        subject = "The difference of" if len(spread) == 1 else "The differences of"
        verb = "is" if len(spread) == 1 else "are"
        return [f"{subject} {listed(spread)} {verb} smaller than the tie spread."]
    return ["No difference is smaller than the tie spread."] if every else []


def _ceiling(found: Sequence[Leader]) -> list[str]:
    known = [one for one in found if one.ceiling is not None]
    if not known:
        return []
    best = max(known, key=lambda one: one.mean)
    way = "above" if best.from_ceiling > 0 else "below"
    return [
        f"Without codes, {best.ceiling} reaches {_number(best.ceiling_mean)}; the best code, "
        f"{best.methods[0]}{_bits(best)}, is {_number(abs(best.from_ceiling))} {way} it."
    ]


def _bounds(records: Records, metric: str) -> list[str]:
    found = [one for one in summarise(records, metric) if one.method in records.bounds]
    told = [f"{one.method} ({_number(one.mean)})" for one in found if one.mean == one.mean]
    if not told:
        return []
    verb, noun = ("is", "a bound") if len(told) == 1 else ("are", "bounds")
    return [f"{listed(told)} {verb} {noun}, chosen with sight of the judgements, not a method."]


def _areas(records: Records) -> list[str]:
    if not {"ap", "auprc"} <= set(records.protocol.metrics):
        return []
    return [areas_against_means(records).sentence]


def _undefined(records: Records, metric: str) -> list[str]:
    found = [one for one in summarise(records, metric) if one.undefined]
    if not found:
        return [f"Every query has a value of {metric}."]
    worst = max(found, key=lambda one: one.undefined)
    return [
        f"Queries without a value of {metric} are left out of the means: at most "
        f"{worst.undefined:,} of {worst.n_queries:,}, for {worst.method}{_bits(worst)}."
    ]


def _leaks(records: Records) -> list[str]:
    checked = {record.run: record.split for record in records if "leaks" in record.split}
    if not checked:
        return ["The splits were not searched for leaks."]
    leaking = [run for run, split in sorted(checked.items()) if split["leaks"]]
    if not leaking:
        runs = _count(len(checked), "run")
        return [f"No leaks between sets that should be apart were found in {runs}."]
    first = checked[leaking[0]]
    runs = f"{len(leaking)} of {_count(len(checked), 'run')}"
    told = " ".join(first["leak_check"].split())
    return [f"Leaks were found in {runs}, so that values are too good; {told}."]


def _gaps(records: Records) -> list[str]:
    if not records.missing:
        return []
    failures = records.failures or {}
    n = len(records.missing)
    told = f"{_count(n, 'cell')} of the protocol {'is' if n == 1 else 'are'} missing"
    reasons = [f"{name} ({reason})" for name, reason in failures.items()]
    return [f"{told}; failed: {listed(reasons)}." if reasons else f"{told}, not yet measured."]


def _margin(one: Leader) -> str:
    if not one.followers:
        return ""
    return f" ({_number(one.margin)} over {listed(one.followers)})"


def _bits(one: Leader | Summary | Verdicts) -> str:
    return "" if one.n_bits is None else f" at {one.n_bits} bits"


def _how_many(n: int, of: int) -> str:
    if n == of:
        return "all are" if n > 1 else "it is"
    return f"{n or 'none'} {'are' if n > 1 else 'is'}"


def _are(methods: Sequence[str]) -> str:
    return f"{listed(methods)} {'is' if len(methods) == 1 else 'are'}"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _number(value: float) -> str:
    return f"{value:.{DIGITS}f}"
