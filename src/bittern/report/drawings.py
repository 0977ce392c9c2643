"""The figures of the page as SVG files, for papers and slides."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from bittern.errors import FileError, InputError
from bittern.experiments.records import Records
from bittern.io.files import atomic_write
from bittern.registry import Registry
from bittern.report.charts import Plate
from bittern.report.page.areas import area_plate
from bittern.report.page.classes import class_plate
from bittern.report.page.costs import cost_plate
from bittern.report.page.curves import bits_plate, curve_plate
from bittern.report.page.methods import method_plate
from bittern.report.page.surfaces import surface_plate
from bittern.report.page.sweeps import sweep_plate
from bittern.report.page.ties import tie_plate
from bittern.report.page.view import View

__all__ = ["FIGURES", "to_svg", "write_figures"]

FIGURES: Registry[Callable[[View], Plate | None]] = Registry(
    "figure",
    {
        "bits": bits_plate,
        "methods": method_plate,
        "parameter": sweep_plate,
        "curves": lambda view: curve_plate(view, "micro"),
        "curves-interpolated": lambda view: curve_plate(view, "interpolated"),
        "ties": tie_plate,
        "costs": cost_plate,
        "classes": class_plate,
        "tables": surface_plate,
        "areas": area_plate,
    },
)


def to_svg(records: Records, figure: str) -> str | None:
    """A figure as an SVG file's text; None where the records have nothing for it."""
    plate = FIGURES[figure](View.of(records)) if len(records) else None
    return None if plate is None else plate.to_svg()


def write_figures(records: Records, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure that the records have something for; the files, by the figures' names."""
    if not len(records):
        raise InputError("report: there are no records yet; `bittern run` makes them.")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{place}: cannot be made ({error.strerror}).") from error
    written = []
    for name in FIGURES:
        content = to_svg(records, name)
        if content is not None:
            with atomic_write(place / f"{name}.svg") as file:
                file.write(content.encode())
            written.append(place / f"{name}.svg")
    return written
