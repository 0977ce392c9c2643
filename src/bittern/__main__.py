"""``python -m bittern`` is the command ``bittern``."""

from __future__ import annotations

import signal

INTERRUPTED = 130  # the exit code of what Ctrl-C ended


def main() -> None:
    """Run the command; Ctrl-C ends it without a word while it starts and when it is over."""
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_usual:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from bittern.cli import main as run

        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:  # before or after what the command itself answers
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
