"""Which work fits into the time that is left."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from bittern.experiments.advice.contenders import ASYMMETRIC, Contender

RESERVE = 0.05  # of the budget, to judge and to write at the end
MARGIN = 1.2  # times an expectation that is only a guess from other methods
#: Time of a first trial as a multiple of int8's, measured with 32 bytes on 20,000 × 384 numbers.
COSTS = {
    **{"sign": 1.3, "rabitq-1": 2, "rabitq-2": 2.5, "rabitq-4": 3, "water-filled": 10, "tcq": 14},
    **{"pq": 11, "opq": 60, "rq": 60, "itq": 8, "isohash": 2.5, "sh": 1.5},
    **{"sdh": 4, "ksh": 9, "talr": 14},
}
MORE = 3  # times as long by asymmetric scores as by a hash function alone


class Schedule:
    """The time that is left, and what a trial is expected to take."""

    def __init__(self, budget: float, began: float) -> None:
        self._end, self._began = budget * (1 - RESERVE), began
        self._took: dict[str, tuple[Contender, float]] = {}  # a method's last trial

    def note(self, one: Contender, seconds: float) -> None:
        """A trial took so long."""
        self._took[one.method] = one, seconds

    def expected(self, one: Contender) -> float:
        """Seconds of a trial: as the method's last one, or a guess from other methods."""
        if one.method in self._took:
            before, seconds = self._took[one.method]
            return seconds * max(1.0, (one.n_bits or 1) / (before.n_bits or 1))
        units = [seconds / _cost(method) for method, (_, seconds) in self._took.items()]
        return MARGIN * _cost(one.method) * median(units) if units else 0.0

    def has_time(self, seconds: float, share: float = 1.0) -> bool:
        """Whether work of so many seconds would end within this share of the budget."""
        return perf_counter() - self._began + seconds < share * self._end


def _cost(method: str) -> float:
    if method.endswith(ASYMMETRIC):
        return MORE * _cost(method.removesuffix(ASYMMETRIC))
    return COSTS.get(method, 1.0)
