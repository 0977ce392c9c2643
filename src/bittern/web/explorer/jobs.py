"""Jobs: how far the work of a request has come, for the page that waits for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from bittern.progress import listening

MOST = 100  # jobs that are remembered
Result = TypeVar("Result")


class Jobs:
    """The progress of requests, by a name that the page has chosen."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = Lock()

    def run(self, job: str | None, work: Callable[[], Result]) -> Result:
        """Do the work, and note its progress."""
        if not job:
            return work()

        def note(what: str, done: int, total: int) -> None:
            with self._lock:
                self._known[job] = {"what": what, "done": done, "total": total}
                while len(self._known) > MOST:
                    self._known.popitem(last=False)

        try:
            with listening(note):
                return work()
        finally:
            with self._lock:
                self._known.pop(job, None)

    def progress(self, job: str) -> dict[str, Any]:
        """What the job does, and how much of it is done; empty if it does not tell."""
        with self._lock:
            return dict(self._known.get(job, {}))
