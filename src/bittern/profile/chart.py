"""A small chart of a tie profile for notebooks: items and relevant items by distance."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bittern import notebook
from bittern.checks import Float64Array

if TYPE_CHECKING:
    from bittern.profile.base import TieProfile

MOST_COLUMNS = 80


def profile_card(profile: TieProfile) -> str:
    """Mean counts of a query by distance, the relevant ones in colour, and what there is."""
    n = profile.n_queries
    heading = f"Tie profile of {n:,} quer{'y' if n == 1 else 'ies'}"
    if not n or not profile.total.any():
        return notebook.card(heading, note="Nothing was retrieved.")
    edges, total, relevant = _binned(profile)
    ranges = [_range(a, b, profile) for a, b in pairwise(edges.tolist())]
    chart = notebook.columns(
        total.tolist(),
        relevant.tolist(),
        titles=[
            f"{where}: {t:,.4g} items, {r:,.4g} relevant"
            for where, t, r in zip(ranges, total, relevant, strict=True)
        ],
        first=ranges[0],
        last=ranges[-1],
        label="Items by distance, mean over queries, and the relevant ones among them",
    )
    known = [
        ("items of a query", f"{profile.total.sum(axis=1).mean():,.4g} on average"),
        ("relevant", f"{profile.n_relevant.mean():,.4g} on average"),
        ("not retrieved", f"{profile.unretrieved[:, 1:].sum() / n:,.4g} of them"),
        ("gains", ", ".join(map(str, profile.gains.tolist()))),
    ]
    if not profile.unretrieved[:, 1:].any():
        del known[2]
    note = f"Mean counts by distance, relevant items in colour; the highest is {total.max():,.4g}."
    return notebook.card(heading, chart, notebook.facts(known), note=note)


def _binned(profile: TieProfile) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Edges of bins of distances, and the mean counts of a query in each.

    A bin of whole distances begins at its left edge; real distances are cut into equal bins.
    """
    n = profile.n_queries
    if profile.distances is None:
        used = np.flatnonzero(profile.total.any(axis=0))
        first, last = int(used[0]), int(used[-1])
        width = -(-(last - first + 1) // MOST_COLUMNS)
        starts = np.arange(first, last + 1, width)
        edges = np.append(starts, last + 1).astype(np.float64)
        per_distance = (counts.sum(axis=0) for counts in (profile.total, profile.relevant))
        total, relevant = (np.add.reduceat(counts, starts) / n for counts in per_distance)
        return edges, total, relevant
    used_places = profile.total > 0
    distances = profile.distances[used_places]
    weights = [counts[used_places] / n for counts in (profile.total, profile.relevant)]
    edges = np.histogram_bin_edges(distances, MOST_COLUMNS // 2)
    total, relevant = (np.histogram(distances, edges, weights=one)[0] for one in weights)
    return edges, total, relevant


def _range(low: float, high: float, profile: TieProfile) -> str:
    """What a bin covers, in words."""
    if profile.distances is not None:
        return f"distance {low:.4g} to {high:.4g}"
    last = int(high) - 1
    return f"distance {int(low)}" + (f" to {last}" if last > low else "")
