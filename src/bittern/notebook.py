"""HTML for notebooks: cards, tables, small charts and tie bands.

Everything is escaped, and nothing is a script.  Text has the colour of the notebook, and lines and
bars are shades of it, so that light and dark themes both stay readable.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

MOST_BANDS, MOST_ITEMS = 12, 12  # that a cell shows of one query
WIDTH, HEIGHT, FOOT = 480, 110, 18  # pixels of a chart; its foot has the labels
ACCENT = "#2f8fd0"  # at least 3 : 1 on white and on black

STYLE = f"""<style>
.bittern{{font:13px/1.5 system-ui,sans-serif;color:inherit;max-width:64rem}}
.bittern h4{{margin:0 0 .4em;font-size:1.05em;font-weight:600}}
.bittern p{{margin:.4em 0}}
.bittern .soft{{opacity:.75}}
.bittern .scroll{{overflow-x:auto}}
.bittern table{{border-collapse:collapse;margin:.3em 0;font-size:inherit}}
.bittern tr{{background:none!important}}
.bittern th,.bittern td{{padding:.2em .9em .2em 0;text-align:right;white-space:nowrap}}
.bittern th:first-child,.bittern td:first-child,.bittern .facts td{{text-align:left}}
.bittern .facts td{{white-space:normal;vertical-align:top}}
.bittern th{{font-weight:600;border-bottom:1px solid currentColor}}
.bittern svg{{max-width:100%;height:auto}}
.bittern svg text{{fill:currentColor;font-size:11px}}
.bittern .all{{fill:currentColor;opacity:.3}}
.bittern .part{{fill:{ACCENT}}}
.bittern .axis{{stroke:currentColor;opacity:.5}}
.bittern .bands{{display:flex;flex-wrap:wrap;gap:8px;margin:.4em 0}}
.bittern .band{{border:1px solid {ACCENT};border-radius:6px;padding:5px 8px}}
.bittern .band>b{{font-weight:600}}
.bittern .items{{display:flex;flex-wrap:wrap;gap:6px}}
.bittern figure{{margin:0;max-width:88px;text-align:center;font-size:11px;line-height:1.3}}
.bittern figure img{{display:block;margin:0 auto 2px;max-width:88px;max-height:88px}}
.bittern .items{{align-items:end}}
.bittern summary{{cursor:pointer}}
.bittern pre{{white-space:pre-wrap;margin:.3em 0}}
</style>"""


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item as people see it: its id, a label, and the address of a small image or None."""

    id: int
    label: str
    thumbnail: str | None = None


def card(heading: str, *parts: str, note: str = "") -> str:
    """A cell's output: a heading, parts that are HTML already, and a note."""
    foot = f'<p class="soft">{escape(note)}</p>' if note else ""
    return f'{STYLE}<div class="bittern"><h4>{escape(heading)}</h4>{"".join(parts)}{foot}</div>'


def paragraph(text: str) -> str:
    """A paragraph of text."""
    return f"<p>{escape(text)}</p>"


def folded(heading: str, text: str) -> str:
    """Text that a click unfolds, with its line breaks."""
    return f"<details><summary>{escape(heading)}</summary><pre>{escape(text)}</pre></details>"


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of texts under a header."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    return f'<div class="scroll"><table><tr>{head}</tr>{_rows(rows)}</table></div>'


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    return f'<table class="facts">{_rows(rows)}</table>'


def _rows(rows: Iterable[Iterable[object]]) -> str:
    lines = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return "".join(f"<tr>{line}</tr>" for line in lines)


