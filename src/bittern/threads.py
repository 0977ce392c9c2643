"""Blocks of work over threads, with progress, and a Ctrl-C that is obeyed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from bittern.checks import check_count

__all__ = ["Progress", "available_threads", "run_blocks"]

T = TypeVar("T")
Progress = Callable[[int, int], None]  # called with (done, all) as work goes on


def available_threads(n_threads: int | None = None) -> int:
    """``n_threads`` as asked, or the cores this process may use."""
    if n_threads is not None:
        return check_count(n_threads, "n_threads")
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_blocks(
    work: Callable[[T], None],
    blocks: Iterable[T],
    n_threads: int | None = None,
    after: Callable[[T], None] | None = None,
) -> None:
    """Call ``work`` once for every block; the first error, or Ctrl-C, cancels what has not begun.

    ``after`` is called in the caller's thread with each finished block.
    """
    pending: dict[Future[None], T] = {}
    with ThreadPoolExecutor(available_threads(n_threads)) as pool:
        try:
            pending = {pool.submit(work, block): block for block in blocks}
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    block = pending.pop(future)
                    if after is not None:
                        after(block)
        finally:
            for future in pending:
                future.cancel()
