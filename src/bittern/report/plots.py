"""Plots by Matplotlib (extra ``plots``), as SVG, PNG or PDF files: what ``--plot`` draws.

The page has its own SVG figures (``bittern.report.figures``), which cannot be PNG or PDF.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.errors import InputError
from bittern.extras import import_extra, require
from bittern.io.files import atomic_write
from bittern.metrics import Curve

if TYPE_CHECKING:
    from bittern.experiments.advice.record import Advice, Estimate, Row
    from bittern.tables import RankingComparison

FORMATS = ("svg", "png", "pdf")
MARKERS = ("o", "s", "^", "v", "D")
# Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
# All of Okabe and Ito's but the yellow, which is hard to see on white.
MORE_COLOURS = (*COLOURS, "#E69F00", "#56B4E9", "#000000")


def draw_pr_curves(
    path: str | os.PathLike[str], micro: Curve, interpolated: Curve, title: str = ""
) -> None:
    """Draw the micro curve over radius and the interpolated curve averaged over queries."""
    figure, axes = _blank(path)
    defined = ~np.isnan(micro.precision)
    recall, precision = micro.recall[defined], micro.precision[defined]
    marker = "o" if len(recall) <= 129 else ""
    axes.plot(recall, precision, color=COLOURS[0], marker=marker, ms=3, label="micro, by radius")
    axes.plot(
        interpolated.recall,
        interpolated.precision,
        color=COLOURS[1],
        marker="s",
        ms=4,
        linestyle="--",
        clip_on=False,  # show all of the marker at recall 0
        label="interpolated, mean over queries",
    )
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02), title=title)
    axes.legend(frameon=False)
    _save(figure, path)


def draw_pr_curves_of_systems(
    path: str | os.PathLike[str], curves: Mapping[str, tuple[Curve, Curve]]
) -> None:
    """Draw the micro and the interpolated curve of each system, in two panels with one legend."""
    figure, panels = _blank(path, n_panels=2)
    titles = ("micro, by radius", "interpolated, mean over queries")
    for i, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        for j, (name, both) in enumerate(curves.items()):
            curve = both[i]
            defined = ~np.isnan(curve.precision)
            few = defined.sum() <= 129
            axes.plot(
                curve.recall[defined],
                curve.precision[defined],
                marker=MARKERS[j % len(MARKERS)] if few else "",
                ms=3,
                lw=1.2,
                label=name,
                clip_on=False,
                **_look(j),
            )
        axes.set(xlabel="recall", xlim=(0, 1), ylim=(0, 1), title=title)
    panels[0].set_ylabel("precision")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=4)
    _save(figure, path)


def draw_tie_spread(
    path: str | os.PathLike[str],
    n_bits: Sequence[int],
    expected: Sequence[float],
    worst: Sequence[float],
    best: Sequence[float],
    title: str = "",
) -> None:
    """Draw mean AP against code length, with the band that breaking ties can reach."""
    figure, axes = _blank(path)
    places = np.arange(len(n_bits))
    axes.fill_between(
        places, worst, best, color=COLOURS[0], alpha=0.2, lw=0, label="any order of tied items"
    )
    axes.plot(places, best, color=COLOURS[2], marker="^", ms=4, lw=1, label="optimistic")
    axes.plot(places, expected, color=COLOURS[0], marker="o", ms=5, label="tie-aware (expected)")
    axes.plot(places, worst, color=COLOURS[1], marker="v", ms=4, lw=1, label="pessimistic")
    axes.set_xticks(places, [str(b) for b in n_bits])
    axes.set(xlabel="bits", ylabel="mean average precision", title=title)
    axes.set_ylim(0, min(1.0, 1.15 * max(best)))
    axes.legend(frameon=False, loc="lower right")
    _save(figure, path)


def draw_tables(
    path: str | os.PathLike[str], comparison: RankingComparison, title: str = ""
) -> None:
    """Draw the precision and recall of hash tables, a line per K, over the ranking's curve."""
    figure, axes = _blank(path)
    surface, curve = comparison.surface, comparison.curve
    axes.plot(curve.recall, curve.precision, color="0.7", lw=4, label="ranking, by radius")
    for k, width in enumerate(surface.bits_per_table):
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        recall, precision = surface.recall[k], surface.precision[k]
        axes.plot(recall, precision, color=colour, marker=marker, ms=5, lw=1, label=f"K = {width}")
        for x, y, n_tables in zip(recall, precision, surface.n_tables, strict=True):
            if not np.isnan([x, y]).any():
                offset = {"xytext": (3, 4), "textcoords": "offset points"}
                axes.annotate(f"{n_tables}", (x, y), fontsize=7, color=colour, **offset)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02), title=title)
    axes.legend(frameon=False)
    _save(figure, path)


