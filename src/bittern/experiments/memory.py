"""The most memory that a process held during some work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Peak", "peak_memory"]

RESET, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass
class Peak:
    """Bytes, known after the work."""

    bytes: int = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Resident memory at its highest in the block; since the start where it cannot be reset."""
    peak = Peak()
    with suppress(OSError):  # not Linux, or not allowed
        RESET.write_text("5")
    try:
        yield peak
    finally:
        peak.bytes = _highest()


def _highest() -> int:
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        import resource

        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
