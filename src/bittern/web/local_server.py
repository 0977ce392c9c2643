"""A server in this process, for the explorer: one application at one address."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bittern.errors import InputError

if TYPE_CHECKING:
    from fastapi import FastAPI

TRIES = 20  # ports that are tried one after the other


def run(app: FastAPI, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; ``announce`` is called with the address once requests are answered."""
    import uvicorn

    from bittern.web.connections import Connection

    listening = bind(host, port)
    number = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host

    class Announced(uvicorn.Server):
        async def startup(self, sockets: list[Any] | None = None) -> None:
            await super().startup(sockets)
            announce(f"http://{shown}:{number}/")

    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
    )
    with listening, suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
        Announced(config).run(sockets=[listening])


def bind(host: str, port: int) -> socket.socket:
    """A socket at the port, or at the next one that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + TRIES, 65536)):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host.strip("[]"), number))
            return found
        except OSError as error:
            found.close()
            reason = error.strerror or error
    raise InputError(f"explore: cannot listen at {host}:{port} ({reason}); choose another --port.")