def draw_advice(path: str | os.PathLike[str], advice: Advice, title: str = "") -> None:
    """Draw the share that each method keeps against bytes, without and with rescoring."""
    factors = (1,) if advice.most == 1 else (1, advice.most)
    figure, panels = _blank(path, n_panels=len(factors))
    methods = list(dict.fromkeys(row.method for row in advice.rows))
    for axes, factor in zip(np.atleast_1d(panels), factors, strict=True):
        for i, method in enumerate(methods):
            rows = [row for row in advice.rows if row.method == method]
            _draw_method(axes, i, rows, [advice.share(row, factor) for row in rows])
        _draw_frontier(axes, advice, factor)
        how = "without rescoring" if factor == 1 else f"{factor} × rescoring"
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set(xlabel="bytes per item", title=f"{title}, {how}" if title else how)
        axes.set_ylim(bottom=0)
    first = np.atleast_1d(panels)[0]
    first.set_ylabel("share of the float ranking's quality, %")
    handles, labels = np.atleast_1d(panels)[-1].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    _save(figure, path)


def figure_format(path: str | os.PathLike[str]) -> str:
    """The format of a figure by the ending of its path: svg, png or pdf."""
    suffix = Path(path).suffix
    kind = suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(
            f"{path}: a figure is written as .svg, .png or .pdf, got {suffix or 'no ending'}."
        )
    return kind


def require_matplotlib(owner: str) -> None:
    """Raise an error that begins with ``owner`` if Matplotlib is not installed."""
    require({owner: ("matplotlib",)})


def _blank(path: str | os.PathLike[str], n_panels: int = 1) -> tuple[Any, Any]:
    """A figure without a display or global state; checks the ending of the path first.

    Several panels share their axis of precision.
    """
    figure_format(path)
    figure = import_extra("matplotlib.figure", f"a figure ({path})").Figure(
        figsize=(6 if n_panels == 1 else 4 * n_panels, 4), layout="constrained"
    )
    panels = figure.subplots(1, n_panels, sharey=True, squeeze=False)[0]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure, panels[0] if n_panels == 1 else panels


def _look(i: int) -> dict[str, Any]:
    """Colour and line of the i-th system."""
    line = "-" if i < len(MORE_COLOURS) else ":"
    return {"color": MORE_COLOURS[i % len(MORE_COLOURS)], "ls": line}


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    import matplotlib

    kind = figure_format(path)
    # The same input gives the same file.
    metadata = (
        {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else None
    )
    with matplotlib.rc_context({"svg.hashsalt": "bittern"}), atomic_write(path) as file:
        figure.savefig(file, format=kind, metadata=metadata, dpi=150)


def _draw_method(axes: Any, i: int, rows: list[Row], shares: list[Estimate]) -> None:
    """The points of a method, with their intervals."""
    values = [100 * share.value for share in shares]
    low = [max(0.0, v - 100 * share.low) for v, share in zip(values, shares, strict=True)]
    high = [max(0.0, 100 * share.high - v) for v, share in zip(values, shares, strict=True)]
    axes.errorbar(
        [row.n_bytes for row in rows],
        values,
        yerr=[low, high],
        marker=MARKERS[i % len(MARKERS)],
        **_look(i),
        ms=4,
        lw=0.8,
        elinewidth=0.8,
        label=rows[0].method,
    )


def _draw_frontier(axes: Any, advice: Advice, factor: int) -> None:
    """The rows that no other one beats with as few bytes, the target, and the answer."""
    front = advice.frontier(factor)
    axes.step(
        [row.n_bytes for row in front],
        [100 * advice.share(row, factor).value for row in front],
        where="post",
        color="0.75",
        lw=4,
        zorder=0,
        label="frontier",
    )
    target = f"target, {100 * advice.target:g} %"
    axes.axhline(100 * advice.target, color="0.35", lw=1, ls="--", label=target)
    row = advice.recommended
    if advice.factor <= factor:
        axes.plot(
            [row.n_bytes],
            [100 * advice.share(row, factor).value],
            marker="o",
            ms=12,
            mfc="none",
            mec="0.1",
            ls="none",
            label=f"{row.method}, {row.n_bytes} bytes",
        )
