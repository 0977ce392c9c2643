"""The quality view: how well items find others of their class, and which fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.metrics import evaluate
from bittern.metrics.precision import retrieved_at
from bittern.profile import TieProfile
from bittern.progress import Bar
from bittern.relevance import Relevance
from bittern.report.charts import UNIT, Frame, Style, line, linear
from bittern.web.explorer.compare import average_precision
from bittern.web.explorer.contents import Contents, Ids, Labels
from bittern.web.explorer.search import bands, first_radius

MOST_QUERIES = 1000
MOST_COMPARISONS = 4_000_000_000  # of codes, for the classes that are confused
N_BINS = 20
CUTOFF = 10  # neighbours that say with which class a query is confused
MOST_CLASSES = 40  # that the table of confusions shows
NEAREST = 10  # neighbours in a gallery
TRUTH = 48  # relevant items that are shown at once
METRICS = ("ap", "ap:pessimistic", "ap:optimistic")
IMAGES = "modality = 'image'"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Average precision of queries drawn at random, each against all other items."""

    queries: NDArray[np.int64]  # positions among all items
    database: NDArray[np.int64]
    scores: NDArray[np.float64]  # (n_queries, 3): expected, worst and best order of ties
    labels: Labels

    @property
    def classes(self) -> NDArray[np.int64]:
        """The class of each query."""
        return self.labels.numbers[self.queries]


def measured(contents: Contents) -> Measured:
    """What the view shows, measured once."""
    return contents.once("measured", lambda: _measure(contents))


def summary(contents: Contents) -> dict[str, Any]:
    """The distribution of average precision over queries, its mean, and how ties spread it."""
    found = measured(contents)
    defined = found.scores[np.isfinite(found.scores[:, 0])]
    counts, _ = np.histogram(defined[:, 0], bins=N_BINS, range=(0, 1))
    ap, low, high = defined.mean(axis=0).tolist() if len(defined) else (None, None, None)
    return {
        "metric": "ap",
        "n_queries": len(found.queries),
        "n_items": len(found.database) - 1,
        "n_undefined": len(found.queries) - len(defined),
        "mean": ap,
        "low": low,
        "high": high,
        "histogram": counts.tolist(),
        "classes": list(found.labels.names),
        "cells": [],
    }


def queries(
    contents: Contents, low: float, high: float, label: int | None, skip: int, n: int
) -> dict[str, Any]:
    """Queries with an average precision in a range, the worst first, with their nearest items."""
    found = measured(contents)
    ap = found.scores[:, 0]
    last = high if high < 1 else np.inf  # the last bin has its right edge too
    chosen = np.flatnonzero((ap >= low) & (ap < last))
    if label is not None:
        chosen = chosen[found.classes[chosen] == label]
    chosen = chosen[np.lexsort((found.queries[chosen], ap[chosen]))]
    return {
        "n_queries": len(chosen),
        "queries": _galleries(contents, found, chosen[skip : skip + n]),
    }


def query(contents: Contents, item: int, radius: int | None) -> dict[str, Any]:
    """One query: its ranking with what is relevant, the ground truth, precision and recall."""
    labels = _labels(contents)
    label = contents.label_of(item)
    if label < 0:
        raise InputError(f"quality: the item {item} has no label.")
    ids, distances, rows = _others(contents, item)
    relevant = labels.numbers[rows] == label
    total = np.bincount(distances, minlength=contents.source.n_bits + 1)
    good = np.bincount(distances[relevant], minlength=len(total))
    chosen = first_radius(total) if radius is None else min(radius, len(total) - 1)
    return {
        "query": contents.tiles([item])[0],
        "score": average_precision(distances, labels.numbers[rows], label),
        "histogram": total.tolist(),
        "relevant": good.tolist(),
        "radius": chosen,
        "bands": bands(contents, ids, distances, chosen, relevant),
        **by_radius(total, good, int(good.sum())),
        "n_relevant": int(relevant.sum()),
        "truth": contents.tiles(
            ids[relevant][:TRUTH], distance=distances[relevant][:TRUTH].tolist()
        ),
    }


def by_radius(
    total: NDArray[np.int64], relevant: NDArray[np.int64], n_relevant: int
) -> dict[str, Any]:
    """Precision and recall of one query within each radius, and their chart."""
    retrieved, found = np.cumsum(total), np.cumsum(relevant)
    precision = np.divide(found, retrieved, out=np.full(len(found), np.nan), where=retrieved > 0)
    recall = found / max(n_relevant, 1)
    frame = Frame(
        linear([0, len(total) - 1]), UNIT, "radius", "precision, recall", width=420, height=240
    )
    radii = range(len(total))
    panel = frame.draw(
        "Precision and recall within each radius",
        line(frame, list(zip(radii, precision.tolist(), strict=True)), Style("c0", "")),
        line(frame, list(zip(radii, recall.tolist(), strict=True)), Style("c1", "", "6 3")),
    )
    return {
        "precision": [None if np.isnan(p) else round(p, 6) for p in precision.tolist()],
        "recall": [round(r, 6) for r in recall.tolist()],
        "chart": str(panel.svg),
    }


def confusion(contents: Contents) -> dict[str, Any]:
    """For each class of queries, the share of each class among their ten nearest items.

    Shares are expectations over the orders of tied items.  With many classes, those with most
    queries are shown.
    """
    return contents.once("confusion", lambda: _confusion(contents))


