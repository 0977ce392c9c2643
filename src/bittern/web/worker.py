"""A process that answers requests, and one that writes; both end when their parent ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bittern.errors import BitternError
from bittern.web.refusal import log
from bittern.web.shared.calls import Line
from bittern.web.shared.generation import SharedNumbers
from bittern.web.shared.source import GENERATION, N_STATE, STATE, WORKERS

if TYPE_CHECKING:
    from bittern.web.guard import App, Receive, Scope, Send
    from bittern.web.source import Source

MOST_CLIENTS = 10_000  # that are remembered
FIRST_ANSWERS = 0.5  # seconds in which the first worker answers without loading kernels
PAUSE = 0.005  # seconds between two looks for the first generation


@dataclass(frozen=True, slots=True)
class Settings:
    """What every process of a server is told."""

    place: str
    root: Path  # of the generations
    run: Path  # of what belongs to this run
    line: Line
    host: str
    port: int
    token: str | None
    hosts: tuple[str, ...] | None
    is_served: bool  # elsewhere, so that each worker opens it itself
    read_only: bool = False
    vectors: str | None = None
    most_bytes: int = 32 << 20
    most_pixels: int = 50_000_000
    own_sockets: bool = True  # whether each worker listens on a socket of its own


def work(settings: Settings, number: int, shared: Any, report: Connection) -> None:
    """Answer requests until a signal says to stop; ``report`` hears when it begins."""
    _begin()
    with _reporting(report):
        import uvicorn

        from bittern.kernels import small
        from bittern.web.app import create_app
        from bittern.web.connections import Connection as ClientConnection
        from bittern.web.images import Limits
        from bittern.web.metrics import Metrics

        source, state = _source(settings), SharedNumbers(settings.run / STATE, N_STATE)
        is_first = state[WORKERS] == 0 and not small.is_over()
        if is_first:
            small.spare_kernels()  # the first answers need not wait for them
        else:
            _warm_up(source)
        app = create_app(
            source,
            token=settings.token,
            hosts=settings.hosts,
            limits=Limits(settings.most_bytes, settings.most_pixels),
            metrics=Metrics.shared(settings.run / "metrics", number),
        )
        listening = listen(settings) if settings.own_sockets else shared
        config = uvicorn.Config(
            Spread(app, state),
            http=ClientConnection,
            lifespan="off",
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        server = uvicorn.Server(config)
        source.now()
        state[WORKERS] += 1  # two at once may count as one, which does no harm
        report.send(("ready", ""))
    if is_first:
        later = threading.Timer(FIRST_ANSWERS, _warm_up, args=(source,))
        later.daemon = True
        later.start()
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve([listening]))


def write(settings: Settings, report: Connection) -> None:
    """Own the collection, and answer the workers' calls until a signal says to stop."""
    from bittern.web.shared.calls import answer_calls
    from bittern.web.shared.writer import Writer

    _begin()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with _reporting(report):
        writer = Writer(settings.place, settings.root, settings.run, read_only=settings.read_only)
        listener = settings.line.listen()
        report.send(("ready", ""))
    functions = {name: getattr(writer, name) for name in ("add", "delete", "matching", "info")}
    try:
        answer_calls(listener, functions)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            writer.close()
        except BitternError as error:  # what was acknowledged is stored all the same
            log.warning("%s", error)


class Spread:
    """An application that asks its clients to connect again once another worker has begun.

    The system chooses a worker for each connection, and clients keep theirs.  Without this, a
    worker that begins later, perhaps because another was killed, would have nothing to do.
    """

    def __init__(self, app: App, state: SharedNumbers) -> None:
        self._app, self._state, self._n_workers = app, state, 0
        self._old: set[Any] = set()  # clients that connected before the last worker began
        self._new: set[Any] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        now, client = self._state[WORKERS], scope.get("client")
        if now != self._n_workers:
            self._n_workers, self._old, self._new = now, self._old | self._new, set()
        if client not in self._old:
            if len(self._new) < MOST_CLIENTS:
                self._new.add(client)
            await self._app(scope, receive, send)
            return
        self._old.discard(client)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, sent)


def listen(settings: Settings) -> socket.socket:
    """A socket of this process at the server's port, which the system shares among them."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((settings.host, settings.port))
    made.listen(2048)
    return made


def _source(settings: Settings) -> Source:
    vectors = None
    if settings.vectors is not None:
        from bittern.inputs import read_vectors

        vectors = read_vectors(settings.vectors).vectors
    if settings.is_served:
        from bittern import store
        from bittern.web.source import CollectionSource

        opened = store.open(settings.place, read_only=settings.read_only)
        return CollectionSource(opened, vectors=vectors)
    from bittern.web.shared.calls import Caller
    from bittern.web.shared.source import SharedFiles, SharedSource

    state = SharedNumbers(settings.run / STATE, N_STATE)
    while state[GENERATION] == 0:  # the writer opens the collection
        time.sleep(PAUSE)
    files = SharedFiles(settings.root, settings.run)
    return SharedSource(files, Caller(settings.line), vectors=vectors)


def _warm_up(source: Source) -> None:
    """Load the compiled code while NumPy answers the first requests."""
    from bittern.kernels import small

    with suppress(BitternError):
        rows, _ = source.page(0, 1)
        if len(rows):
            import bittern.kernels.multi_index
            import bittern.kernels.scan  # noqa: F401

            small.use_kernels()
            source.search(rows.codes, 1)


def prepare() -> None:
    """Import what every worker needs, so that those that are forked have it."""
    for name in ("uvicorn.loops.auto", "bittern.web.connections", "bittern.web.app"):
        import_module(name)


def load_code(settings: Settings) -> None:
    """Load the compiled code that searches need, if it is there, for workers that come later."""
    from bittern.kernels import small

    if not settings.is_served and small.is_compiled(small.SEGMENTS):
        with suppress(BitternError, OSError):
            _warm_up(_source(settings))


def _begin() -> None:
    """Leave Ctrl-C and a closed terminal to the parent, and end when it is gone or killed."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    threadpool_limits(1)  # libraries that the parent had loaded do not read the environment again
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # and not the parent's handler
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _reporting(report: Connection) -> Iterator[None]:
    """Tell the parent of an error in one sentence, and end."""
    try:
        yield
    except BitternError as error:
        report.send(("failed", str(error)))
        sys.exit(1)
    except OSError as error:
        report.send(("failed", f"{error.filename or 'server'}: {error.strerror or error}."))
        sys.exit(1)
