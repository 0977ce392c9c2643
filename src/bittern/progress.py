"""A progress bar for work that takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")
PATIENCE = 1.0  # seconds before a bar appears
Listener = Callable[[str, int, int], None]  # called with what is done, how much of it, and of what
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Also tell a listener how far the bars have come that are made in this block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Bar:
    """A progress bar on stderr, shown only if stderr is a terminal.

    Only one bar is shown at a time: a bar for a part of the work would overwrite it.
    """

    _is_one_shown: ClassVar[bool] = False

    def __init__(self, what: str) -> None:
        self._what, self._began = what, monotonic()
        self._listener = _listener.get()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Show ``done`` of ``total``, with a note beside it."""
        if self._listener is not None:
            self._listener(self._what, done, total)
        if self._bar is None and monotonic() - self._began > PATIENCE:
            self._start(total)
        if self._bar is not None:
            what = f"{self._what} ({note})" if note else self._what
            self._bar.update(self._task, completed=done, total=total, description=what)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            Bar._is_one_shown = False

    def _start(self, total: int) -> None:
        if (
            sys.stderr is None or not sys.stderr.isatty()
        ):  # asked before the library of bars is loaded
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

        console = Console(stderr=True)
        if Bar._is_one_shown or not console.is_terminal:
            return
        columns = "{task.description}", BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        self._bar = Progress(*columns, console=console, transient=True)
        self._bar.start()
        Bar._is_one_shown = True
        self._task = self._bar.add_task(self._what, total=total)


def track(steps: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate over ``steps`` with a bar labelled ``what``; a single step shows no bar."""
    if total is None:
        total = 0
        with suppress(OverflowError):  # of a range that nobody waits for
            total = len(steps) if isinstance(steps, Sized) else 0
    if total == 1:
        yield from steps
        return
    with Bar(what) as bar:
        for done, step in enumerate(steps):
            yield step
            bar(done + 1, max(total, done + 1))
