"""Open a collection or an experiment in the browser: ``bittern explore``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from bittern.checks import check_count
from bittern.cli.app import app, echo
from bittern.cli.serve import VARIABLE, allowed_hosts, load_libraries
from bittern.errors import InputError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from bittern.web.source import CollectionSource


@app.command()
def explore(
    place: Annotated[
        str, typer.Argument(help="A collection, or the folder of an experiment of 'bittern run'.")
    ],
    against: Annotated[
        str | None, typer.Option(help="Another collection of the same things, to compare with.")
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="File of vectors to rerank by; row i is that of the item with id i."),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port to listen at; the next free one if it is taken, 0 for any.")
    ] = 8470,
    host: Annotated[
        str, typer.Option(help="Address to listen at; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(help=f"Word that requests must have; by default the variable {VARIABLE}."),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
) -> None:
    """Look at a collection or an experiment in the browser: search, compare, quality, codes."""
    load_libraries("explore")
    check_count(port, "explore: --port", least=0, most=65535)
    token = token or os.environ.get(VARIABLE) or None
    hosts = allowed_hosts(host, token, "explore")
    with opened(place, against, vectors, token, hosts) as application:
        from bittern.web.local_server import run

        shown = "" if token is None else f"?token={quote(token, safe='')}"
        run(application, host, port, lambda address: _announce(address + shown, no_browser))


@contextmanager
def opened(
    place: str,
    against: str | None = None,
    vectors: Path | None = None,
    token: str | None = None,
    hosts: tuple[str, ...] | None = None,
) -> Iterator[FastAPI]:
    """The application over a collection or the folder of an experiment."""
    from bittern import store
    from bittern.web.app import create_app

    if not store.is_address(place) and Path(place).is_dir():
        from bittern.web.explorer.experiment import Experiment
        from bittern.web.explorer.experiment_routes import experiment_pages

        if against is not None or vectors is not None:
            raise InputError("explore: --against and --vectors are for collections.")
        pages = experiment_pages(Experiment(Path(place)))
        yield create_app(None, pages=pages, token=token, hosts=hosts)
        return
    from bittern.web.explorer.routes import collection_pages

    with ExitStack() as stack:
        here = _source(stack, place, vectors)
        other = None if against is None else _source(stack, against, None)
        pages = collection_pages(here, other)
        yield create_app(here, pages=pages, token=token, hosts=hosts)


def _source(stack: ExitStack, place: str, vectors: Path | None) -> CollectionSource:
    """A snapshot of a collection."""
    from bittern import store
    from bittern.inputs import read_vectors
    from bittern.web.source import CollectionSource

    collection = stack.enter_context(store.open(place, read_only=True))
    rows = None if vectors is None else read_vectors(vectors)[:]
    return CollectionSource(collection, vectors=rows)


def _announce(address: str, no_browser: bool) -> None:
    echo(f"Open {address} in a browser (Ctrl-C ends it).")
    if not no_browser:
        import webbrowser

        webbrowser.open(address)
