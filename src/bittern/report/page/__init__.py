"""The page: one self-contained file with all that an experiment found."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.resources import files

from bittern.experiments import Records
from bittern.io.files import atomic_write
from bittern.report.charts import chart_style
from bittern.report.markup import Html, fragment
from bittern.report.page.again import run_again
from bittern.report.page.areas import area_and_mean
from bittern.report.page.classes import by_class
from bittern.report.page.costs import cost_and_quality
from bittern.report.page.curves import against_bits, precision_recall
from bittern.report.page.gallery import gallery, image_rules
from bittern.report.page.head import contents, heading
from bittern.report.page.honesty import missing_cells, split_statement
from bittern.report.page.methods import methods_compared
from bittern.report.page.surfaces import table_surfaces
from bittern.report.page.sweeps import against_parameter
from bittern.report.page.tables import tables
from bittern.report.page.ties import tie_spread
from bittern.report.page.view import View

__all__ = ["page_of", "write_page"]

# The page can ask for nothing and run nothing, whatever a label may hold.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
Section = Callable[[View], Html | None]
SECTIONS: tuple[tuple[str, str, Section], ...] = (  # address, name in the contents, what makes it
    ("table", "Table", tables),
    ("bits", "Code length", against_bits),
    ("methods", "Methods", methods_compared),
    ("sweep", "Parameter", against_parameter),
    ("curves", "Precision and recall", precision_recall),
    ("ties", "Ties", tie_spread),
    ("costs", "Time and memory", cost_and_quality),
    ("classes", "Classes", by_class),
    ("surface", "Hash tables", table_surfaces),
    ("areas", "AUPRC and mAP", area_and_mean),
    ("gallery", "Gallery", gallery),
    ("split", "Split and leaks", split_statement),
    ("missing", "Missing", missing_cells),
    ("again", "Run it again", run_again),
)


def write_page(records: Records, path: str | os.PathLike[str]) -> None:
    """Write the page as one HTML file that asks for nothing else, whole or not at all."""
    content = page_of(records).encode()
    with atomic_write(path) as file:
        file.write(content)


def page_of(records: Records) -> str:
    """The page as HTML; sections that the records have nothing for are left out."""
    view = View.of(records)
    made = [(anchor, name, make(view)) for anchor, name, make in SECTIONS]
    sections = [(anchor, name, content) for anchor, name, content in made if content is not None]
    own = files("bittern.report.page").joinpath("style.css").read_text(encoding="utf-8")
    head = Html.tag(
        "head",
        Html.tag("meta", charset="utf-8"),
        Html.tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        Html.tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Html.tag("meta", name="color-scheme", content="light dark"),
        Html.tag("title", records.protocol.title),
        Html(f"<style>{chart_style()}{own}{image_rules(view)}</style>"),
    )
    body = Html.tag(
        "body",
        heading(view),
        contents([(anchor, name) for anchor, name, _ in sections]),
        Html.tag("main", *(content for *_, content in sections)),
        Html.tag("footer", "Made by Bittern from the records alone; no number was typed by hand."),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{fragment(head, body)}</html>\n'
