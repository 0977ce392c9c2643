"""Verdicts: what paired tests and tie spreads say about differences between methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan

__all__ = ["Verdict", "Verdicts"]

NAMES = {
    "wilcoxon": "Wilcoxon over runs",
    "t-test": "t over queries",
    "randomisation": "randomisation over queries",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A method against the baseline, over the ``n_runs`` runs that both have.

    ``difference`` is the mean over these runs of the method's value minus the baseline's.
    ``p_values`` are two-sided and Holm-corrected over the methods compared, for each test by its
    name; NaN where a test could not be made.  Of the queries of all runs, ``n_queries`` pairs were
    tested and ``left_out`` more were undefined for one of the two.  ``unable`` names the tests
    that so few pairs could not have convinced, whatever the values.

    ``within_tie_spread`` says that the mean of one of the two lies inside the tie spread of the
    other, between its pessimistic and its optimistic mean: another order of tied items, in that
    method alone, could turn the difference round.
    """

    method: str
    baseline: str
    difference: float
    p_values: dict[str, float]
    is_significant: dict[str, bool]
    within_tie_spread: bool
    n_runs: int = 0
    n_queries: int = 0
    left_out: int = 0
    unable: tuple[str, ...] = ()

    @property
    def is_different(self) -> bool:
        """Whether every test that could tell the two apart does, and there is one."""
        able = [self.is_significant[test] for test in self.p_values if test not in self.unable]
        return bool(able) and all(able)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if isnan(self.difference):
            return f"{self.method} and {self.baseline} cannot be compared: no run has both values."
        way = "above" if self.difference > 0 else "below"
        apart = f"{abs(self.difference):.4f} {way}" if self.difference else "level with"
        sentence = f"{self.method} is {apart} {self.baseline}: {self._tests()}"
        if self.within_tie_spread:
            sentence += "; another order of tied items could turn it round"
        return f"{sentence}."

    def _tests(self) -> str:
        """Which tests found it, which did not, and which never could."""
        with_p = {test: p for test, p in self.p_values.items() if not isnan(p)}
        told = {
            "significant by": [t for t in with_p if self.is_significant[t]],
            "not significant by": [
                t for t in with_p if not self.is_significant[t] and t not in self.unable
            ],
        }
        parts = [
            f"{how} {_listed([f'{NAMES[t]} ({_p(with_p[t])})' for t in tests])}"
            for how, tests in told.items()
            if tests
        ]
        if few := [NAMES[test] for test in with_p if test in self.unable]:
            parts.append(f"too few pairs for {_listed(few)}")
        return "; ".join(parts) or "there is nothing to test it on"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts on every method at one length but the baseline, in the protocol's order."""

    metric: str
    n_bits: int | None
    baseline: str
    alpha: float
    tests: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()
    baseline_asked: str | None = None  # the protocol's

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def of(self, method: str) -> Verdict | None:
        """The verdict on a method; None for the baseline and for methods that are not here."""
        return next((one for one in self.verdicts if one.method == method), None)

    @property
    def note(self) -> str:
        """What the verdicts rest on, in a sentence or two."""
        if not self.verdicts:
            return f"{self.baseline} has nothing to be compared with."
        n = len(self.verdicts)
        whose = "the protocol's baseline" if self._has_asked else f"the best by {self.metric}"
        over = f", Holm-corrected over {n} comparisons" if n > 1 else ""
        note = f"Compared with {self.baseline}, {whose}; two-sided{over}, α = {self.alpha:g}."
        return " ".join([note, *self.cautions])

    @property
    def cautions(self) -> tuple[str, ...]:
        """What keeps the tests from being all that the protocol wanted; mostly nothing."""
        said = []
        if self.baseline_asked is not None and not self._has_asked:
            said.append(
                f"The protocol's baseline, {self.baseline_asked}, has no records at this length."
            )
        if self.verdicts and all("wilcoxon" in one.unable for one in self.verdicts):
            n_runs = max(one.n_runs for one in self.verdicts)
            said.append(_too_few_runs(n_runs, len(self.verdicts)))
        return tuple(said)

    @property
    def _has_asked(self) -> bool:
        return self.baseline == self.baseline_asked


def _too_few_runs(n_runs: int, n_comparisons: int) -> str:
    if n_runs < 2:
        return "Wilcoxon's test needs at least two runs with different values."
    least = 2.0 ** (1 - n_runs)
    corrected = f", {min(1, n_comparisons * least):.3g} corrected" if n_comparisons > 1 else ""
    return (
        f"{n_runs} runs are too few for Wilcoxon's test: its smallest p is {least:.3g}{corrected}."
    )


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
