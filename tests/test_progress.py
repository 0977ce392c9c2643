"""Progress bars: one at a time, on a terminal alone."""

import sys

import pytest
from rich.console import Console

from bittern import progress
from bittern.progress import Bar


@pytest.fixture
def terminal(monkeypatch):
    """A terminal, and no patience."""
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)


def test_a_bar_within_another_is_not_shown(terminal):
    with Bar("all") as whole, Bar("a part") as part:
        whole(1, 3)
        part(1, 2)
        assert whole._bar is not None and part._bar is None
    with Bar("later") as later:
        later(1, 2)
        assert later._bar is not None


def test_a_bar_that_ends_with_an_error_makes_room_for_the_next(terminal):
    with pytest.raises(KeyboardInterrupt), Bar("stopped") as stopped:
        stopped(1, 2)
        raise KeyboardInterrupt
    with Bar("next") as following:
        following(1, 2)
        assert following._bar is not None


def test_where_there_is_no_terminal_nothing_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with Bar("all") as bar:
        bar(1, 2)
    assert capsys.readouterr() == ("", "")
