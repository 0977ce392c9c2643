"""The best code of each length: how far ahead of the next, and how far from the ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from bittern.analysis.summary import (
    Summary,
    best_by_length,
    highest,
    summarise,
)
from bittern.experiments.records import Records

__all__ = ["Leader", "leaders"]


@dataclass(frozen=True, slots=True)
class Leader:
    """Who is best at a length, as :func:`best_by_length` has it.

    ``margin`` is the mean less that of ``followers``, the next best (all that share the place);
    NaN if there is none.  ``from_ceiling`` is the mean less that of ``ceiling``, the best method
    without codes; NaN if there is none, or if no method has codes.
    """

    n_bits: int | None  # None if no method has codes
    methods: tuple[str, ...]
    mean: float
    followers: tuple[str, ...]
    margin: float
    ceiling: str | None
    ceiling_mean: float
    from_ceiling: float


def leaders(records: Records, metric: str) -> tuple[Leader, ...]:
    """The leader of each length, ascending; a length where nothing is defined has none."""
    bounds = records.bounds
    defined = [
        one
        for one in summarise(records, metric)
        if one.mean == one.mean and one.method not in bounds
    ]
    ceiling = max(
        (one for one in defined if one.n_bits is None and records.lengths),
        key=lambda one: one.mean,
        default=None,
    )
    return tuple(
        _leader(n_bits, methods, [one for one in defined if one.n_bits == n_bits], ceiling)
        for n_bits, methods in best_by_length(records, metric).items()
        if methods
    )


def _leader(
    n_bits: int | None, methods: tuple[str, ...], here: list[Summary], ceiling: Summary | None
) -> Leader:
    means = {one.method: one.mean for one in here}
    followers = highest({name: mean for name, mean in means.items() if name not in methods})
    mean = means[methods[0]]
    ceiling_mean = nan if ceiling is None else ceiling.mean
    return Leader(
        n_bits=n_bits,
        methods=methods,
        mean=mean,
        followers=followers,
        margin=mean - means[followers[0]] if followers else nan,
        ceiling=None if ceiling is None else ceiling.method,
        ceiling_mean=ceiling_mean,
        from_ceiling=mean - ceiling_mean,
    )
