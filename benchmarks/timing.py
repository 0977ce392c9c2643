"""Time calls against each other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


def fastest(
    *calls: Callable[[], object], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Best time of each call; calls take turns, so that a slow moment hits all of them.

    The first round compiles and fills caches, and does not count.
    """
    best = [math.inf] * len(calls)
    for call in calls:
        call()
    for _ in range(rounds):
        for i, call in enumerate(calls):
            began = clock()
            call()
            best[i] = min(best[i], clock() - began)
    return best
