"""The section on classes: which queries each method serves well, and which it does not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bittern.analysis import ClassMeans, per_class
from bittern.report.charts import Drawing, Frame, Plate, Scale, linear, ordinal, points, row_rules
from bittern.report.markup import Html
from bittern.report.page.parts import bits_of, figure, folded, number, plated, section, table
from bittern.report.page.view import View

__all__ = ["by_class", "class_plate"]

ROW = 20  # the height of a class' row


def by_class(view: View) -> Html | None:
    """Values by class, drawn and listed; nothing where queries have no classes."""
    plate, found = class_plate(view), _found(view)
    if plate is None:
        return None
    return section(
        "By class",
        "classes",
        figure(
            plated(plate),
            f"Mean {view.main_metric} over the queries of each class in all runs, the class with "
            f"the highest mean at {bits_of(found[-1].n_bits)} on top.",
        ),
        folded("The same as a table", *(_listed(view, one) for one in found)),
    )


def class_plate(view: View) -> Plate | None:
    """The main metric of each class, a panel a length."""
    found = _found(view)
    if not found:
        return None
    classes = _hardest_last(found[-1])
    values = [v for one in found for means in (one.means or {}).values() for v in means]
    scale = linear(values, n_ticks=4)
    drawn = [_panel(view, one, classes, scale) for one in found]
    return Plate(drawn, view.styles, has_lines=False)


def _found(view: View) -> list[ClassMeans]:
    means = [per_class(view.records, view.main_metric, n_bits) for n_bits in view.lengths]
    return [one for one in means if len(one.classes) > 1 and one.means]


def _hardest_last(means: ClassMeans) -> list[int]:
    """Classes by their mean over methods, the highest first; those without one last."""

    def rank(place: int) -> tuple[bool, float]:
        values = [of[place] for of in (means.means or {}).values() if math.isfinite(of[place])]
        return not values, -sum(values) / max(len(values), 1)

    order = sorted(range(len(means.classes)), key=rank)
    return [means.classes[place] for place in order]


def _panel(view: View, found: ClassMeans, classes: Sequence[int], scale: Scale) -> Drawing:
    rows = list(reversed(classes))
    frame = Frame(
        scale,
        ordinal([_name(view, one) for one in rows]),
        found.metric,
        "class",
        bits_of(found.n_bits),
        height=ROW * len(rows) + 78,
    )
    drawn = [row_rules(frame)]
    for method, means in (found.means or {}).items():
        at = [
            (value, float(rows.index(one)))
            for one, value in zip(found.classes, means, strict=True)
            if one in rows
        ]
        titles = [f"{method}, {_name(view, rows[int(y)])}: {number(x)}" for x, y in at]
        drawn.append(points(frame, at, view.styles[method], titles, size=3.6))
    label = f"{found.metric} of each class at {bits_of(found.n_bits)}; the table below has numbers."
    return frame.draw(label, *drawn)


def _listed(view: View, found: ClassMeans) -> Html:
    means = found.means or {}
    rows = [
        (_name(view, one), f"{found.n_queries[i]:,}", *(number(of[i]) for of in means.values()))
        for i, one in enumerate(found.classes)
    ]
    caption = f"{found.metric} by class, {bits_of(found.n_bits)}"
    return table(caption, ["class", "queries", *means], rows)


def _name(view: View, label: int) -> str:
    """What the dataset calls a class; its number where it has no name."""
    names = view.records.records[0].split.get("class_names", [])
    return str(names[label]) if 0 <= label < len(names) else str(label)
