"""From a profile, or from codes and ground truth, to scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from bittern.checks import check_count
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.metrics.names import MetricName
from bittern.metrics.scores import Score, Scores
from bittern.metrics.table import parse
from bittern.profile import TieProfile
from bittern.relevance import Relevance

__all__ = ["DEFAULT_METRICS", "evaluate"]

DEFAULT_METRICS = ("ap", "ndcg", "precision@100", "recall@100", "auprc")

Names = str | MetricName | Iterable[str | MetricName]


@overload
def evaluate(
    profile: TieProfile, /, metrics: Names = ..., *, random_state: int = ...
) -> Scores: ...
@overload
def evaluate(
    parts: tuple[Codes, Codes, Relevance], /, metrics: Names = ..., *, random_state: int = ...
) -> Scores: ...
@overload
def evaluate(
    queries: Codes,
    database: Codes,
    relevance: Relevance,
    /,
    metrics: Names = ...,
    *,
    random_state: int = ...,
) -> Scores: ...


def evaluate(*arguments: object, metrics: Names | None = None, random_state: int = 0) -> Scores:
    """Scores of a profile, or of ``queries, database, relevance``, under the named metrics.

    ``bt.evaluate(profile, ["ap", "ndcg@100"])`` or
    ``bt.evaluate(queries, database, relevance, ["ap", "ndcg@100"])``.  ``random_state`` is that of
    the bootstrap intervals.
    """
    profile, names = _read(arguments)
    if metrics is not None and names is not None:
        raise InputError("evaluate: the metrics were given twice.")
    chosen = names if metrics is None else metrics
    parsed = _names(DEFAULT_METRICS if chosen is None else chosen)
    check_count(random_state, "evaluate: random_state", least=0)
    return Scores([Score(name, profile, random_state) for name in parsed], profile)


def _read(arguments: tuple[object, ...]) -> tuple[TieProfile, Names | None]:
    """The profile and, if they were given by position, the metrics."""
    if arguments and isinstance(arguments[0], tuple):
        arguments = (*arguments[0], *arguments[1:])
    if arguments and isinstance(arguments[0], TieProfile) and len(arguments) <= 2:
        return arguments[0], arguments[1] if len(arguments) == 2 else None  # type: ignore[return-value]
    kinds = (Codes, Codes, Relevance)
    match = 3 <= len(arguments) <= 4 and all(map(isinstance, arguments, kinds))
    if not match:
        got = ", ".join(type(a).__name__ for a in arguments) or "nothing"
        raise InputError(
            "evaluate: takes a TieProfile, or queries and database as Codes and a Relevance, "
            f"then the metrics; got {got}."
        )
    queries, database, relevance, *rest = arguments
    profile = TieProfile.from_codes(queries, database, relevance)  # type: ignore[arg-type]
    return profile, rest[0] if rest else None  # type: ignore[return-value]


def _names(metrics: Names) -> list[MetricName]:
    if isinstance(metrics, str | MetricName):
        metrics = [metrics]
    try:
        parsed = [parse(name) for name in metrics]
    except TypeError:
        raise InputError(f"evaluate: metrics are names in a list, got {metrics!r}.") from None
    if not parsed:
        raise InputError("evaluate: needs at least one metric.")
    return list(dict.fromkeys(parsed))
