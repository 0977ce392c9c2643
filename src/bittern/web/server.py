"""The server: one parent that starts a writer and the workers, and replaces those that die.

On Linux, processes are forks of the parent, which has imported and loaded what they need: a worker
that dies is replaced in a moment, and they share memory.  The parent itself computes nothing, and
has no other thread.  Where it has, or on other systems, each process begins anew.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from bittern.errors import FileError, InputError
from bittern.io.addresses import is_address
from bittern.io.files import temporary_folder
from bittern.parallel import ONE_THREAD, VARIABLE
from bittern.web.refusal import log
from bittern.web.shared.calls import Line
from bittern.web.worker import Settings, load_code, prepare, work, write

SHORT, MOST_SHORT = 5.0, 5  # seconds; processes in a row that may end sooner
PAUSE = 10.0  # seconds before the next one, if it was there once
LONGEST_ADDRESS = 100  # bytes of a path at which a process may listen
GRACE = 10.0  # seconds that processes have to end


@dataclass(eq=False)
class _Child:
    """A process, and what starts it again."""

    target: Callable[..., None]
    arguments: tuple[Any, ...]  # those before the pipe of reports
    process: Any = None
    report: Any = None
    is_ready: bool = False
    has_served: bool = False  # whether one of its processes was ready
    born: float = 0.0
    n_short: int = 0
    rests_until: float = 0.0  # if it has no process


class _Stopped(BaseException):
    """A signal came while code was being compiled, which nothing else would end."""


@dataclass(eq=False)
class Server:
    """Processes that serve one collection at one address."""

    settings: Settings
    n_workers: int
    _children: list[_Child] = field(default_factory=list)
    _later: list[_Child] = field(default_factory=list)  # workers that are not begun yet
    _is_stopping: bool = False
    _is_loading: bool = False

    @property
    def url(self) -> str:
        """The address."""
        host = self.settings.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.settings.port}"

    def start(self, shared: Any) -> None:
        """Start the writer and a worker, and return when they answer; the others come later."""
        if not self.settings.is_served:
            self._begin(_Child(write, (self.settings,)))
        prepare()  # while the writer opens the collection
        workers = [_Child(work, (self.settings, i, shared)) for i in range(self.n_workers)]
        self._later = workers[1:]
        self._begin(workers[0])
        while not self._answers():
            self._attend(None)

    def _answers(self) -> bool:
        writers = 0 if self.settings.is_served else 1
        ready = [child.is_ready for child in self._children]
        return all(ready[:writers]) and any(ready[writers:])

    def attend(self) -> None:
        """Start the other workers, and replace processes that die, until :meth:`stop` is called."""
        if can_fork():
            self._load_code()
        while self._later and not self._is_stopping:
            self._begin(self._later.pop(0))
        while not self._is_stopping:
            self._attend(0.5)
            for child in self._children:
                if child.process is None and time.monotonic() >= child.rests_until:
                    self._begin(child)

    def stop(self, *_: Any) -> None:
        """Let :meth:`attend` return; a handler of signals."""
        self._is_stopping = True
        if self._is_loading:
            raise _Stopped

    def _load_code(self) -> None:
        """Load compiled code for workers that begin later; it may have to be compiled anew."""
        with suppress(_Stopped):
            self._is_loading = True
            if not self._is_stopping:
                load_code(self.settings)
        self._is_loading = False

    def end(self) -> None:
        """End the workers, then the writer, which closes the collection."""
        writers = 0 if self.settings.is_served else 1
        for some in (self._children[writers:], self._children[:writers]):
            alive = [child.process for child in some if child.process is not None]
            for process in alive:
                process.terminate()
            until = time.monotonic() + GRACE
            for process in alive:
                process.join(max(0.1, until - time.monotonic()))
                if process.is_alive():
                    process.kill()
                    process.join()

    def _begin(self, child: _Child) -> None:
        context: Any = get_context("fork" if can_fork() else "spawn")
        if can_fork():
            gc.freeze()  # what is shared now stays so, and is not looked at again
        ours, theirs = context.Pipe(duplex=False)
        arguments = (*child.arguments, theirs)
        child.process = context.Process(target=child.target, args=arguments, daemon=True)
        child.report, child.is_ready, child.born = ours, False, time.monotonic()
        child.process.start()
        theirs.close()
        if child not in self._children:
            self._children.append(child)

    def _attend(self, seconds: float | None) -> None:
        """Wait for news of a process, and act on it."""
        alive = [child for child in self._children if child.process is not None]
        reports = {child.report: child for child in alive if not child.is_ready}
        ends = {child.process.sentinel: child for child in alive}
        for news in wait([*reports, *ends], seconds):
            if news in reports:
                self._hear(reports[news])
            elif news in ends and not self._is_stopping:
                self._replace(ends[news])

    def _hear(self, child: _Child) -> None:
        try:
            kind, sentence = child.report.recv()
        except (EOFError, OSError):  # it ends, of which we hear in another way
            return
        if kind == "failed" and not child.has_served:
            raise FileError(sentence)
        if kind == "failed":
            log.warning("%s", sentence)
            return
        child.is_ready = child.has_served = True

    def _replace(self, child: _Child) -> None:
        child.process.join()
        is_short = time.monotonic() - child.born < SHORT
        child.n_short = child.n_short + 1 if is_short else 0
        if child.n_short > MOST_SHORT and not child.has_served:
            raise InputError("serve: a process ends again and again; its messages say why.")
        log.warning("a process ended with code %s, another takes over", child.process.exitcode)
        if child.n_short > MOST_SHORT:  # the disk may be full; the others answer meanwhile
            child.process, child.rests_until = None, time.monotonic() + PAUSE
        else:
            self._begin(child)


def can_fork() -> bool:
    """Whether a copy of this process is a sound one: on Linux, as long as it has one thread."""
    return sys.platform == "linux" and threading.active_count() == 1


@contextmanager
def serving(
    place: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    **more: Any,
) -> Iterator[Server]:
    """A server that answers during the block; ``more`` are fields of its :class:`Settings`."""
    is_served = is_address(place)
    own_sockets = sys.platform == "linux"
    with temporary_folder("serve") as run:
        settings = Settings(
            place,
            root=run if is_served or more.get("read_only") else _root(place),
            run=run,
            line=Line(_address(run), secrets.token_bytes(32)),
            host=host,
            port=port,
            is_served=is_served,
            own_sockets=own_sockets,
            **more,
        )
        with _bound(settings) as bound, _one_thread():
            settings = replace(settings, port=bound.getsockname()[1])
            _make_shared(run, workers)
            server = Server(settings, workers)
            try:
                server.start(None if own_sockets else bound)
                yield server
            finally:
                server.end()
                with suppress(OSError):  # it has files, which the next start can use
                    settings.root.rmdir()


def endings() -> list[signal.Signals]:
    """The signals that say to end: a closed terminal too, unless ``nohup`` says otherwise."""
    known = [one for one in signal.Signals if one.name in ("SIGTERM", "SIGHUP")]
    return [one for one in known if signal.getsignal(one) != signal.SIG_IGN]


def run(server: Server) -> None:
    """Serve until SIGTERM or Ctrl-C, or until the terminal is closed."""
    signs = (signal.SIGINT, *endings())
    before = {sign: signal.signal(sign, server.stop) for sign in signs}
    try:
        server.attend()
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


def _root(place: str) -> Path:
    from bittern.io.files import existing_file
    from bittern.web.shared.writer import shared_folder

    existing_file(place)
    return shared_folder(place)


def _make_shared(run: Path, workers: int) -> None:
    from bittern.web import metrics
    from bittern.web.shared.generation import SharedNumbers
    from bittern.web.shared.source import N_STATE, STATE

    SharedNumbers.create(run / STATE, N_STATE)
    metrics.create(run / "metrics", workers)


def _address(run: Path) -> str | tuple[str, int]:
    """Where the writer listens: a socket in our own folder, or a free port of this machine."""
    path = str(run / "writer")
    is_short = len(os.fsencode(path)) <= LONGEST_ADDRESS
    if hasattr(socket, "AF_UNIX") and sys.platform != "win32" and is_short:
        return path
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return "127.0.0.1", free.getsockname()[1]


@contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    """A socket that keeps the port for us; where workers cannot share a port, they share it."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # Sockets of workers share a port, and would share that of another server too.
            if sys.platform != "win32":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.host, settings.port))
            port = probe.getsockname()[1]
            if not settings.own_sockets:
                probe.listen(2048)
                yield probe
                return
        with socket.socket(family, socket.SOCK_STREAM) as kept:
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            kept.bind((settings.host, port))
            yield kept
    except OSError as error:
        raise InputError(
            f"serve: cannot listen at {settings.host}, port {settings.port} ({error.strerror}); "
            "choose another with --port."
        ) from None


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for the computations of each process: there are several of them already."""
    wanted = dict.fromkeys((*ONE_THREAD, VARIABLE), "1")
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update({name: os.environ.get(name, value) for name, value in wanted.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
