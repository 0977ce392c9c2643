"""The section on averages: AUPRC, where counts are summed, against mAP, where queries are equal."""

from __future__ import annotations

import math

from bittern.analysis import AreaAndMean, areas_against_means
from bittern.report.charts import Frame, Plate, diagonal, legend, linear, points
from bittern.report.markup import Html
from bittern.report.page.parts import bits_of, figure, section
from bittern.report.page.view import View

__all__ = ["area_and_mean", "area_plate"]


def area_and_mean(view: View) -> Html | None:
    """The two measures; nothing where either is missing everywhere."""
    plate = area_plate(view)
    if plate is None:
        return None
    return section(
        "AUPRC against mAP",
        "areas",
        figure(
            plate.drawings[0],
            legend(plate.styles, has_lines=False),
            Html.tag("p", areas_against_means(view.records).sentence),
            Html.tag(
                "p",
                "AUPRC sums counts over queries first, so that queries with many relevant items "
                "weigh more; mAP gives each query the same weight. On the thin line both are "
                "equal. Longer codes have larger points.",
            ),
            class_="beside",
        ),
    )


def area_plate(view: View) -> Plate | None:
    """A point a method and length."""
    compared = areas_against_means(view.records)
    rows = [row for row in compared.rows if math.isfinite(row.auprc) and math.isfinite(row.ap)]
    if not rows:
        return None
    scale = linear([value for row in rows for value in (row.auprc, row.ap)])
    frame = Frame(scale, scale, "mAP", "AUPRC", width=420, height=370)
    drawn = [diagonal(frame), *(_point(frame, view, row) for row in rows)]
    label = "AUPRC against mAP. " + "; ".join(map(_told, rows)) + "."
    styles = {m: view.styles[m] for m in view.styles if any(row.method == m for row in rows)}
    return Plate([frame.draw(label, *drawn)], styles, has_lines=False)


def _point(frame: Frame, view: View, row: AreaAndMean) -> Html:
    lengths = view.records.lengths
    place = lengths.index(row.n_bits) if row.n_bits is not None else 0
    size = 3 + 3 * place / max(len(lengths) - 1, 1)
    return points(frame, [(row.ap, row.auprc)], view.styles[row.method], [_told(row)], size=size)


def _told(row: AreaAndMean) -> str:
    return f"{row.method}, {bits_of(row.n_bits)}: mAP {row.ap:.3f}, AUPRC {row.auprc:.3f}"
