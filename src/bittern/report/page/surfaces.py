"""The section on hash tables: F1 for every number of bits a table and every number of tables."""

from __future__ import annotations

import numpy as np

from bittern.analysis.averages import Surface, mean_surface
from bittern.report.charts import Drawing, Plate, heat_map, shortened
from bittern.report.markup import Html
from bittern.report.page.parts import bits_of, figure, number, plated, section
from bittern.report.page.view import View

__all__ = ["surface_plate", "table_surfaces"]


def table_surfaces(view: View) -> Html | None:
    """F1 of hash tables; nothing where there are none."""
    plate = surface_plate(view)
    if plate is None:
        return None
    return section(
        "Hash tables",
        "surface",
        figure(
            plated(plate),
            "F1 of the items that share a bucket with the query, counts summed over queries first, "
            "for K bits a table and L tables; mean over runs. Blank where a code is too short for "
            "K × L bits. Shades are the same in every map; precision and recall show under "
            "the pointer.",
        ),
    )


def surface_plate(view: View) -> Plate | None:
    """A heat map of F1 a method and length."""
    found = [
        (method, n_bits, surface)
        for method in view.coded
        for n_bits in view.records.lengths
        if (surface := mean_surface(view.records, method, n_bits)) is not None
    ]
    if not found:
        return None
    largest = max(float(np.nanmax(s.f1, initial=0.0)) for *_, s in found)
    return Plate([_heat(*one, largest) for one in found], {})


def _heat(method: str, n_bits: int, surface: Surface, largest: float) -> Drawing:
    titles = [
        [
            f"K = {k}, L = {n}: F1 {number(surface.f1[i, j])}, "
            f"precision {number(surface.precision[i, j])}, recall {number(surface.recall[i, j])}"
            for j, n in enumerate(surface.n_tables)
        ]
        for i, k in enumerate(surface.bits_per_table)
    ]
    return heat_map(
        f"F1 of hash tables of {method}, {bits_of(n_bits)}. {_best(surface)}",
        surface.f1.tolist(),
        [str(k) for k in surface.bits_per_table],
        [str(n) for n in surface.n_tables],
        titles,
        row_label="K, bits a table",
        column_label="L, tables",
        largest=largest,
        title=f"{shortened(method)}, {bits_of(n_bits)}",
    )


def _best(surface: Surface) -> str:
    if np.isnan(surface.f1).all():
        return "No setting is possible."
    i, j = np.unravel_index(np.nanargmax(surface.f1), surface.f1.shape)
    return (
        f"The best is {surface.f1[i, j]:.3f}, with K = {surface.bits_per_table[i]} "
        f"and L = {surface.n_tables[j]}."
    )
