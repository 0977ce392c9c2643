"""How a record came about: seconds, memory and versions; and short hashes of plain values."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import bittern

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "lightgbm")
RESET, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")

T = TypeVar("T")


class Clock:
    """Seconds spent on each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, step: str, work: Callable[[], T]) -> T:
        """Do the work, note its time, and return its result."""
        began = time.perf_counter()
        result = work()
        self.seconds[step] = time.perf_counter() - began
        return result


@dataclass
class PeakMemory:
    """Bytes at the peak; set when the block ends."""

    bytes: int = 0


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Peak resident memory of the block, or of the process where the system cannot reset it."""
    peak = PeakMemory()
    with suppress(OSError):  # not Linux, or not allowed
        RESET.write_text("5")
    try:
        yield peak
    finally:
        peak.bytes = _peak_bytes()


def versions() -> dict[str, str]:
    """Versions of Python, the package, and the libraries that its numbers depend on."""
    found = {"bittern": bittern.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found | {"platform": f"{platform.system()} {platform.machine()}"}


def _peak_bytes() -> int:
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        import resource

        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
