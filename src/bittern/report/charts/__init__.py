"""Charts as inline SVG: small, without scripts, in the colours of the page that holds them."""

from bittern.report.charts.frame import Drawing, Frame, drawing, shortened
from bittern.report.charts.heat import heat_map
from bittern.report.charts.marks import across_line, band, diagonal, line, points, row_rules, span
from bittern.report.charts.plate import Plate, chart_style
from bittern.report.charts.scales import UNIT, Scale, linear, logarithmic, ordinal
from bittern.report.charts.styles import REFERENCE, Style, legend, marker, styles_of

__all__ = [
    "REFERENCE",
    "UNIT",
    "Drawing",
    "Frame",
    "Plate",
    "Scale",
    "Style",
    "across_line",
    "band",
    "chart_style",
    "diagonal",
    "drawing",
    "heat_map",
    "legend",
    "line",
    "linear",
    "logarithmic",
    "marker",
    "ordinal",
    "points",
    "row_rules",
    "shortened",
    "span",
    "styles_of",
]
