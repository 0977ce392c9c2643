"""What a paired test says, and which of its tails counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bittern.metrics.significance.pairs import Pairs
from bittern.registry import Registry

__all__ = ["ALTERNATIVES", "Significance", "conclude"]


@dataclass(frozen=True, slots=True)
class Significance:
    """Outcome of a paired test.

    ``p_value`` is the probability, were there no difference, of a statistic at least as far out as
    this one in the direction of the ``alternative``.  ``difference`` is the mean of first minus
    second.  Of ``n`` pairs compared, ``zeros`` had no difference; ``left_out`` more were undefined.
    """

    name: str
    statistic: float
    p_value: float
    alternative: str
    n: int
    left_out: int
    zeros: int
    difference: float
    effect_size: float
    effect: str  # what the effect size is
    method: str  # where the p-value comes from
    p_interval: tuple[float, float] | None = None  # 95 % interval, where p was drawn at random

    def __str__(self) -> str:
        left_out = f", {self.left_out:,} left out" if self.left_out else ""
        return (
            f"{self.name} ({self.method}, {self.alternative}): p = {self.p_value:.4g}, "
            f"difference {self.difference:+.4f}, {self.effect} {self.effect_size:+.3f} "
            f"({self.n:,} pairs{left_out})"
        )


# From the chances of a statistic this small or smaller, and this large or larger, to p.  Under the
# null hypothesis all our statistics have symmetric distributions, so two-sided is twice one tail.
ALTERNATIVES: Registry[Callable[[float, float], float]] = Registry(
    "alternative",
    {
        "two-sided": lambda at_most, at_least: min(1.0, 2 * min(at_most, at_least)),
        "greater": lambda at_most, at_least: at_least,
        "less": lambda at_most, at_least: at_most,
    },
)


def conclude(
    pairs: Pairs,
    *,
    name: str,
    method: str,
    statistic: float,
    p_value: float,
    alternative: str,
    effect: str,
    effect_size: float,
    p_interval: tuple[float, float] | None = None,
) -> Significance:
    """A test's own findings, together with what it found them on."""
    return Significance(
        name=name,
        statistic=float(statistic),
        p_value=float(min(p_value, 1.0)),  # sums of chances may end a rounding above 1
        alternative=alternative,
        n=pairs.n,
        left_out=pairs.left_out,
        zeros=pairs.zeros,
        difference=pairs.mean,
        effect_size=float(effect_size),
        effect=effect,
        method=method,
        p_interval=p_interval,
    )
