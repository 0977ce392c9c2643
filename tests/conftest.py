"""What holds for every test."""

import signal
import sys

import pytest

# A job in the background ignores Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command in this process: its exit code, what it printed, what it complained of."""

    def call(*arguments):
        from bittern.cli import main

        monkeypatch.setattr(sys, "argv", ["bittern", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, *capsys.readouterr()

    return call
