"""Several systems on the same queries: one test a pair, corrected over all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, overload

from bittern.errors import InputError
from bittern.metrics.scores import aligned
from bittern.metrics.significance.correction import check_alpha, holm
from bittern.metrics.significance.outcome import Significance
from bittern.metrics.significance.pairs import Values
from bittern.metrics.significance.randomisation import randomisation_test
from bittern.metrics.significance.signed_rank import wilcoxon
from bittern.metrics.significance.signs import sign_test
from bittern.metrics.significance.t_test import paired_t_test
from bittern.registry import Registry

__all__ = ["TESTS", "Comparison", "Comparisons", "compare"]


class PairedTest(Protocol):
    """What a test of two systems looks like."""

    def __call__(self, a: Values, b: Values, alternative: str) -> Significance:
        """Compare a with b."""
        ...


TESTS: Registry[PairedTest] = Registry(
    "test",
    {
        "paired-t": paired_t_test,
        "wilcoxon": wilcoxon,
        "sign": sign_test,
        "randomisation": randomisation_test,
    },
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One system against another: the test's outcome, and what is left of it in its family."""

    first: str
    second: str
    outcome: Significance
    adjusted_p: float
    significant: bool

    @property
    def p_value(self) -> float:
        """The p-value before the correction."""
        return self.outcome.p_value

    @property
    def difference(self) -> float:
        """Mean of first minus second."""
        return self.outcome.difference

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "effect_size": self.outcome.effect_size,
            "p_value": self.p_value,
            "adjusted_p": self.adjusted_p,
            "significant": self.significant,
            "n": self.outcome.n,
            "left_out": self.outcome.left_out,
        }


class Comparisons(Sequence[Comparison]):
    """Comparisons of one family, in the order they were asked; printing them shows a table."""

    def __init__(self, comparisons: Sequence[Comparison], alpha: float) -> None:
        self._comparisons = tuple(comparisons)
        self.alpha = alpha

    @overload
    def __getitem__(self, position: int) -> Comparison: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Comparison]: ...
    def __getitem__(self, position: int | slice) -> Comparison | Sequence[Comparison]:
        return self._comparisons[position]

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self._comparisons)

    def __len__(self) -> int:
        return len(self._comparisons)

    def rows(self) -> list[list[str]]:
        """The table's cells; a star marks a difference that is significant."""
        return [
            [
                f"{c.first} - {c.second}",
                f"{c.difference:+.4f}",
                f"{c.outcome.effect_size:+.3f}",
                f"{c.p_value:.4g}",
                f"{c.adjusted_p:.4g}{'*' if c.significant else ' '}",
                f"{c.outcome.n:,}",
                f"{c.outcome.left_out:,}",
            ]
            for c in self
        ]

    def note(self) -> str:
        """What the table rests on, in a sentence."""
        outcome = self[0].outcome
        return (
            f"{outcome.name}, {outcome.alternative}; p adjusted by Holm over {len(self)} "
            f"comparison{'s' if len(self) > 1 else ''}, * at {self.alpha:g}; effect: "
            f"{outcome.effect}."
        )

    def __str__(self) -> str:
        lines = aligned([list(HEADER), *self.rows()])
        return "\n".join([lines[0], "─" * len(lines[0]), *lines[1:], self.note()])


HEADER = ("comparison", "difference", "effect", "p", "adjusted p ", "pairs", "left out")


def compare(
    values: Mapping[str, Values],
    baseline: str | None = None,
    *,
    test: str | PairedTest = "randomisation",
    alternative: str = "two-sided",
    alpha: float = 0.05,
) -> Comparisons:
    """Compare systems on the same queries; p-values are adjusted by Holm over all comparisons.

    ``values`` has a name and the per-query values of each system.  With a ``baseline``, each other
    system is compared with it (``greater``: the other is better than the baseline); without, each
    with each that comes after it.  ``test`` is a name in ``TESTS``, or a function like those; so
    ``functools.partial(wilcoxon, zeros="pratt")`` sets an option.
    """
    check_alpha(alpha, "compare: alpha")
    family = _family(values, baseline)
    run = TESTS[test] if isinstance(test, str) else test
    outcomes = [_outcome(run, values, pair, alternative) for pair in family]
    correction = holm([outcome.p_value for outcome in outcomes], alpha)
    return Comparisons(
        [
            Comparison(first, second, outcome, float(adjusted), bool(significant))
            for (first, second), outcome, adjusted, significant in zip(
                family, outcomes, correction.adjusted, correction.significant, strict=True
            )
        ],
        alpha,
    )


def _family(values: Mapping[str, Values], baseline: str | None) -> list[tuple[str, str]]:
    """The names to compare, the first with the second."""
    if not isinstance(values, Mapping) or len(values) < 2:
        raise InputError(
            "compare: values must be a dictionary of at least 2 systems' per-query values."
        )
    if baseline is None:
        return list(combinations(values, 2))
    Registry("system", values)[baseline]
    return [(name, baseline) for name in values if name != baseline]


def _outcome(
    run: PairedTest, values: Mapping[str, Values], pair: tuple[str, str], alternative: str
) -> Significance:
    first, second = pair
    try:
        return run(values[first], values[second], alternative=alternative)
    except InputError as error:
        raise InputError(f"compare: {first} (a) with {second} (b): {error}") from None
