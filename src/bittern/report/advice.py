"""The curve of an advice: what is left of the float ranking's quality, against bits."""

from __future__ import annotations

import os
from typing import Any

from bittern.experiments.advising.record import Advice, Row
from bittern.report.figures import COLOURS, MARKERS, _blank, _save

__all__ = ["draw_advice"]

# The rest of Okabe and Ito's, but for the yellow, which is lost on white.
MORE_COLOURS = (*COLOURS, "#E69F00", "#56B4E9", "#000000")


def draw_advice(path: str | os.PathLike[str], advice: Advice, title: str = "") -> None:
    """Draw the share of each method against code length, with 95 % intervals and the choice."""
    figure, axes = _blank(path)
    lengths = sorted({row.n_bits for row in advice.rows})
    methods = list(dict.fromkeys(row.method for row in advice.rows))
    for i, method in enumerate(methods):
        rows = sorted((r for r in advice.rows if r.method == method), key=lambda r: r.n_bits)
        shift = 0.3 * (i / max(1, len(methods) - 1) - 0.5)  # bars beside one another
        _draw_method(axes, i, rows, [lengths.index(r.n_bits) + shift for r in rows])
    target = f"target, {100 * advice.target:g} %"
    axes.axhline(100 * advice.target, color="0.35", lw=1, ls="--", label=target)
    _mark_choice(axes, advice, methods, lengths)
    axes.set_xticks(range(len(lengths)), [str(n) for n in lengths])
    axes.set(xlabel="bits", ylabel="share of the float ranking's quality, %", title=title)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    _save(figure, path)


def _draw_method(axes: Any, i: int, rows: list[Row], places: list[float]) -> None:
    values = [100 * row.share.value for row in rows]
    low = [v - 100 * row.share.low for v, row in zip(values, rows, strict=True)]
    high = [100 * row.share.high - v for v, row in zip(values, rows, strict=True)]
    axes.errorbar(
        places,
        values,
        yerr=[[max(0.0, x) for x in low], [max(0.0, x) for x in high]],
        color=MORE_COLOURS[i % len(MORE_COLOURS)],
        marker=MARKERS[i % len(MARKERS)],
        ls="-" if i < len(MORE_COLOURS) else ":",
        ms=4,
        lw=1,
        elinewidth=0.8,
        label=rows[0].method,
    )


def _mark_choice(axes: Any, advice: Advice, methods: list[str], lengths: list[int]) -> None:
    """A ring around what is to be taken."""
    row = advice.recommended
    shift = 0.3 * (methods.index(row.method) / max(1, len(methods) - 1) - 0.5)
    axes.plot(
        [lengths.index(row.n_bits) + shift],
        [100 * row.share.value],
        marker="o",
        ms=12,
        mfc="none",
        mec="0.1",
        ls="none",
        label=f"{row.method}, {row.n_bits} bits{_what(advice)}",
    )


def _what(advice: Advice) -> str:
    """What the marked row is, where it does not keep the target."""
    if advice.choice is not None:
        return ""
    return ": for reranking" if advice.rerank_choice is not None else ": the best"
