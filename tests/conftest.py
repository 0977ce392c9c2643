"""What holds for every test."""

import math
import os
import signal
import sys

import pytest

from bittern.kernels import small

# Workers of pytest share the cores.  With a team of threads each, teams that wait for one another
# make a training of half a second take half a minute on a busy machine.
if "PYTEST_XDIST_WORKER" in os.environ:
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A job in the background ignores Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _kernels(monkeypatch):
    """Compiled code does even small work, which is what nearly all tests are about."""
    monkeypatch.setattr(small, "_spent", math.inf)
    monkeypatch.setattr(small, "_scanned", math.inf)


@pytest.fixture
def numpy_alone(monkeypatch):
    """NumPy does even large work."""
    monkeypatch.setattr(small, "_spent", -math.inf)


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
