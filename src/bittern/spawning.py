"""What processes that we start have in common: they end with us, and Ctrl-C is for us alone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["end_with_parent", "interrupts_held"]


def end_with_parent() -> None:
    """Leave as soon as the process that started this one is gone; it may have been killed."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C back in this thread until the block is done; what starts in it inherits that."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
