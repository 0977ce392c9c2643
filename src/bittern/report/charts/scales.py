"""Scales: values to shares of an axis, with ticks that a person would choose."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["UNIT", "Scale", "linear", "logarithmic", "ordinal"]

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
RAISED = dict(zip("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True))


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``, and its ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False
    is_ordinal: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a value lies, 0 to 1; those outside lie on the border."""
        low, high, at = (
            math.log10(v) if self.is_log else v
            for v in (self.low, self.high, min(max(value, self.low), self.high))
        )
        return (at - low) / (high - low)


UNIT = Scale(0.0, 1.0, tuple((i / 5, f"{i / 5:g}") for i in range(6)))  # precision and recall


def linear(values: Iterable[float], n_ticks: int = 5) -> Scale:
    """A scale that holds all finite values, and ends at ticks."""
    low, high = _reach(values)
    step = _step(high - low, n_ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple((i * step, _label(i * step, step)) for i in range(first, last + 1))
    return Scale(first * step, last * step, ticks)


def logarithmic(values: Iterable[float]) -> Scale:
    """A scale of powers of ten; values that are not positive have no place and are ignored."""
    low, high = _reach(math.log10(v) for v in values if v > 0 and math.isfinite(v))
    first, last = math.floor(low + 1e-9), math.ceil(high - 1e-9)
    every = -(-(last - first) // 5)  # few enough not to touch
    ticks = tuple((10.0**e, _power(e)) for e in range(first, last + 1, every))
    return Scale(10.0**first, 10.0**last, ticks, is_log=True)


def ordinal(names: Sequence[str]) -> Scale:
    """Names at equal steps, with half a step before the first and after the last."""
    ticks = tuple((float(i), name) for i, name in enumerate(names))
    return Scale(-0.5, max(len(names), 1) - 0.5, ticks, is_ordinal=True)


def _reach(values: Iterable[float]) -> tuple[float, float]:
    """The least and the largest finite value, made apart if they are not."""
    finite = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if high - low > 1e-9 * max(1.0, abs(high)):
        return low, high
    apart = 0.1 * abs(high) or 1.0
    return low - apart, high + apart


def _step(length: float, n_ticks: int) -> float:
    """The smallest round step that needs at most so many."""
    rough = length / n_ticks
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(s * unit for s in STEPS if s * unit >= rough * (1 - 1e-9))


def _label(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if not math.isclose(step * 10**decimals, round(step * 10**decimals)):
        decimals += 1  # 0.25 has more than its first digit
    return f"{value + 0.0:,.{decimals}f}"


def _power(exponent: int) -> str:
    if -4 <= exponent <= 4:
        return f"{10.0**exponent:,g}"
    return "10" + "".join(RAISED[c] for c in str(exponent))
