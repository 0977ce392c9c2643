"""The section on a parameter: quality against its values, a curve for each method that has them."""

from __future__ import annotations

from collections.abc import Mapping

from bittern.analysis import Summary, Sweep, sweep_of
from bittern.report.charts import (
    Drawing,
    Frame,
    Plate,
    Style,
    band,
    legend,
    line,
    linear,
    ordinal,
    points,
    styles_of,
)
from bittern.report.markup import Html, fragment
from bittern.report.page.parts import bits_of, figure, plated, section
from bittern.report.page.view import View

__all__ = ["against_parameter", "sweep_plate"]


def against_parameter(view: View) -> Html | None:
    """Quality against a parameter; nothing where no method has several values of one."""
    plate, sweep = sweep_plate(view), sweep_of(view.records)
    if plate is None or sweep is None:
        return None
    return section(
        f"Quality against {sweep.parameter}",
        "sweep",
        figure(
            fragment(legend(plate.styles), plate.drawings[0])
            if len(plate.drawings) == 1
            else plated(plate),
            f"Mean {view.main_metric} of methods that differ in {sweep.parameter} alone; the bands "
            "are 95 % intervals.",
            class_="wide",
        ),
    )


def sweep_plate(view: View) -> Plate | None:
    """The main metric against the parameter, a panel a length."""
    sweep = sweep_of(view.records)
    if sweep is None:
        return None
    styles = styles_of(list(sweep.series))
    drawn = [_panel(view, sweep, styles, n_bits) for n_bits in view.lengths]
    return Plate(drawn, styles)


def _panel(view: View, sweep: Sweep, styles: dict[str, Style], n_bits: int | None) -> Drawing:
    found = sweep.summaries(view.records, view.main_metric, n_bits)
    every = [s for series in found.values() for s in series.values()]
    frame = Frame(
        ordinal([f"{value:g}" for value in sweep.values]),
        linear([value for s in every for value in (s.mean, *s.interval)]),
        sweep.parameter,
        view.main_metric,
        "" if n_bits is None else bits_of(n_bits),
        width=480 if len(view.lengths) == 1 else 360,
        height=310 if len(view.lengths) == 1 else 260,
    )
    drawn = [_one(frame, sweep, styles[name], name, series) for name, series in found.items()]
    label = f"{view.main_metric} against {sweep.parameter}, {bits_of(n_bits)}: {', '.join(found)}."
    return frame.draw(label, *drawn)


def _one(
    frame: Frame, sweep: Sweep, style: Style, name: str, series: Mapping[float, Summary]
) -> Html:
    places = {value: place for place, value in enumerate(sweep.values)}
    at = [(float(places[value]), s.mean) for value, s in series.items()]
    reach = [(float(places[value]), *s.interval) for value, s in series.items()]
    titles = [f"{name}, {sweep.parameter} = {v:g}: {s.mean:.3f}" for v, s in series.items()]
    return fragment(
        band(frame, reach, style), line(frame, at, style), points(frame, at, style, titles, size=4)
    )
