"""Compare several systems on the same queries: a test per pair, with Holm's correction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_array, check_number
from bittern.errors import InputError
from bittern.metrics.scores import aligned
from bittern.metrics.significance.paired_tests import (
    Significance,
    paired_t_test,
    sign_test,
    wilcoxon,
)
from bittern.metrics.significance.pairs import Values
from bittern.metrics.significance.resampling import randomisation_test
from bittern.registry import Registry

HEADER = ("comparison", "difference", "effect", "p", "adjusted p ", "pairs", "left out")


class PairedTest(Protocol):
    """A test of two systems."""

    def __call__(self, a: Values, b: Values, alternative: str) -> Significance:
        """Compare a with b."""
        ...


TESTS: Registry[PairedTest] = Registry(
    "test",
    {
        "t-test": paired_t_test,
        "wilcoxon": wilcoxon,
        "sign": sign_test,
        "randomisation": randomisation_test,
    },
    former={"paired-t": "t-test"},
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One system against another: the outcome of the test, and its corrected p-value."""

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
    """Comparisons that were corrected together; printing shows a table."""

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
        """Cells of the table; a star marks a significant difference."""
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
        """The test, the correction and the effect size, in a sentence."""
        outcome = self[0].outcome
        return (
            f"{outcome.name}, {outcome.alternative}; p adjusted by Holm over {len(self)} "
            f"comparison{'s' if len(self) > 1 else ''}, * at {self.alpha:g}; effect: "
            f"{outcome.effect}."
        )

    def __str__(self) -> str:
        lines = aligned([list(HEADER), *self.rows()])
        return "\n".join([lines[0], "─" * len(lines[0]), *lines[1:], self.note()])

    def __repr__(self) -> str:
        return str(self)


def compare(
    values: Mapping[str, Values],
    baseline: str | None = None,
    *,
    test: str | PairedTest = "randomisation",
    alternative: str = "two-sided",
    alpha: float = 0.05,
) -> Comparisons:
    """Compare systems on the same queries; p-values are adjusted by Holm over all comparisons.

    ``values`` maps the name of each system to its per-query values.  With a ``baseline``, every
    other system is compared with it (``greater``: the other is better than the baseline).  Without
    one, all systems are compared with each other.  ``test`` is a name in ``TESTS`` or a function
    like those there; for example, ``functools.partial(wilcoxon, zeros="pratt")`` sets an option.
    """
    _check_alpha(alpha, "compare: alpha")
    family = _family(values, baseline)
    run = test if callable(test) else TESTS[test]
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


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """Adjusted p-values of ``n`` tests; ``left_out`` more tests had no p-value."""

    adjusted: Float64Array  # in the order of the p-values; NaN stays NaN
    significant: NDArray[np.bool_]  # adjusted <= alpha
    alpha: float
    n: int
    left_out: int


def holm(p_values: ArrayLike, alpha: float = 0.05) -> Correction:
    r"""Holm's step-down correction: any false discovery has probability at most ``alpha``.

    With the n p-values in ascending order,

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (n - j + 1) \, p_{(j)})

    A NaN is a test that could not be done: it stays NaN, is not significant, and does not count in
    n.  SciPy has no Holm correction.  Reference: [Holm-1979].

    >>> holm([0.01, 0.04, 0.03]).adjusted.tolist()
    [0.03, 0.06, 0.06]
    """
    p = _check_p_values(p_values)
    _check_alpha(alpha, "holm: alpha")
    n = int((~np.isnan(p)).sum())
    order = np.argsort(p)[:n]  # NaN sorts last
    adjusted = np.full(len(p), np.nan)
    steps = np.minimum(1.0, p[order] * np.arange(n, 0, -1))
    adjusted[order] = np.maximum.accumulate(steps)
    return Correction(adjusted, adjusted <= alpha, alpha, n, len(p) - n)


def _family(values: Mapping[str, Values], baseline: str | None) -> list[tuple[str, str]]:
    """The pairs of names to compare, the first with the second."""
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
        raise InputError(f"compare: {first} (a) and {second} (b): {error}") from None


def _check_alpha(alpha: float, name: str) -> None:
    """Raise an error if the level of significance is not a probability."""
    if not 0 < check_number(alpha, name) < 1:
        raise InputError(f"{name} must be between 0 and 1, got {alpha}.")


def _check_p_values(p_values: ArrayLike) -> Float64Array:
    p = check_array(p_values, "holm: p_values")
    if p.ndim != 1 or p.dtype.kind not in "iuf":
        raise InputError(f"holm: p_values must be a 1-D array of numbers, got {p.dtype} {p.shape}.")
    if ((p < 0) | (p > 1)).any():
        raise InputError("holm: p_values must lie between 0 and 1, or be NaN.")
    return p.astype(np.float64)
