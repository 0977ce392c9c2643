"""Blocks of work over threads, with progress, and a Ctrl-C that is obeyed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bittern.checks import check_count

__all__ = ["Progress", "available_threads", "run_blocks"]

T = TypeVar("T")
VARIABLE = "BITTERN_THREADS"
Progress = Callable[[int, int], None]  # called with (done, all) as work goes on


def available_threads(n_threads: int | None = None) -> int:
    """``n_threads`` as asked, or as BITTERN_THREADS says, or the cores this process may use."""
    if n_threads is not None:
        return check_count(n_threads, "n_threads")
    if said := os.environ.get(VARIABLE):
        return check_count(int(said) if said.isdigit() else said, VARIABLE)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_blocks(
    work: Callable[[T], None],
    blocks: Iterable[T],
    n_threads: int | None = None,
    after: Callable[[T], None] | None = None,
) -> None:
    """Call ``work`` once for every block; the first error, or Ctrl-C, cancels what has not begun.

    The caller's thread takes its share, so that one block, or one thread, costs no other.
    ``after`` is called in the caller's thread with each finished block.
    """
    waiting, finished = deque(blocks), deque[T]()

    def labour(report: Callable[[], None]) -> None:
        try:
            while waiting:
                try:
                    block = waiting.popleft()
                except IndexError:  # another thread was quicker
                    break
                work(block)
                finished.append(block)
                report()
        except BaseException:
            waiting.clear()
            raise

    def report_finished() -> None:
        while finished:
            block = finished.popleft()
            if after is not None:
                after(block)

    n_helpers = min(available_threads(n_threads), len(waiting)) - 1
    if n_helpers < 1:
        labour(report_finished)
        return
    with ThreadPoolExecutor(n_helpers) as pool:
        helpers = [pool.submit(labour, lambda: None) for _ in range(n_helpers)]
        labour(report_finished)
        try:
            for helper in helpers:
                helper.result()
                report_finished()
        except BaseException:
            waiting.clear()
            raise
