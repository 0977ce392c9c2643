"""``python -m bittern`` is the command ``bittern``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command; Ctrl-C ends it without a word while it still imports modules."""
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bittern.cli import main as run

    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