def columns(
    heights: Sequence[float],
    parts: Sequence[float] | None = None,
    *,
    titles: Sequence[str],
    first: str,
    last: str,
    label: str,
    top: float | None = None,
) -> str:
    """A chart of columns, each with a part of it in colour.

    ``titles`` are the tooltips of the columns, ``first`` and ``last`` stand below the ends,
    ``label`` describes the chart for screen readers, and ``top`` is the height of the chart.
    """
    most = max(top if top is not None else max(heights, default=0.0), 1e-300)
    step = WIDTH / max(len(heights), 1)
    drawn = [
        f"<g><title>{escape(title)}</title>"
        + _column(i, step, height / most, "all")
        + (_column(i, step, parts[i] / most, "part") if parts is not None else "")
        + "</g>"
        for i, (height, title) in enumerate(zip(heights, titles, strict=True))
    ]
    foot = HEIGHT + FOOT - 4
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{WIDTH}" height="{HEIGHT + FOOT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT + FOOT}">{"".join(drawn)}'
        f'<path class="axis" d="M0 {HEIGHT}.5H{WIDTH}"/>'
        f'<text x="0" y="{foot}">{escape(first)}</text>'
        f'<text x="{WIDTH}" y="{foot}" text-anchor="end">{escape(last)}</text></svg>'
    )


def _column(i: int, step: float, share: float, kind: str) -> str:
    height = HEIGHT * min(share, 1.0)
    gap = 1 if step > 3 else 0
    return (
        f'<rect class="{kind}" x="{i * step:.2f}" y="{HEIGHT - height:.2f}" '
        f'width="{step - gap:.2f}" height="{height:.2f}"/>'
    )


def grid(bits: Sequence[Sequence[bool]], label: str) -> str:
    """Rows of bits as small squares; a bit that is set is filled."""
    side = max(2.0, min(8.0, WIDTH / max((len(row) for row in bits), default=1)))
    squares = [
        f'<rect class="{"part" if bit else "all"}" x="{j * side:.2f}" y="{i * (side + 2):.2f}" '
        f'width="{side - 0.5:.2f}" height="{side - 0.5:.2f}"/>'
        for i, row in enumerate(bits)
        for j, bit in enumerate(row)
    ]
    height = len(bits) * (side + 2)
    width = side * max((len(row) for row in bits), default=1)
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(squares)}</svg>'
    )


def bands_of(
    items: Sequence[ShownItem], distances: Sequence[float], most_items: int | None = None
) -> dict[str, Any]:
    """Items in bands of one distance, as plain values: ``{"bands": [{"distance", "count", …}]}``.

    ``items`` are in order of distance.  ``count`` is that of all items of a band, of which at most
    ``most_items`` are listed.  ``web/static/bands.js`` draws the same values.
    """
    bands = []
    for distance, group in itertools.groupby(
        zip(distances, items, strict=True), key=lambda one: one[0]
    ):
        members = [asdict(item) for _, item in group]
        bands.append({"distance": distance, "count": len(members), "items": members[:most_items]})
    return {"bands": bands}


def draw_bands(found: dict[str, Any]) -> str:
    """The bands of :func:`bands_of`, one box for each distance."""
    bands = found["bands"]
    boxes = [_band(band) for band in bands[:MOST_BANDS]]
    if rest := bands[MOST_BANDS:]:
        n = sum(band["count"] for band in rest)
        boxes.append(f'<div class="soft">{n:,} more at {len(rest):,} larger distances</div>')
    return f'<div class="bands">{"".join(boxes)}</div>' if boxes else paragraph("Nothing found.")


def _band(band: dict[str, Any]) -> str:
    count, listed = band["count"], band["items"][:MOST_ITEMS]
    more = count - len(listed)
    head = f"distance {shown_distance(band['distance'])}"
    size = f"{count:,} item{'' if count == 1 else 's'}"
    tail = f'<figure class="soft">{more:,} more</figure>' if more else ""
    inner = "".join(map(_item, listed)) + tail
    return (
        f'<div class="band"><b>{head}</b> <span class="soft">{size}</span>'
        f'<div class="items">{inner}</div></div>'
    )


def strip(items: Iterable[ShownItem]) -> str:
    """Items side by side."""
    return f'<div class="items">{"".join(_item(asdict(item)) for item in items)}</div>'


def _item(item: dict[str, Any]) -> str:
    label = escape(str(item["label"]))
    source = item["thumbnail"]
    image = f'<img src="{escape(source)}" alt="">' if source else ""
    return f'<figure title="{label}">{image}{label}</figure>'


def shown_distance(distance: float) -> str:
    """A distance as people read it."""
    return f"{distance:,}" if float(distance).is_integer() else f"{distance:.4g}"
