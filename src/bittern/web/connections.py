"""Connections that neither wait for ever nor take any amount: uvicorn has no such limits.

Without them, somebody who connects a thousand times and says nothing keeps all others out.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE = 20.0  # seconds that a client has to say what it asks, and to take some of an answer
MOST_HEAD = 1 << 16  # bytes of an address and of headers


class Connection(HttpToolsProtocol):
    """A connection of a client, which is closed if nothing comes of it."""

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0  # when it began, or the last answer was given
    _n_waiting = 0  # bytes of the answer that the client had not taken when we looked
    _n_head = 0  # bytes of a head that is not complete
    _is_head = True  # whether a head is expected
    _has_begun = False  # whether a head began in what is read now

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look at the clock."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop that."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some bytes, unless the head before them is too long already."""
        if self._n_head > MOST_HEAD:
            self._refuse(431, "The address and the headers of a request are too long.")
            return
        self._has_begun = False
        super().data_received(data)
        if self._is_head and not self._has_begun:
            self._n_head += len(data)

    def on_message_begin(self) -> None:
        """Count the bytes of a head."""
        self._n_head, self._is_head, self._has_begun = 0, True, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count no longer."""
        self._n_head, self._is_head = 0, False
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Give the next request its time."""
        self._since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(400, msg)

    def _refuse(self, status: int, sentence: str) -> None:
        if self.transport.is_closing():
            return
        body = json.dumps({"error": sentence})
        self.transport.write(
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
        )
        self.transport.close()

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        """Close the connection if the client neither asks nor takes its answer."""
        transport: Any = self.transport
        n_waiting = transport.get_write_buffer_size()
        if n_waiting and n_waiting == self._n_waiting:
            transport.abort()
            return
        self._n_waiting = n_waiting
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and not n_waiting and self.loop.time() - self._since >= PATIENCE:
            transport.close()
            return
        self._look_later()
