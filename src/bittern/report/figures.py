"""Figures: precision-recall curves, hash tables, and average precision with its tie spread."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bittern.errors import InputError
from bittern.index import RankingComparison
from bittern.io.files import atomic_write
from bittern.metrics import Curve

__all__ = ["draw_pr_curves", "draw_tables", "draw_tie_spread", "figure_format"]

FORMATS = ("svg", "png", "pdf")
MARKERS = ("o", "s", "^", "v", "D")
# Okabe and Ito's colours, told apart by colour-blind people too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


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
        clip_on=False,  # the marker at recall 0 is whole
        label="interpolated, mean over queries",
    )
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02), title=title)
    axes.legend(frameon=False)
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
    """Draw settings of hash tables, a line for each K over L, on the ranking's curve by radius."""
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


def figure_format(path: str | os.PathLike[str]) -> str:
    """What the ending of a path asks for; refused if it is none of the three."""
    suffix = Path(path).suffix
    kind = suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(
            f"{path}: a figure is written as .svg, .png or .pdf, got {suffix or 'no ending'}."
        )
    return kind


def _blank(path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """A figure that needs no display and no global state; the ending is checked before the work."""
    from matplotlib.figure import Figure

    figure_format(path)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure, axes


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    import matplotlib

    kind = figure_format(path)
    # The same input gives the same file.
    metadata = (
        {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else None
    )
    with matplotlib.rc_context({"svg.hashsalt": "bittern"}), atomic_write(path) as file:
        figure.savefig(file, format=kind, metadata=metadata, dpi=150)
