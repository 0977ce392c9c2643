"""A metric's name as a value that survives the trip through text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bittern.checks import check_count
from bittern.errors import InputError

__all__ = ["TIE_RULES", "MetricName"]

TIE_RULES = ("optimistic", "pessimistic", "trec")
MOST = 2**62  # of a cut-off or a radius

_PATTERN = re.compile(
    r"(?P<metric>[a-z]+(?:-[a-z]+)*(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?)?)"
    r"(?:@(?P<radius>r)?(?P<number>0|[1-9][0-9]*))?"
    r"(?P<options>(?::[a-z]+(?:-[a-z]+)*)*)"
)


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric, its cut-off or radius, and its options.

    Written ``ap``, ``ap@1000`` (the first 1000 items), ``precision@r2`` (the items within Hamming
    radius 2), ``ndcg@100:linear:optimistic`` (cut-off first, then options; the rule for ties last).

    >>> MetricName.parse("ap@5000:retrieved")
    MetricName(metric='ap', cutoff=5000, radius=None, options=('retrieved',))
    """

    metric: str
    cutoff: int | None = None
    radius: int | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.cutoff is not None and self.radius is not None:
            raise InputError(f"'{self}': a metric has a cut-off or a radius, not both.")
        if self.cutoff is not None:
            check_count(self.cutoff, f"'{self}': the cut-off", most=MOST)
        if self.radius is not None:
            check_count(self.radius, f"'{self}': the radius", least=0, most=MOST)

    @classmethod
    def parse(cls, text: str) -> MetricName:
        """Read what ``str()`` writes, and nothing looser."""
        match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
        number = int(match["number"]) if match and match["number"] else None
        if match is None or (number == 0 and not match["radius"]):
            raise InputError(
                "a metric is written like 'ap', 'ap@1000', 'precision@r2' or "
                f"'ndcg@100:linear', got {text!r}."
            )
        return cls(
            match["metric"],
            cutoff=None if match["radius"] else number,
            radius=number if match["radius"] else None,
            options=tuple(match["options"].split(":")[1:]),
        )

    @property
    def tie_rule(self) -> str | None:
        """How ties are broken; None for the expectation over all orders."""
        return self.options[-1] if self.options and self.options[-1] in TIE_RULES else None

    def has(self, option: str) -> bool:
        """Whether an option is there."""
        return option in self.options

    def __str__(self) -> str:
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        at += "" if self.radius is None else f"@r{self.radius}"
        return "".join((self.metric, at, *(f":{option}" for option in self.options)))
