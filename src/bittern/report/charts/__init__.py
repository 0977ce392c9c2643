"""Charts as inline SVG: small, without scripts, in the colours of the page that holds them."""

from bittern.report.charts.chart import (
    UNIT,
    Frame,
    Scale,
    across_line,
    band,
    diagonal,
    heat_map,
    line,
    linear,
    logarithmic,
    ordinal,
    points,
    row_rules,
    shortened,
    span,
)
from bittern.report.charts.figure import Figure, chart_style
from bittern.report.charts.svg import REFERENCE, Panel, Style, join, styles_of, tag

__all__ = [
    "REFERENCE",
    "UNIT",
    "Figure",
    "Frame",
    "Panel",
    "Scale",
    "Style",
    "across_line",
    "band",
    "chart_style",
    "diagonal",
    "heat_map",
    "join",
    "line",
    "linear",
    "logarithmic",
    "ordinal",
    "points",
    "row_rules",
    "shortened",
    "span",
    "styles_of",
    "tag",
]
