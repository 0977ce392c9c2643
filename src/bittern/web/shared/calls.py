"""Calls from workers to the writer, over a local socket that only this user can open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from bittern.errors import BitternError, InputError
from bittern.web.refusal import Refusal, log

PATIENCE = 20.0  # seconds that a call waits for a writer that is being started again
BACKLOG = 64

Address = str | tuple[str, int]


@dataclass(frozen=True, slots=True)
class Line:
    """Where the writer listens, and the key that proves who calls."""

    address: Address
    key: bytes

    def listen(self) -> Listener:
        """Listen there; a socket that a killed writer left behind is replaced."""
        if isinstance(self.address, str):
            Path(self.address).unlink(missing_ok=True)
        return Listener(self.address, backlog=BACKLOG, authkey=self.key)


def _send(connection: Connection, what: str, arguments: tuple[Any, ...]) -> None:
    try:
        connection.send((what, arguments))
    except RecursionError:  # while it is pickled, before anything is sent
        raise Refusal(422, "The request is nested too deeply.") from None


class Caller:
    """The worker's end; each thread has a connection of its own."""

    def __init__(self, line: Line) -> None:
        self._line, self._local = line, threading.local()

    def ask(self, what: str, *arguments: Any) -> Any:
        """What the writer reads; asked again if the writer dies meanwhile."""
        for _ in range(3):
            with suppress(EOFError, OSError):
                return self._exchange(what, arguments)
            self._hang_up()
        raise _away()

    def tell(self, what: str, *arguments: Any) -> Any:
        """What the writer answers to a write, which is never sent twice."""
        connection = self._connected()
        try:
            _send(connection, what, arguments)
        except (OSError, ValueError):  # an old connection to a writer that has died
            self._hang_up()
            connection = self._connected()
            _send(connection, what, arguments)
        try:
            return _value(connection.recv())
        except (EOFError, OSError):
            self._hang_up()
            raise Refusal(
                503,
                "The writer ended during this write, which may be stored or not; look, then "
                "try again.",
            ) from None

    def _exchange(self, what: str, arguments: tuple[Any, ...]) -> Any:
        connection = self._connected()
        _send(connection, what, arguments)
        return _value(connection.recv())

    def _connected(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None or connection.closed or _is_broken(connection):
            connection = self._local.connection = self._connect()
        return connection

    def _connect(self) -> Connection:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return Client(self._line.address, authkey=self._line.key)
            except (OSError, EOFError, AuthenticationError):
                if time.monotonic() > until:
                    raise _away() from None
                time.sleep(0.05)

    def _hang_up(self) -> None:
        connection: Connection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()


def answer_calls(listener: Listener, functions: dict[str, Callable[..., Any]]) -> None:
    """Answer every caller in a thread of its own, until the listener is closed."""
    while True:
        try:
            connection = listener.accept()
        except (AuthenticationError, EOFError, ConnectionError):
            continue  # somebody else, or a caller that died
        except OSError:
            return  # closed
        threading.Thread(target=_answer, args=(connection, functions), daemon=True).start()


def _answer(connection: Connection, functions: dict[str, Callable[..., Any]]) -> None:
    with suppress(EOFError, OSError), connection:
        while True:
            what, arguments = connection.recv()
            connection.send(_outcome(functions[what], arguments))


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "value", function(*arguments)
    except Refusal as refusal:
        return "refusal", (refusal.status, str(refusal))
    except BitternError as error:
        return "error", str(error)
    except Exception as error:
        log.error("the writer failed", exc_info=error)
        return "refusal", (500, "The server made a mistake; its log says more.")


def _value(outcome: tuple[str, Any]) -> Any:
    kind, value = outcome
    if kind == "refusal":
        raise Refusal(*value)
    if kind == "error":
        raise InputError(value)
    return value


def _is_broken(connection: Connection) -> bool:
    """Whether the other end is gone: nothing may come before we have asked."""
    try:
        return connection.poll()
    except OSError:
        return True


def _away() -> Refusal:
    return Refusal(503, "The writer is not there; try again in a moment.")
