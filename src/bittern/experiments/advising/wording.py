"""An advice in words: the sentence, the table, and how it was measured."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from bittern.experiments.advising.estimates import Estimate
from bittern.experiments.advising.speed import CANDIDATES
from bittern.metrics.scores import aligned

if TYPE_CHECKING:
    from bittern.experiments.advising.record import Advice, Row

__all__ = ["notes", "sentence", "table", "wrapped"]

WIDTH = 100
MUCH = 0.05  # of the float ranking's quality
TRUTHS = {
    "classes": "items of the query's class are relevant",
    "tags": "items that share a tag with the query are relevant",
    "neighbours": "the {k} nearest by {metric} distance are relevant",
}


def sentence(advice: Advice) -> str:
    """What to take, what it keeps and what it costs; or that nothing reaches the target."""
    parts = [_choice(advice), _surer(advice), _without_labels(advice), _most(advice)]
    parts.append(_reranked(advice))
    return " ".join(part for part in parts if part)


def _choice(advice: Advice) -> str:
    row, goal = advice.choice, _percent(advice.target)
    if row is None:
        best = advice.best
        return (
            f"Nothing that was tried keeps {goal} of {_quality(advice)}: the best is "
            f"{_name(best)}, with {_interval(best.share)}, at {_memory(advice, best)}."
        )
    text = (
        f"{_name(row)} keeps {_interval(row.share)} of {_quality(advice)}, "
        f"at {_memory(advice, row)}."
    )
    if row.share.value < advice.target:
        text += (
            f" That is short of {goal}: on the queries that chose it, it kept "
            f"{_percent(row.validation_share.value)}."
        )
    return text


def _surer(advice: Advice) -> str:
    """What to take if the interval should be above the target too."""
    if advice.choice is None or advice.safe_choice is advice.choice:
        return ""
    row, goal = advice.safe_choice, _percent(advice.target)
    if row is None:
        return f"Nothing that was tried has its whole interval above {goal}."
    return f"To be sure of {goal} take {_name(row)}: {_interval(row.share)}."


def _without_labels(advice: Advice) -> str:
    """What to take if labels should not be learned from."""
    if advice.choice is None or not advice.choice.learns_from_labels:
        return ""
    row = advice.unsupervised_choice
    if row is None:
        return "No method that does not learn from the labels keeps as much."
    return f"Without learning from labels it takes {_name(row)}: {_interval(row.share)}."


def _most(advice: Advice) -> str:
    """What more there is to be had than was asked for, if it is much."""
    best, row = advice.best, advice.choice
    if row is None or best.validation_share.value - row.validation_share.value < MUCH:
        return ""
    return f"The most that was found has {_name(best)}: {_interval(best.share)}."


def _reranked(advice: Advice) -> str:
    """What to take if the floats are kept, to put candidates in order."""
    if advice.truth != "neighbours":
        return ""
    row = advice.rerank_choice
    if row is not None and row is advice.choice:
        return ""
    found = row or advice.best_candidates
    assert found.recall is not None
    holds = (
        f"the first {advice.cutoff} of {_name(found)} hold {_interval(found.recall)} of the "
        f"{advice.k} nearest among {advice.sizes.database:,} items; among more, expect less."
    )
    if row is None:
        return (
            f"Nor does anything as candidates, to be put in order by the floats: at best, {holds}"
        )
    start = "But as" if advice.choice is None else "As"
    return f"{start} candidates, to be put in order by the floats, {found.n_bits} bits do: {holds}"


def table(advice: Advice, rows: list[Row]) -> str:
    """A line for each row, under the float ranking, with what the answer says of it."""
    head = ["method", "bits", "MB a million", "share, %", "95 % interval", _second(advice)]
    lines = [[*head, "ms a query", "µs to encode"], _floats(advice)]
    lines += [_cells(row) for row in rows]
    marks = ["", "", *(_mark(advice, row) for row in rows)]
    text = aligned(lines)
    marked = [f"{line}  {mark}".rstrip() for line, mark in zip(text, marks, strict=True)]
    return "\n".join([text[0], "─" * len(text[0]), *marked[1:]])


def _second(advice: Advice) -> str:
    """What is told beside the share: with neighbours, precision and share are one."""
    return f"recall@{advice.cutoff}" if advice.truth == "neighbours" else "AP"


def _floats(advice: Advice) -> list[str]:
    size = advice.sizes.float_megabytes
    second = 1.0 if advice.truth == "neighbours" else advice.ceiling.value
    return ["float ranking", f"{8 * size:,}", f"{size:,}", "100", "", f"{second:.3f}", "", ""]


def _cells(row: Row) -> list[str]:
    share = row.share
    second = row.precision if row.recall is None else row.recall
    return [
        row.method,
        str(row.n_bits),
        str(row.megabytes),
        f"{100 * share.value:.1f}",
        f"{100 * share.low:.1f} – {100 * share.high:.1f}",
        f"{second.value:.3f}",
        _short(row.search_milliseconds),
        _short(row.encode_microseconds),
    ]


def _mark(advice: Advice, row: Row) -> str:
    """What the answer says of a row."""
    named = {
        "the fewest bits": advice.choice,
        "surely": advice.safe_choice,
        "without labels": advice.unsupervised_choice,
        "for reranking": advice.rerank_choice,
        "the best": advice.best,
    }
    said = [name for name, which in named.items() if which is row]
    if row is advice.choice:  # the surer and the unlabelled choice are told where they are others
        said = [name for name in said if name not in ("surely", "without labels")]
    return f"← {', '.join(said)}" if said else ""


def notes(advice: Advice) -> str:
    """How it was measured, and what was left out, a sentence a line."""
    lines = [
        _how(advice),
        _certainty(advice),
        _speed(advice),
        *_cautions(advice),
        *_left_out(advice),
    ]
    return "\n".join(map(wrapped, lines))


def _how(advice: Advice) -> str:
    s = advice.sizes
    used = s.train + s.validation + s.test + s.database
    sample = "" if used == s.given else f" of a random {used:,} of them"
    truth = TRUTHS[advice.truth].format(k=advice.k, metric=advice.metric)
    return (
        f"{s.given:,} vectors of {s.dim} dimensions;{sample} {s.train:,} were fitted on, and "
        f"{s.validation + s.test:,} others were queries to yet {s.database:,} others. In truth "
        f"{truth}; AP is average precision over the whole ranking, in expectation over ties."
    )


def _certainty(advice: Advice) -> str:
    s, n = advice.sizes, advice.n_splits
    if n == 1:
        over = "one split, so the intervals are of queries alone"
    else:
        over = f"{n} splits; the intervals are of queries and of splits"
    return (
        f"Chosen by {s.validation:,} queries; the figures are of {s.test:,} others that had no "
        f"part in it, over {over}."
    )


def _speed(advice: Advice) -> str:
    text = (
        f"Search: the {CANDIDATES} nearest of a million codes like those at hand, all "
        "compared, by one thread of this machine."
    )
    if advice.speed is not None:
        v = advice.speed
        text += (
            f" {_name(advice.recommended)} over the {v.n_items:,} at hand: {_short(v.flat)} ms by "
            f"FlatIndex, {_short(v.multi)} ms by MultiIndex."
        )
    return text


def _cautions(advice: Advice) -> list[str]:
    lines = []
    if any(row.learns_from_labels for row in advice.rows):
        lines.append(
            "Methods that learn from labels can find more of them than the vectors' own distances "
            "do (a share above 100 %); of classes that they have not seen this says nothing."
        )
    if advice.truth == "neighbours":
        lines.append(
            "Among more items the nearest are nearer to one another, and need more bits than here."
        )
    return lines


def _left_out(advice: Advice) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for skipped in advice.skipped:
        start = "from " if len(skipped.n_bits) > 1 else ""
        name = f"{skipped.method} {start}{skipped.n_bits[0]} bits"
        by_reason.setdefault(skipped.reason, []).append(name)
    not_tried = [f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()]
    budget = "without a limit" if math.isinf(advice.budget) else f"of {advice.budget:.0f} allowed"
    lines = [f"Not tried: {'; '.join(not_tried)}."] if not_tried else []
    return [*lines, f"It took {advice.seconds:.0f} s, {budget}."]


def wrapped(text: str) -> str:
    """A paragraph, in lines of a readable length."""
    return textwrap.fill(text, WIDTH)


def _quality(advice: Advice) -> str:
    if advice.truth == "neighbours":
        return f"the float ranking's quality (average precision of the {advice.k} nearest)"
    return "the float ranking's average precision"


def _name(row: Row) -> str:
    return f"{row.method} with {row.n_bits} bits"


def _memory(advice: Advice, row: Row) -> str:
    return f"{row.megabytes} MB a million instead of {advice.sizes.float_megabytes:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _interval(estimate: Estimate) -> str:
    low, high = 100 * estimate.low, 100 * estimate.high
    return f"{100 * estimate.value:.1f} % ({low:.1f} to {high:.1f})"


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"
