"""Serve a collection: ``bittern serve``."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from bittern.checks import check_count
from bittern.cli.app import app, echo
from bittern.cli.index import Place
from bittern.errors import InputError

VARIABLE = "BITTERN_TOKEN"
NEEDED = ("fastapi", "uvicorn", "starlette", "pydantic")


@app.command()
def serve(
    name: Place,
    host: Annotated[
        str, typer.Option(help="Address to listen at; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for a free one.")] = 8000,
    workers: Annotated[int, typer.Option(help="Processes that answer requests.")] = 1,
    token: Annotated[
        str | None,
        typer.Option(
            help="Word that every request must have, in 'Authorization: Bearer WORD'; by default "
            f"the variable {VARIABLE}, which other users of the machine cannot see."
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Serve a snapshot, and refuse to change it.")
    ] = False,
    vectors: Annotated[
        Path | None,
        typer.Option(help="File of vectors to rerank by; row i is that of the item with id i."),
    ] = None,
    max_upload: Annotated[int, typer.Option(help="Largest request, in megabytes.")] = 32,
    max_pixels: Annotated[int, typer.Option(help="Largest image, in millions of pixels.")] = 50,
) -> None:
    """Serve a collection over HTTP: search, items, add, delete, metrics; see docs/serve.md."""
    load_libraries("serve", "duckdb")
    from bittern.web import server

    token = token or os.environ.get(VARIABLE) or None
    hosts = allowed_hosts(host, token)
    for sign in server.endings():  # which would leave temporary files behind
        signal.signal(sign, _leave)
    check_count(workers, "serve: --workers", most=64)
    check_count(port, "serve: --port", least=0, most=65535)
    check_count(max_upload, "serve: --max-upload", most=4096)
    check_count(max_pixels, "serve: --max-pixels", most=1000)
    with server.serving(
        str(name),
        host=host,
        port=port,
        workers=workers,
        token=token,
        hosts=hosts,
        read_only=read_only,
        vectors=None if vectors is None else str(vectors),
        most_bytes=max_upload * 1_000_000,
        most_pixels=max_pixels * 1_000_000,
    ) as running:
        echo(f"{name} is served at {running.url} (Ctrl-C ends it)")
        server.run(running)


def _leave(*_: object) -> None:
    raise SystemExit(0)


def load_libraries(owner: str, *more: str) -> None:
    """Load what the server is made of; the error says what is missing, or there but broken."""
    from bittern.extras import import_extra, require

    require({owner: (*NEEDED, *more)})
    for module in NEEDED:
        import_extra(module, owner)


def allowed_hosts(host: str, token: str | None, command: str = "serve") -> tuple[str, ...] | None:
    """The names that requests may address; None for all, which need a token."""
    from bittern.web.guard import LOOPBACK

    if token and not (token.isascii() and token.isprintable() and not set(token) & set(' ",;\\')):
        raise InputError(
            f"{command}: the token must be of ASCII letters, digits and signs, without blanks, "
            "quotes, commas, semicolons or backslashes, so that every client can send it."
        )
    if host.strip("[]").lower() in LOOPBACK:
        return LOOPBACK
    if not token:
        raise InputError(
            f"{command}: --host {host} can be reached from other machines, and needs --token, or "
            f"the variable {VARIABLE}."
        )
    return None
