"""Answers as JSON text; the metadata of items are JSON already, and are not parsed again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from bittern.web.asked import hex_of
from bittern.web.found import Found
from bittern.web.source import Rows, Source

KEYS = {"distance": b'"distance":', "similarity": b'"similarity":'} | {
    "vector distance": b'"vector_distance":'
}


def results(
    source: Source,
    found: Sequence[Found],
    metadata: bool,
    histograms: Sequence[NDArray[Any]] | None = None,
) -> bytes:
    """What a search found."""
    parts = [
        _result(source, one, None if histograms is None else histograms[q], metadata)
        for q, one in enumerate(found)
    ]
    return b'{"results":[' + b",".join(parts) + b"]}"


def item(rows: Rows, row: int) -> bytes:
    """One item: its id, code and metadata."""
    code = hex_of(rows.codes[row : row + 1])[0]
    return b'{"id":%d,"code":"%s","metadata":%s}' % (
        int(rows.ids[row]),
        code.encode(),
        rows.metadata[row],
    )


def page(rows: Rows, start: int, total: int) -> bytes:
    """Some items of a list."""
    listed = b",".join(item(rows, row) for row in range(len(rows)))
    return b'{"total":%d,"start":%d,"items":[%s]}' % (total, start, listed)


def _result(source: Source, found: Found, histogram: NDArray[Any] | None, metadata: bool) -> bytes:
    key = KEYS[found.kind]
    known = source.known(found.ids) if metadata else None
    hits = b",".join(
        b'{"id":%d,%s%s%s}'
        % (id_, key, repr(value).encode(), b"" if known is None else b',"metadata":' + known[i])
        for i, (id_, value) in enumerate(
            zip(found.ids.tolist(), found.values.tolist(), strict=True)
        )
    )
    more: dict[str, Any] = {
        "ties": [{"distance": distance, "count": n} for distance, n in found.ties],
        "tie_is_cut": found.is_cut,
    }
    if found.kind == "vector distance":
        more["without_vector"] = found.n_left_out
    if histogram is not None:
        more["histogram"] = histogram.tolist()
    return b'{"hits":[%s],%s' % (hits, json.dumps(more).encode()[1:])
