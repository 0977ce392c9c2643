"""An advice in words: the answer, the table, and how it was measured."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from bittern.codes import MAX_BITS
from bittern.experiments.advice.data import N_NEAREST
from bittern.metrics.scores import aligned

if TYPE_CHECKING:
    from bittern.experiments.advice.record import Advice, Estimate, Row

WIDTH = 100
MUCH = 0.05  # more of the float ranking's quality is worth a sentence
TRUTHS = {
    "classes": "Items of the query's class are relevant",
    "tags": "Items that share a tag with the query are relevant",
    "neighbours": "The {k} nearest items by {metric} distance are relevant",
}


def sentence(advice: Advice) -> str:
    """What to take, what it keeps and what it costs; or that no method reaches the target."""
    parts = [_choice(advice), _surer(advice), _without_labels(advice), _best(advice)]
    parts += [_reranked(advice), _next(advice)]
    return " ".join(part for part in parts if part)


def _choice(advice: Advice) -> str:
    row, goal = advice.choice, _percent(advice.target)
    if row is None:
        best = advice.best
        return (
            f"No method keeps {goal} of {_quality(advice)}. Best overall: {_name(best)} keeps "
            f"{_interval(best.share)}, in {_memory(advice, best)}."
        )
    text = (
        f"{_name(row)} keeps {_interval(row.share)} of {_quality(advice)}, "
        f"in {_memory(advice, row)}."
    )
    if row.share.value < advice.target:
        text += (
            f" That is below {goal}; on the queries that chose it, it kept "
            f"{_percent(row.validation_share.value)}."
        )
    return text


def _surer(advice: Advice) -> str:
    """What to take if the whole interval should be above the target."""
    if advice.choice is None or advice.safe_choice is advice.choice:
        return ""
    row, goal = advice.safe_choice, _percent(advice.target)
    if row is None:
        return f"No method has its whole interval above {goal}."
    return f"To be sure of {goal}, take {_name(row)}: {_interval(row.share)}."


def _without_labels(advice: Advice) -> str:
    """What to take without learning from labels."""
    if advice.choice is None or not advice.choice.learns_from_labels:
        return ""
    row = advice.unsupervised_choice
    if row is None:
        return "Without learning from labels, no method keeps as much."
    return f"Without learning from labels, take {_name(row)}: {_interval(row.share)}."


def _best(advice: Advice) -> str:
    """The best of all, if it is much better than the choice."""
    best, row = advice.best, advice.choice
    if row is None or best.validation_share.value - row.validation_share.value < MUCH:
        return ""
    return f"Best overall: {_name(best)}, {_interval(best.share)}."


def _reranked(advice: Advice) -> str:
    """What to take if the floats are kept to rerank candidates."""
    if advice.truth != "neighbours":
        return ""
    row = advice.rerank_choice
    if row is not None and row is advice.choice:
        return ""
    found = row or advice.best_candidates
    assert found.recall is not None
    holds = (
        f"the first {advice.cutoff} by {_name(found)} hold {_interval(found.recall)} of the "
        f"{advice.k} nearest among {advice.sizes.database:,} items; expect less among more."
    )
    if row is None:
        return f"Reranking candidates by the floats does not reach it either: at best, {holds}"
    return f"If the floats rerank candidates, {found.n_bits} bits are enough: {holds}"


def _next(advice: Advice) -> str:
    """What to try next if nothing keeps the target, as arguments of Python and the command."""
    if advice.choice is not None:
        return ""
    late = list(dict.fromkeys(one.method for one in advice.skipped if one.lacked_time))
    if late:
        more = math.ceil(2 * max(advice.budget, advice.seconds))
        return (
            f"Next, allow more time, {_option('budget', more)}: {', '.join(late)} could not be "
            "tried at every length."
        )
    longest = max(row.n_bits for row in advice.rows)
    if advice.best.n_bits == longest and 2 * longest <= MAX_BITS:
        return f"Next, try longer codes: {_option('bits', 2 * longest, python='n_bits')}."
    if advice.truth == "neighbours" and advice.rerank_choice is None:
        more = min(10 * advice.cutoff, advice.sizes.database)
        if more > advice.cutoff:
            return f"Next, rerank more candidates: {_option('candidates', more)}."
    share = math.floor(100 * advice.best.validation_share.value) / 100
    return f"Next, ask for less: {_option('target', max(share, 0.01))}."


def _option(name: str, value: float, python: str = "") -> str:
    """An argument as the command and as Python take it."""
    listed = f"[{value}]" if python else value
    return f"--{name} {value} ({python or name}={listed})"


def table(advice: Advice, rows: list[Row]) -> str:
    """One line per row, below the float ranking, with what the answer says about it."""
    head = ["method", "bits", "MB per million", "share, %", "95 % interval", _second(advice)]
    lines = [[*head, "ms per query", "µs to encode"], _floats(advice)]
    lines += [_cells(row) for row in rows]
    marks = ["", "", *(_mark(advice, row) for row in rows)]
    text = aligned(lines)
    marked = [f"{line}  {mark}".rstrip() for line, mark in zip(text, marks, strict=True)]
    return "\n".join([text[0], "─" * len(text[0]), *marked[1:]])


def _second(advice: Advice) -> str:
    """The column beside the share; for neighbours, precision is the share itself."""
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
    """What the answer says about a row."""
    named = {
        "fewest bits": advice.choice,
        "to be sure": advice.safe_choice,
        "without labels": advice.unsupervised_choice,
        "for reranking": advice.rerank_choice,
        "best": advice.best,
    }
    marks = [name for name, which in named.items() if which is row]
    if row is advice.choice:  # these two are only worth saying of another row
        marks = [name for name in marks if name not in ("to be sure", "without labels")]
    return f"← {', '.join(marks)}" if marks else ""


def notes(advice: Advice) -> str:
    """How it was measured, and what was left out."""
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
    sample = "" if used == s.given else f" {used:,} random ones were used."
    truth = TRUTHS[advice.truth].format(k=advice.k, metric=advice.metric)
    return (
        f"{s.given:,} vectors of {s.dim} dimensions.{sample} Methods were fitted on {s.train:,} "
        f"rows; {s.validation + s.test:,} other rows were queries, and {s.database:,} others the "
        f"database. {truth}. AP is average precision over the whole ranking, in expectation over "
        "ties."
    )


def _certainty(advice: Advice) -> str:
    s, n = advice.sizes, advice.n_splits
    if n == 1:
        over = "one split, so the intervals cover only the choice of queries"
    else:
        over = f"{n} splits; the intervals cover the choice of queries and of splits"
    return (
        f"{s.validation:,} queries chose the method; the figures come from {s.test:,} others, "
        f"over {over}."
    )


def _speed(advice: Advice) -> str:
    text = (
        f"Search finds the {N_NEAREST} nearest of a million codes like these by comparing all of "
        "them, on one thread of this machine."
    )
    if advice.speed is not None:
        v = advice.speed
        text += (
            f" {_name(advice.recommended)} over these {v.n_items:,} codes takes "
            f"{_short(v.flat)} ms with FlatIndex and {_short(v.multi)} ms with MultiIndex."
        )
    return text


def _cautions(advice: Advice) -> list[str]:
    lines = []
    if any(row.learns_from_labels for row in advice.rows):
        lines.append(
            "Methods that learn from labels can do better than distances between the vectors (a "
            "share above 100 %); this says nothing about classes that they have not seen."
        )
    if advice.truth == "neighbours":
        lines.append(
            "Among more items, neighbours are closer together and need more bits than here."
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
    return [*lines, f"This took {advice.seconds:.0f} s {budget}."]


def wrapped(text: str) -> str:
    """A paragraph in lines of a readable length."""
    return textwrap.fill(text, WIDTH)


def _quality(advice: Advice) -> str:
    if advice.truth == "neighbours":
        return f"the float ranking's quality (average precision of the {advice.k} nearest)"
    return "the float ranking's average precision"


def _name(row: Row) -> str:
    return f"{row.method} at {row.n_bits} bits"


def _memory(advice: Advice, row: Row) -> str:
    return f"{row.megabytes} MB per million items instead of {advice.sizes.float_megabytes:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _interval(estimate: Estimate) -> str:
    low, high = 100 * estimate.low, 100 * estimate.high
    return f"{100 * estimate.value:.1f} % ({low:.1f} to {high:.1f})"


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"
