"""How an advice was measured, and what was left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bittern.experiments.advice.wording import more_time, size, wrapped

if TYPE_CHECKING:
    from bittern.experiments.advice.record import Advice

TRUTHS = {
    "classes": "Items of the query's class are relevant",
    "tags": "Items that share a tag with the query are relevant",
    "judgements": "Items that were judged relevant are",
    "neighbours": "The {k} nearest items by {metric} distance are relevant",
}


def notes(advice: Advice) -> str:
    """All notes, a paragraph each."""
    lines = [_how(advice), _larger(advice), _certainty(advice), _costs(advice)]
    lines += [*_cautions(advice), *_left_out(advice)]
    return "\n".join(wrapped(line) for line in lines if line)


def _how(advice: Advice) -> str:
    s = advice.sizes
    truth = TRUTHS[advice.truth].format(k=advice.k, metric=advice.metric)
    return (
        f"{s.given:,} vectors of {s.dim} dimensions. Methods were fitted on {s.train:,} rows; "
        f"{s.validation + s.test:,} other vectors were queries, and up to {s.database:,} other "
        f"rows the database. {truth}. The share is the number of relevant items in the first "
        f"{advice.k} results, in expectation over ties, divided by that of the float ranking. With "
        f"f × rescoring, the first {advice.k} of f × {advice.k} candidates by the {advice.store} "
        f"vectors; {_other(advice)}"
    )


def _other(advice: Advice) -> str:
    other = next(store for store in advice.stores if store != advice.store)
    return f"--rescore-from {other} (rescore_from='{other}') shows {other}."


def _larger(advice: Advice) -> str:
    """How the shares for the user's own size were found."""
    measured = [row.n_measured for row in advice.rows]
    if advice.items <= min(measured):
        return f"The figures are for the {min(measured):,} items that were searched."
    if not all(row.is_expected for row in advice.rows if row.n_measured < advice.items):
        return (
            f"There were too few rows to extrapolate: the figures are for {min(measured):,} items; "
            f"expect less among {advice.items:,}."
        )
    sizes = sorted({size for row in advice.rows for size in row.shares.measured})
    return (
        f"Measured among {', '.join(f'{n:,}' for n in sizes)} items, and extrapolated to "
        f"{advice.items:,} by a curve fitted to these sizes; the intervals include the error of "
        "the fit."
    )


def _certainty(advice: Advice) -> str:
    s = advice.sizes
    most = max(row.n_splits for row in advice.rows)
    fewest = min(row.n_splits for row in advice.rows)
    if most == 1:
        over = "one split, so the intervals do not cover the choice of training rows"
    else:
        number = f"{most}" if fewest == most else f"{fewest} to {most}"
        over = f"{number} splits; the intervals cover the choice of queries and of splits"
    return (
        f"{s.validation:,} queries chose the method; the figures come from {s.test:,} others, "
        f"over {over}. Below each share is its 95 % interval."
    )


def _costs(advice: Advice) -> str:
    parts = [
        f"{store} {size(1e6 * each)} for a million items and {size(each * advice.items)} for "
        f"{advice.items:,}"
        for store, each in advice.stores.items()
    ]
    return (
        "Bytes per item are megabytes of RAM for a million items. Vectors for rescoring can be on "
        f"disk: {'; '.join(parts)}. Search scans a million items on this machine, 20 queries at a "
        "time, scaled from the items searched here; rescoring comes on top."
    )


def _cautions(advice: Advice) -> list[str]:
    if not any(row.learns_from_labels for row in advice.rows):
        return []
    return [
        "Methods that learn from labels can do better than distances between the vectors (a "
        "share above 100 %); this says nothing about classes that they have not seen."
    ]


def _left_out(advice: Advice) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for skipped in advice.skipped:
        if skipped.lacked is None:
            bits = "" if skipped.n_bits is None else f" {skipped.n_bits} bits"
            by_reason.setdefault(skipped.reason, []).append(f"{skipped.method}{bits}")
    not_tried = [f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()]
    budget = "without a limit" if math.isinf(advice.budget) else f"of {advice.budget:.0f} allowed"
    end = " Ctrl-C stopped it early." if advice.stopped else ""
    lines = [f"Not tried: {'; '.join(not_tried)}."] if not_tried else []
    return [*lines, *_too_late(advice), f"This took {advice.seconds:.0f} s {budget}.{end}"]


def _too_late(advice: Advice) -> list[str]:
    """What there was no time for, and how much would have been enough."""
    sizes: dict[str, list[str]] = {}
    for one in advice.skipped:
        if one.lacked is not None:
            bits = one.n_bits
            size = [] if bits is None else [f"{bits} bits" if bits % 8 else f"{bits // 8:,}"]
            sizes.setdefault(one.method, []).extend(size)
    if not sizes:
        return []
    listed = [
        f"{method} at {', '.join(some)}" if some else method for method, some in sizes.items()
    ]
    enough = "" if advice.stopped else f" To try all of it, allow about {more_time(advice)}."
    return [f"No time was left to try (bytes): {'; '.join(listed)}.{enough}"]
