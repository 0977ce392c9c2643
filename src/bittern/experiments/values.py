"""Values of metrics of a profile, as records keep them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bittern.errors import InputError
from bittern.experiments.record import Value
from bittern.metrics import Score, evaluate, parse
from bittern.profile import TieProfile

__all__ = ["values_of"]


def values_of(profile: TieProfile, metrics: Sequence[str]) -> dict[str, Value]:
    """Each metric's value; one that a ranking by real distances cannot have is left out."""
    return {name: _value(score) for name, score in _scores(profile, metrics)}


def _scores(profile: TieProfile, metrics: Sequence[str]) -> Iterable[tuple[str, Score]]:
    for name in metrics:
        if profile.distances is not None and parse(name).radius is not None:
            continue  # a Hamming radius means nothing to real distances
        try:
            yield name, evaluate(profile, [name])[name]
        except InputError:
            if profile.distances is None:  # codes have every metric
                raise


def _value(score: Score) -> Value:
    values = score.per_query
    return Value(
        mean=score.mean,
        undefined=score.undefined,
        spread=score.spread,
        per_query=None if values is None else tuple(values.tolist()),
    )
