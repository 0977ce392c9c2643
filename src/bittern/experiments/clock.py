"""Seconds by what they were spent on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Clock"]

T = TypeVar("T")


class Clock:
    """Times pieces of work, each called by what it is."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, what: str, work: Callable[[], T]) -> T:
        """The result of the work, whose time is noted."""
        began = time.perf_counter()
        result = work()
        self.seconds[what] = time.perf_counter() - began
        return result
