"""A DuckDB file opened by one writer, or copied for a reader, with errors in one sentence.

DuckDB lets one process write, and then no other process can even read.  So a reader copies the
file and its log between two writes (the writer holds a lock while it writes, the reader while it
copies), and then has a snapshot that does not change and blocks nobody.  The files between two
writes are in the state of a crash, from which DuckDB recovers everything that was committed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

from bittern.errors import BitternError, FileError
from bittern.extras import import_extra
from bittern.io.files import atomic_write, existing_file, reason_of, temporary_folder
from bittern.io.leftovers import own_mark
from bittern.store import soundness

DAMAGE = "Corrupt database file|Could not read enough bytes|Could not read all|truncated"
SHORT_LOG, LONG_LOG = 1 << 20, 16 << 20  # bytes of a log that is written to a small, a large file
LOCKS_ITSELF = sys.platform == "linux"  # its two kinds of locks, of flock and fcntl, are separate
_open_for_writing: set[str] = set()  # paths, in this process


class DuckFile:
    """A connection to a DuckDB file: ``for_writing`` or a ``snapshot`` of it."""

    def __init__(
        self,
        path: Path,
        connection: Any,
        guard: BinaryIO | None,
        scratch: Path,
        copy: Path | None = None,
    ) -> None:
        self.path = path
        self._connection = connection
        self._guard = guard  # the file whose lock we take; None for a snapshot
        self._copy = copy  # the folder of a snapshot, which Windows deletes only after closing
        self._scratch = scratch  # the only folder, besides the file, that DuckDB may write to
        self._lock = threading.RLock()
        self._beside: list[DuckFile] = []
        self._longest_log = min(max(path.stat().st_size // 4, SHORT_LOG), LONG_LOG)

    @classmethod
    def for_writing(cls, path: str | os.PathLike[str]) -> DuckFile:
        """Open an existing file as its only writer."""
        source = existing_file(path)
        _refuse_open(source)
        # It must stay open as long as DuckDB has the file: under POSIX, closing it would release
        # DuckDB's own lock.
        guard = _guard(source)
        scratch = _scratch()
        try:
            with _locked(guard, alone=True):
                soundness.check_sound(source, _copy, refusal)
                connection = _connect(source, source, scratch, read_only=False)
        except BaseException:
            if guard is not None:
                guard.close()
            raise
        _open_for_writing.add(os.path.realpath(source))
        return cls(source, connection, guard, scratch)

    @classmethod
    def snapshot(cls, path: str | os.PathLike[str]) -> DuckFile:
        """Open a temporary copy."""
        source = existing_file(path)
        _refuse_open(source)
        scratch = _scratch()
        with temporary_folder("snapshot") as folder:
            copy = folder / "snapshot.duckdb"
            with _guard(source) or nullcontext() as guard, _locked(guard, alone=False):
                _copy(source, copy)
            connection = _connect(copy, source, scratch, read_only=True)
        return cls(source, connection, None, scratch, copy.parent)

    def beside(self) -> DuckFile:
        """Another connection, for reading what was committed while this one writes."""
        with self._lock, self._duckdb_errors("cannot be read"):
            made = DuckFile(self.path, self._connection.cursor(), None, self._scratch)
            self._beside.append(made)
            return made

    @contextmanager
    def stopped_after(self, seconds: float) -> Iterator[Callable[[], bool]]:
        """Interrupt what this connection does after so many seconds; whether that was so."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._connection.interrupt()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            yield late.is_set
        finally:
            timer.cancel()

    def rows(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a query's result."""
        with self._lock, self._duckdb_errors("cannot be read"):
            return self._connection.execute(sql, parameters).fetchall()

    def arrays(self, sql: str, **tables: dict[str, Any]) -> dict[str, Any]:
        """The columns of a query's result as arrays; the query may use ``tables`` of arrays."""
        with (
            self._lock,
            self._duckdb_errors("cannot be read"),
            _registered(self._connection, tables),
        ):
            return self._connection.execute(sql).fetchnumpy()

    @contextmanager
    def transaction(self, **tables: dict[str, Any]) -> Iterator[Any]:
        """A connection whose changes are committed together or not at all."""
        with self._lock, _locked(self._guard, alone=True):
            with (
                self._duckdb_errors("cannot be written, and nothing of this write was stored"),
                _registered(self._connection, tables),
            ):
                self._connection.begin()
                try:
                    yield self._connection
                    self._connection.commit()
                except BaseException:
                    with suppress(
                        duckdb_library().Error
                    ):  # if the commit failed, no transaction is open
                        self._connection.rollback()
                    raise
            self._shorten_log()

    def _shorten_log(self) -> None:
        """Write a long log to the file, because what waits there is in memory too.

        DuckDB would do so during a commit, and if the disk is full, it would report that as a
        failed write, although the write is stored.  Here it is no error, and is tried again later.
        """
        duckdb = duckdb_library()
        with suppress(FileNotFoundError):
            size = Path(f"{self.path}.wal").stat().st_size
            if size <= self._longest_log:
                return
            try:
                self._connection.execute("CHECKPOINT")
            except duckdb.TransactionException:  # somebody reads; after the next write then
                return
            except (RuntimeError, duckdb.Error) as error:
                self._longest_log = 2 * size
                self._connect_again()
                if is_interrupt(error):
                    raise KeyboardInterrupt from None

    def _connect_again(self) -> None:
        """Open the file again, which DuckDB demands when it could not write the log to it."""
        with ExitStack() as locks:
            for one in self._beside:
                locks.enter_context(one._lock)
                one._connection.close()
            self._connection.close()
            self._connection = _connect(self.path, self.path, self._scratch, read_only=False)
            for one in self._beside:
                one._connection = self._connection.cursor()

    def write_parquet(self, select: str, target: Path) -> None:
        """Write the rows of a query to a Parquet file."""
        try:
            self._scratch.mkdir()
            file = self._scratch / "export.parquet"
            with self._lock, self._duckdb_errors("cannot be exported"):
                self._connection.execute(f"COPY ({select}) TO {quoted(str(file))} (FORMAT parquet)")
            with atomic_write(target) as out, file.open("rb") as made:
                shutil.copyfileobj(made, out)
        except OSError as error:
            raise FileError(f"{target}: cannot be written ({error.strerror or error}).") from error
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def close(self) -> None:
        """Write the log to the file and release it."""
        with ExitStack() as others:
            for one in self._beside:  # DuckDB does not close a file that is being read
                one._connection.interrupt()
                others.enter_context(one._lock)
                one._connection.close()
            self._close()

    def _close(self) -> None:
        with self._lock, _locked(self._guard, alone=True), self._duckdb_errors("cannot be closed"):
            try:
                self._connection.close()
            finally:
                _open_for_writing.discard(os.path.realpath(self.path))
                if self._guard is not None:
                    self._guard.close()
                if self._copy is not None:
                    shutil.rmtree(self._copy, ignore_errors=True)
                else:
                    soundness.note(self.path)

    @contextmanager
    def _duckdb_errors(self, trouble: str) -> Iterator[None]:
        """Turn DuckDB's errors into one sentence; the caller handles those of a condition."""
        duckdb = duckdb_library()
        try:
            yield
        except BitternError:
            raise
        except (RuntimeError, duckdb.Error) as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from None
            of_condition = (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError)
            if isinstance(error, of_condition) or not isinstance(error, duckdb.Error):
                raise
            raise FileError(f"{self.path}: {trouble} ({first_line(error)}).") from error


def duckdb_library() -> Any:
    """DuckDB, an optional dependency."""
    return import_extra("duckdb", "Collection")


def first_line(error: Exception) -> str:
    """DuckDB's message without the error type before it and the advice after it."""
    if re.search(DAMAGE, str(error)):
        return "it is damaged or incomplete"
    return re.sub(r"^[A-Za-z ]+ Error: ", "", reason_of(error)).rstrip(" .!")


def is_interrupt(error: Exception) -> bool:
    """Whether Ctrl-C is the reason: it stops DuckDB's query, or DuckDB's own call to Python."""
    duckdb = duckdb_library()
    if isinstance(error, (RuntimeError, duckdb.InterruptException)):
        return "interrupt" in str(error).lower()
    return type(error) is duckdb.Error and "KeyboardInterrupt" in str(error)


def quoted(text: str, mark: str = "'") -> str:
    """Text as an SQL literal; as a name if ``mark`` is ``"``."""
    return mark + text.replace(mark, 2 * mark) + mark


def _connect(path: Path, named: Path, scratch: Path, *, read_only: bool) -> Any:
    """A connection that cannot access any other file."""
    duckdb = duckdb_library()
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
        try:
            connection.execute("SET enable_progress_bar = false")  # in the middle of our output
            connection.execute("SET checkpoint_threshold = '1TB'")  # we decide when
            connection.execute(f"SET allowed_directories = [{quoted(str(scratch))}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            soundness.refuse_foreign(connection)
        except BaseException:
            connection.close()
            raise
    except (duckdb.Error, RuntimeError, MemoryError, ValueError) as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        raise refusal(named, error) from error
    return connection


def refusal(path: Path, error: Exception) -> FileError:
    """Why a file cannot be opened."""
    message = str(error)
    if "lock on file" in message or "used by another process" in message:  # POSIX, Windows
        holder = re.search(r"PID (\d+)", message)
        who = f"another process ({holder[0]})" if holder else "another process"
        return FileError(
            f"{path}: {who} has it open for writing; close it there, or open with read_only=True."
        )
    if "not a valid DuckDB" in message:
        return FileError(f"{path}: not a collection, nor any other DuckDB file.")
    return FileError(f"{path}: not a readable collection ({first_line(error)}).")


def _refuse_open(path: Path) -> None:
    if os.path.realpath(path) in _open_for_writing:
        raise FileError(
            f"{path}: is open for writing in this process; use that, or close it first."
        )


def _copy(source: Path, target: Path) -> None:
    """Copy the database and its write-ahead log."""
    try:
        shutil.copyfile(source, target)
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{source}.wal", f"{target}.wal")
    except OSError as error:
        raise FileError(f"{source}: cannot be copied ({error.strerror}).") from error


def _guard(source: Path) -> BinaryIO | None:
    """Open the file whose lock keeps writers and readers of ``source`` apart.

    On Linux it is the file itself.  On other systems with ``flock``, as macOS, that lock would
    exclude DuckDB's own lock of the file, so it is ``SOURCE.lock``.  None on Windows, where nobody
    can open a file that DuckDB has open for writing, and in a folder that nobody can write to.
    """
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return None
    try:
        if LOCKS_ITSELF:
            return source.open("rb")
        beside = Path(f"{source}.lock")
        if beside.exists():
            return beside.open("rb")
        return beside.open("ab") if os.access(source.parent, os.W_OK) else None
    except OSError as error:
        raise FileError(f"{source}: cannot be opened ({error.strerror}).") from error


@contextmanager
def _locked(guard: BinaryIO | None, *, alone: bool) -> Iterator[None]:
    """Keep others from writing (with ``alone``, also from copying) during the block."""
    if guard is None:
        yield
        return
    import fcntl

    try:
        fcntl.flock(guard, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    except OSError as error:  # such as a network's file system without locks
        raise FileError(f"{guard.name}: cannot be locked ({error.strerror}).") from error
    try:
        yield
    finally:
        if not guard.closed:
            fcntl.flock(guard, fcntl.LOCK_UN)


@contextmanager
def _registered(connection: Any, tables: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Make arrays available as tables during the block."""
    for name, columns in tables.items():
        connection.register(name, columns)
    try:
        yield
    finally:
        for name in tables:
            with suppress(duckdb_library().Error):  # after a fatal error the views are gone too
                connection.unregister(name)


def _scratch() -> Path:
    """An unused name for a temporary folder."""
    return Path(tempfile.gettempdir(), f"scratch{own_mark()}{secrets.token_hex(8)}")
