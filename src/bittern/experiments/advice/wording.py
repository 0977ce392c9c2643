"""An advice in words: the answer and the table; how it was measured is in ``notes``."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from bittern.codes import MAX_BITS
from bittern.metrics.scores import aligned

if TYPE_CHECKING:
    from bittern.experiments.advice.record import Advice, Estimate, Row

WIDTH = 100
#: What pgvector does itself, by our name.
PGVECTOR = {"float16": "halfvec", "binary": "binary_quantize"}
ENGINE_ROWS = ("float16", "int8", "binary")


def sentence(advice: Advice) -> str:
    """What to take, what it keeps and what it costs; or that no method reaches the target."""
    parts = [_choice(advice), _surer(advice), _alone(advice), _without_labels(advice)]
    parts += [_deeper(advice), _otherwise_rescored(advice), _engines(advice), _lacking(advice)]
    parts += [_next(advice)]
    return " ".join(part for part in parts if part)


def _choice(advice: Advice) -> str:
    row, goal = advice.recommended, percent(advice.target)
    share = advice.share(row, advice.factor)
    claim = f"keeps {interval(share)} of {_quality(advice)}"
    cost = (
        f"at {percent(row.n_bytes / advice.sizes.float_bytes)} of the memory "
        f"({row.n_bytes:,} MB per million items instead of {advice.sizes.float_bytes:,})"
    )
    named = f"{name(row)}{rescored(advice.factor)}"
    if advice.store != "float32" and advice.factor > 1:
        named += f" from {advice.store} vectors"
    if advice.rerank_choice is None:
        return f"Nothing tried keeps {goal} of {_quality(advice)}. {named} {claim}, {cost}."
    text = f"{named} {claim}, {cost}."
    if share.value < advice.target:
        index = advice.factors.index(advice.factor)
        chosen = row.validation_shares.expected[advice.store][index].value
        text += f" That is below {goal}; on the queries that chose it, it kept {percent(chosen)}."
    return text


def _surer(advice: Advice) -> str:
    """What to take if the whole interval should be above the target."""
    chosen, row, goal = advice.rerank_choice, advice.safe_choice, percent(advice.target)
    if chosen is None:
        return ""
    factor = None if row is None else advice.needed(row, advice.most, surely=True)
    if row is None or factor is None or advice.share(row, factor).low < advice.target:
        return f"Nothing has its whole interval above {goal}."
    if row is chosen and factor == advice.factor:
        return ""
    return f"To be sure of {goal}, take {_kept(advice, row, factor)}."


def _alone(advice: Advice) -> str:
    """What to take if no vectors are kept to rescore by."""
    if advice.rerank_choice is None or advice.factor == 1:
        return ""
    row = advice.choice
    if row is None:
        return "Without rescoring, nothing tried keeps as much."
    return f"Without rescoring, take {_kept(advice, row, 1)}."


def _without_labels(advice: Advice) -> str:
    """What to take without learning from labels."""
    if advice.rerank_choice is None or not advice.rerank_choice.learns_from_labels:
        return ""
    row = advice.unsupervised_choice
    if row is None:
        return "Without learning from labels, nothing tried keeps as much."
    factor = advice.needed(row, advice.most)
    assert factor is not None
    return f"Without learning from labels, take {_kept(advice, row, factor)}."


def _deeper(advice: Advice) -> str:
    """Fewer bytes with more rescoring than the answer uses."""
    row, chosen = advice.deepest_choice, advice.rerank_choice
    if row is None or (chosen is not None and row.n_bytes >= chosen.n_bytes):
        return ""
    factor = advice.needed(row)
    assert factor is not None
    return f"With more rescoring, fewer bytes do: {_kept(advice, row, factor)}."


def _otherwise_rescored(advice: Advice) -> str:
    """What it keeps if the vectors that rescore are the other ones."""
    row, factor = advice.recommended, advice.factor
    if factor == 1:
        return ""
    if advice.store == "int8":
        kept = advice.share(row, factor, "float32")
        return f"Rescored from float32 vectors, four times the disk, it keeps {interval(kept)}."
    kept = advice.share(row, factor, "int8")
    return f"Rescored from int8 vectors, a quarter of the disk, it keeps {interval(kept)}."


def _engines(advice: Advice) -> str:
    """What pgvector offers by itself."""
    clauses = []
    for row in advice.rows:
        if row.method in PGVECTOR and row is not advice.recommended:
            factor = advice.needed(row)
            kept = advice.share(row, factor or advice.factors[-1])
            how = rescored(factor or advice.factors[-1])
            short = "" if factor else " only"
            clauses.append(f"{PGVECTOR[row.method]}{how} keeps{short} {interval(kept)}")
    clauses.reverse()  # halfvec first
    return f"In pgvector as it is: {'; '.join(clauses)}." if clauses else ""


def _lacking(advice: Advice) -> str:
    """Methods that need a library that is not installed."""
    by_reason: dict[str, list[str]] = {}
    for one in advice.skipped:
        if one.reason.startswith("needs "):
            by_reason.setdefault(one.reason, []).append(one.method)
    return " ".join(
        f"Not tried: {', '.join(dict.fromkeys(names))} ({reason})."
        for reason, names in by_reason.items()
    )


def _next(advice: Advice) -> str:
    """What to try next if nothing keeps the target, as arguments of Python and the command."""
    if advice.rerank_choice is not None:
        return ""
    late = list(dict.fromkeys(one.method for one in advice.skipped if one.lacked is not None))
    if late and not advice.stopped:
        return (
            f"Next, allow more time, {more_time(advice)}: {', '.join(late)} could not be tried at "
            "every size."
        )
    if advice.deepest_choice is not None:
        factor = advice.needed(advice.deepest_choice)
        return f"Next, allow more rescoring: {_option('rescore', factor or advice.factors[-1])}."
    longest = max(row.n_bits for row in advice.rows)
    if advice.best.n_bits == longest and 2 * longest <= MAX_BITS:
        return f"Next, try longer codes: {_option('bits', 2 * longest, python='n_bits')}."
    found = advice.share(advice.recommended, advice.factor).value
    return f"Next, ask for less: {_option('target', max(math.floor(100 * found) / 100, 0.01))}."


def more_time(advice: Advice) -> str:
    """The budget that would have been enough for everything, as an argument."""
    lacked = sum(one.lacked or 0.0 for one in advice.skipped)
    enough = 1.3 * (max(advice.budget, advice.seconds) + lacked)
    return _option("budget", 10 * math.ceil(enough / 10))


def _option(option: str, value: float, python: str = "") -> str:
    """An argument as the command and as Python take it."""
    listed = f"[{value}]" if python else value
    return f"--{option} {value} ({python or option}={listed})"


def table(advice: Advice, rows: list[Row]) -> str:
    """Shares above their intervals; below these, what the answer says about a row."""
    factors = [f"{factor} ×" for factor in advice.factors]
    head = ["method", "bytes", *factors, "needs", "RAM", "search", "encode"]
    units = [*[""] * (len(head) - 3), short_count(advice.items, "M"), "ms", "µs"]
    lines = [head, units, _floats(advice)]
    for row in rows:
        lines += [_cells(advice, row), _intervals(advice, row, len(head))]
    text = [line.rstrip() for line in aligned(lines, gap=1)]
    widest = max(map(len, text))
    title = f"Share kept, in %, with rescoring from {advice.store} vectors"
    out = [title, "", *text[:2], "─" * widest, text[2]]
    for i, row in enumerate(rows):
        mark = _mark(advice, row)
        out += [*text[3 + 2 * i : 5 + 2 * i], *([f"  ↑ {mark}"] if mark else [])]
    return "\n".join(out)


def cells(advice: Advice, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """The table of a notebook; a line ends with what the answer says about it."""
    factors = [f"{factor} ×" for factor in advice.factors]
    memory = f"RAM, {short_count(advice.items)}"
    head = ["method", "bytes", *factors, "needs", memory, "ms per query", "µs to encode", ""]
    lines = [[*_cells(advice, row), _mark(advice, row)] for row in rows]
    return head, [[*_floats(advice), ""], *lines]


def _floats(advice: Advice) -> list[str]:
    each = advice.sizes.float_bytes
    blank = [""] * (len(advice.factors) - 1)
    return ["float32", f"{each:,}", "100", *blank, "1 ×", size(each * advice.items), "", ""]


def _cells(advice: Advice, row: Row) -> list[str]:
    factor = advice.needed(row)
    return [
        row.method,
        f"{row.n_bytes:,}",
        *(_share(advice.share(row, factor).value) for factor in advice.factors),
        "–" if factor is None else f"{factor} ×",
        size(row.n_bytes * advice.items),
        short(row.search_milliseconds),
        short(row.encode_microseconds),
    ]


def _intervals(advice: Advice, row: Row, n_cells: int) -> list[str]:
    shares = [advice.share(row, factor) for factor in advice.factors]
    cells = ["", "", *(f"{_share(one.low)}–{_share(one.high)}" for one in shares)]
    return cells + [""] * (n_cells - len(cells))


def _mark(advice: Advice, row: Row) -> str:
    """What the answer says about a row."""
    named = {
        "the answer": advice.rerank_choice,
        "to be sure": advice.safe_choice,
        "without rescoring": advice.choice,
        "without labels": advice.unsupervised_choice,
    }
    marks = [mark for mark, which in named.items() if which is row]
    if row is advice.rerank_choice:  # the others are only worth saying of another row
        marks = marks[:1]
    if advice.rerank_choice is None and row is advice.recommended:
        marks.append("the best")
    return ", ".join(marks)


def _share(share: float) -> str:
    """A share in percent, for a narrow column."""
    return f"{100 * share:.1f}".replace("100.0", "100")


def wrapped(text: str) -> str:
    """A paragraph in lines of a readable length."""
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)


def _quality(advice: Advice) -> str:
    among = f"among {advice.about:,} items"
    if advice.truth == "neighbours":
        return f"the {advice.k} nearest {among}"
    return f"the relevant items in the float ranking's first {advice.k}, {among}"


def _kept(advice: Advice, row: Row, factor: int) -> str:
    return f"{name(row)}{rescored(factor)}, {interval(advice.share(row, factor))}"


def name(row: Row) -> str:
    """A method and its size."""
    if row.columns is not None:
        return f"the first {row.columns} columns in float16 ({row.n_bytes} bytes)"
    if row.n_bits % 8:
        return f"{row.method} at {row.n_bits} bits"
    return f"{row.method} at {row.n_bytes} byte{'s' * (row.n_bytes != 1)}"


def rescored(factor: int) -> str:
    """How much is rescored, after a name."""
    return "" if factor == 1 else f" with {factor} × rescoring"


def percent(share: float) -> str:
    """A share with at most one decimal."""
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def interval(estimate: Estimate) -> str:
    """A share with its interval."""
    low, high = 100 * estimate.low, 100 * estimate.high
    return f"{100 * estimate.value:.1f} % ({low:.1f}–{high:.1f})"


def short(value: float) -> str:
    """Two digits, or a whole number."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def short_count(n: int, millions: str = "million") -> str:
    """A number of items, as short as it can be said."""
    if n >= 1_000_000 and n % 100_000 == 0:
        return f"{n / 1e6:g} {millions}"
    return f"{n:,}"


def size(n_bytes: float) -> str:
    """A number of bytes, in the unit that suits it."""
    for unit, step in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= step:
            return f"{short(n_bytes / step)} {unit}"
    return f"{short(n_bytes / 1e3)} kB"