def confused(contents: Contents, of: int, as_: int) -> dict[str, Any]:
    """Queries of one class, those with most neighbours of another class first."""
    found = measured(contents)
    chosen = np.flatnonzero(found.classes == of)
    counts = _expected(contents, found, chosen, as_)
    order = np.lexsort((found.queries[chosen], -counts))
    best = order[:NEAREST][counts[order[:NEAREST]] > 0]
    shown = _galleries(contents, found, chosen[best], as_)
    shares = (counts[best] / CUTOFF).tolist()
    return {
        "n_queries": int((counts > 0).sum()),
        "queries": [one | {"share": share} for one, share in zip(shown, shares, strict=True)],
    }


def _labels(contents: Contents) -> Labels:
    if contents.labels is None:
        raise InputError(
            "quality: the items have no classes; give them 'label' as metadata, or open the folder "
            "of an experiment."
        )
    return contents.labels


def _measure(contents: Contents) -> Measured:
    labels, database = _labels(contents), contents.comparable
    labelled = np.flatnonzero(labels.numbers[database] >= 0)
    rng = np.random.default_rng(0)
    n = min(MOST_QUERIES, len(labelled))
    places = np.sort(rng.choice(labelled, n, replace=False))
    classes = labels.numbers[database]
    truth = Relevance.from_classes(classes[places], classes).excluding(places)
    codes = contents.codes[database]
    with Bar("queries") as bar:
        profile = TieProfile.from_codes(codes[places], codes, truth, progress=bar)
    found = evaluate(profile, METRICS)
    scores = np.stack([np.asarray(found[name].per_query) for name in METRICS], axis=1)
    return Measured(database[places], database, scores, labels)


def _confusion(contents: Contents) -> dict[str, Any]:
    found = measured(contents)
    sizes = np.bincount(found.classes, minlength=len(found.labels.names))
    shown = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CLASSES])
    shown = shown[sizes[shown] > 0]
    chosen = np.flatnonzero(np.isin(found.classes, shown))
    work = len(found.database) * len(shown)
    most = max(len(shown), MOST_COMPARISONS // max(work, 1))
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(0).choice(chosen, most, replace=False))
    counts = np.zeros((len(chosen), len(shown)))
    with Bar("classes") as bar:
        for column, label in enumerate(shown.tolist()):
            counts[:, column] = _expected(contents, found, chosen, label)
            bar(column + 1, len(shown))
    shares = [
        (counts[found.classes[chosen] == label].mean(axis=0) / CUTOFF).tolist()
        if (found.classes[chosen] == label).any()
        else [0.0] * len(shown)
        for label in shown
    ]
    return {
        "cutoff": CUTOFF,
        "n_queries": len(chosen),
        "classes": [{"number": int(i), "name": found.labels.names[i]} for i in shown],
        "n_classes": len(found.labels.names),
        "shares": [[round(share, 4) for share in row] for row in shares],
    }


def _expected(
    contents: Contents, found: Measured, chosen: NDArray[np.int64], label: int
) -> NDArray[np.float64]:
    """Expected number of items of a class among the ten nearest of some queries."""
    database = contents.codes[found.database]
    classes = found.labels.numbers[found.database]
    positions = found.queries[chosen]
    places = np.searchsorted(found.database, positions)
    truth = Relevance.from_classes(np.full(len(chosen), label), classes).excluding(places)
    profile = TieProfile.from_codes(contents.codes[positions], database, truth)
    return retrieved_at(profile, CUTOFF, None).found


def _others(contents: Contents, item: int) -> tuple[Ids, NDArray[Any], NDArray[np.int64]]:
    """All other items by distance, images alone if there are texts, and their positions."""
    where = IMAGES if contents.source.is_crossmodal else None
    found = contents.source.within(contents.code_of(item), contents.source.n_bits, where)[0]
    others = found.ids != item
    ids = found.ids[others]
    return ids, found.values[others], contents.rows_of(ids)


def _galleries(
    contents: Contents, found: Measured, chosen: NDArray[np.int64], as_: int | None = None
) -> list[dict[str, Any]]:
    """Queries with their nearest items; with a class, only items of that class."""
    near = [_nearest(contents, found, int(i), as_) for i in chosen]
    every = contents.tiles(
        np.concatenate([contents.ids[found.queries[chosen]], *(n[0] for n in near)])
    )
    heads, tails = every[: len(near)], iter(every[len(near) :])
    listed = []
    for i, head, (ids, distances, marks) in zip(chosen, heads, near, strict=True):
        ap, low, high = (None if np.isnan(one) else float(one) for one in found.scores[i])
        items = [
            {**next(tails), "distance": int(d), "marked": bool(m)}
            for _, d, m in zip(ids, distances, marks, strict=True)
        ]
        listed.append({"query": head, "ap": ap, "low": low, "high": high, "items": items})
    return listed


def _nearest(
    contents: Contents, found: Measured, i: int, as_: int | None
) -> tuple[Ids, NDArray[Any], NDArray[np.bool_]]:
    """The nearest items of a query, their distances, and which are of its class."""
    row = int(found.queries[i])
    ids, distances, rows = _others(contents, int(contents.ids[row]))
    classes = found.labels.numbers[rows]
    chosen = (np.arange(len(ids)) if as_ is None else np.flatnonzero(classes == as_))[:NEAREST]
    return ids[chosen], distances[chosen], classes[chosen] == found.labels.numbers[row]
