"""``python -m bittern`` is the command ``bittern``."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130  # the exit code of what Ctrl-C ended
_is_interrupted = False
AGAIN = 0.05  # seconds after which a Ctrl-C that Python dropped is repeated


def main() -> None:
    """Run the command; Ctrl-C ends it without a word while it starts and when it is over."""
    # Python looks for modules in the current folder first, which may be a stranger's.
    os.environ["PYTHONSAFEPATH"] = "1"  # for the processes that the command starts
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_usual:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from bittern.cli import main as run

        if is_usual:
            sys.unraisablehook = _hide_interrupt
            signal.signal(signal.SIGINT, _interrupt)
        run()
    except KeyboardInterrupt:  # before or after what the command itself answers
        raise SystemExit(INTERRUPTED) from None


def _interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt, and remember it."""
    global _is_interrupted
    _is_interrupted = True
    raise KeyboardInterrupt


def _hide_interrupt(dropped: sys.UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that arrived in a callback, where Python prints and drops every exception.

    After a Ctrl-C, half-made objects may fail when they are removed, which is of no interest.
    """
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        if not _is_interrupted:
            sys.__unraisablehook__(dropped)
        return
    from threading import Timer

    timer = Timer(AGAIN, os.kill, (os.getpid(), signal.SIGINT))  # later, when the callback is over
    timer.daemon = True
    with suppress(RuntimeError):  # no thread begins any more when all is over
        timer.start()


if __name__ == "__main__":
    main()
