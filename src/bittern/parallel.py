"""Run work in threads or processes, and stop cleanly on Ctrl-C.

Threads are for compiled loops and for reading; processes are for everything else.  If a process
dies, only its own task fails.  Processes end when their parent ends, and leave Ctrl-C to it.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bittern.checks import check_count, whole_number
from bittern.errors import BitternError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
R = TypeVar("R")
VARIABLE = "BITTERN_THREADS"
QUICK = 512  # side of a matrix whose decompositions take less than a second
GRACE = 3  # seconds in which a process that was told to end cleans up
PR_SET_PDEATHSIG = 1
Progress = Callable[[int, int], None]  # called with (done, total)

SAFE_PATH = "PYTHONSAFEPATH"  # or a process looks for modules in the current folder first
# Matrix products round differently on two threads than on one, which may flip a bit of a code.  So
# parallel tasks get one thread each; only our own counting, which is exact, may use more.
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
)


def available_threads(n_threads: int | None = None) -> int:
    """``n_threads`` if given, otherwise BITTERN_THREADS, otherwise the cores of this process."""
    if n_threads is not None:
        return check_count(n_threads, "n_threads")
    if said := os.environ.get(VARIABLE):
        number = whole_number(said)
        return check_count(said if number is None else number, VARIABLE)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_blocks(
    work: Callable[[T], None],
    blocks: Iterable[T],
    n_threads: int | None = None,
    after: Callable[[T], None] | None = None,
) -> None:
    """Call ``work`` once for every block; the first error or Ctrl-C cancels the blocks not begun.

    The caller's thread works too, so a single block or a single thread starts no other thread.
    ``after`` is called in the caller's thread with each finished block.
    """
    waiting, finished = deque(blocks), deque[T]()

    def work_on(report: Callable[[], None]) -> None:
        try:
            while waiting:
                try:
                    block = waiting.popleft()
                except IndexError:  # another thread took the last block
                    break
                work(block)
                finished.append(block)
                report()
        except BaseException:
            waiting.clear()
            raise

    def report_finished() -> None:
        while finished:
            block = finished.popleft()
            if after is not None:
                after(block)

    n_helpers = min(available_threads(n_threads), len(waiting)) - 1
    if n_helpers < 1:
        work_on(report_finished)
        return
    with ThreadPoolExecutor(n_helpers) as pool:
        try:
            helpers = [pool.submit(work_on, lambda: None) for _ in range(n_helpers)]
            work_on(report_finished)
            for helper in helpers:
                helper.result()
                report_finished()
        except BaseException:
            waiting.clear()
            raise


def interruptible(work: Callable[[], R], side: int) -> R:
    """The result of a compiled call on matrices of this side; Ctrl-C need not wait for its end.

    Long calls run in a thread, which is left behind after Ctrl-C: compiled code cannot be stopped.
    """
    if side <= QUICK or threading.current_thread() is not threading.main_thread():
        return work()
    outcome: Future[R] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return outcome.result()


class ProcessEndedError(BitternError):
    """A process ended in the middle of a task."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T, R]):
    """A task with its result, or with the error that it raised or that ended its process."""

    task: T
    result: R | None = None
    error: Exception | None = None


def run_tasks(
    prepare: Callable[[], Callable[[T], R]],
    tasks: Iterable[T],
    jobs: int,
    *,
    owner: str,
    threads: int = 1,
    finish_begun: bool = False,
) -> Generator[Outcome[T, R], None, None]:
    """Run tasks in ``jobs`` processes, and yield the outcome of each as it ends.

    Each process calls ``prepare`` once, and then calls the function it returned with each task.
    ``prepare``, tasks and results must be picklable.  ``threads`` limits our own loops in each
    process.  If the iterator is closed early, or on Ctrl-C, processes end at once, or after their
    current task if ``finish_begun``.  ``owner`` is the name of the calling function, for errors.
    """
    from multiprocessing.connection import wait

    waiting = deque(tasks)
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.is_busy for worker in workers):
            for _ in range(min(jobs, len(waiting)) - len(workers)):
                workers.append(_Worker.start(prepare, owner, threads))
            for worker in workers:
                if waiting and not worker.is_busy:
                    worker.begin(waiting.popleft())
            ready = wait([worker.connection for worker in workers])
            for worker in workers:
                if worker.connection in ready and (outcome := worker.receive()) is not None:
                    yield outcome
            workers = [worker for worker in workers if not worker.is_gone]
        finish_begun = False
    finally:
        try:
            for worker in workers if finish_begun else ():
                worker.finish()
        finally:
            for worker in workers:
                worker.process.terminate()  # all of them before the wait for any
            for worker in workers:
                worker.stop()


class Processes(ThreadPoolExecutor):
    """An executor of ``n`` fresh processes with one thread each, for a ``with`` block.

    Ctrl-C or an error in the block ends them at once, and so does the end of this process.  If one
    dies, so does the executor.
    """

    def __init__(self, n: int, *, owner: str) -> None:
        super().__init__(n)  # a thread waits for each process
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._workers: list[_Worker] = []
        try:
            for _ in range(n):
                self._workers.append(_Worker.start(_caller, owner, 1))
                self._idle.put(self._workers[-1])
        except BaseException:
            self._end()
            raise

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Call a function in a process; both must be picklable, as must be what it returns."""
        return super().submit(self._call, partial(function, *given, **named))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for what was submitted; after an error, end it."""
        try:
            if kind is None:
                self.shutdown()
        finally:
            self._end()

    def _call(self, task: Callable[[], Any]) -> Any:
        worker = self._idle.get()
        try:
            return worker.call(task)
        finally:
            self._idle.put(worker)

    def _end(self) -> None:
        self.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.end()
        self.shutdown()  # its threads wait on the connections
        for worker in self._workers:
            worker.connection.close()


def _caller() -> Callable[[Callable[[], Any]], Any]:
    return _call


def _call(task: Callable[[], Any]) -> Any:
    return task()


@dataclass(eq=False)
class _Worker:
    """A process, as its parent sees it."""

    process: Any
    connection: Connection
    owner: str
    task: Any = None
    is_busy: bool = False
    is_ready: bool = False
    is_gone: bool = False

    @classmethod
    def start(cls, prepare: Callable[[], Any], owner: str, threads: int) -> _Worker:
        """Start a fresh process, which inherits no threads and no locks."""
        from multiprocessing import get_context

        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        worker = cls(process, ours, owner)
        with _child_environment(threads), _interrupts_held():
            process.start()
            theirs.close()
            worker.send(prepare)  # and not as an argument: it notices now if its parent dies
        return worker

    def send(self, what: Any) -> None:
        """Send it what it waits for."""
        with suppress(OSError):  # it is gone, as receive() will find out
            self.connection.send(what)

    def begin(self, task: Any) -> None:
        """Send it a task."""
        self.task, self.is_busy = task, True
        self.send(task)

    def receive(self) -> Outcome[Any, Any] | None:
        """The outcome of its task; None if it has just become ready, or died without a task."""
        try:
            result, error = self.connection.recv()
        except (EOFError, OSError):
            result, error = None, self._death()
        if not self.is_ready and not self.is_gone:
            self.is_ready = True
            if error is not None:  # raised by prepare()
                raise error
            return None
        if not self.is_busy:  # it died while it had nothing to do
            return None
        self.is_busy = False
        return Outcome(self.task, result, error)

    def call(self, task: Callable[[], Any]) -> Any:
        """What a task returns; raises what it raises."""
        while not self.is_ready and not self.is_gone:
            self.receive()
        self.begin(task)
        outcome = self.receive()
        error = ProcessEndedError("the process is gone.") if outcome is None else outcome.error
        if isinstance(error, ProcessEndedError):
            raise BrokenExecutor(str(error)) from error
        if error is not None:
            raise error
        assert outcome is not None  # or there would be an error
        return outcome.result

    def finish(self) -> None:
        """Wait until its task ends, if that has begun."""
        with suppress(Exception):  # it failed to start, but there is another error already
            while self.is_busy and not self.is_gone and (self.is_ready or self.connection.poll()):
                self.receive()

    def stop(self) -> None:
        """End it now, and the connection with it."""
        self.end()
        self.connection.close()

    def end(self) -> None:
        """End it now."""
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()

    def _death(self) -> ProcessEndedError:
        self.is_gone = True
        self.process.join()
        code = self.process.exitcode
        killed = code is not None and code < 0
        if not self.is_ready and not killed:
            raise BitternError(
                f"{self.owner}: a process ended before its first task; in a script, "
                f"call {self.owner}() below `if __name__ == '__main__':`."
            )
        how = f"signal {-code}" if killed else f"exit code {code}"
        return ProcessEndedError(f"the process ended with {how}; use fewer jobs if memory ran out.")


def _serve(connection: Connection) -> None:
    """Main loop of a process: prepare, then run tasks until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit_once)
    _die_with_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):  # the parent needs it no more
        try:
            function = _received(connection)()
        except BrokenPipeError:
            raise
        except Exception as error:
            connection.send((None, _portable(error)))
            return
        connection.send((None, None))
        while True:
            task = connection.recv()
            connection.send(_attempt(function, task))


def _received(connection: Connection) -> Callable[[], Callable[[Any], Any]]:
    """What the parent sent first, whose classes must be importable here."""
    try:
        prepare: Callable[[], Callable[[Any], Any]] = connection.recv()
    except (AttributeError, ImportError) as error:
        raise BitternError(
            f"a process cannot load what it should work with ({error}); define that in a module "
            "which can be imported, or use one job."
        ) from error
    return prepare


def _exit_once(*_: Any) -> None:
    """Exit, so that half-written files are cleaned up; a second signal must not disturb that.

    Code that calls back into Python, as a compiler, prints this exit as a traceback and goes on; so
    nothing is printed any more, and the process ends soon in any case.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    last = threading.Timer(GRACE, os._exit, (1,))
    last.daemon = True
    last.start()
    sys.exit(1)


def _die_with_parent() -> None:
    """Ask Linux to kill this process with its parent: a thread may have to wait for a compiler."""
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _attempt(function: Callable[[Any], Any], task: Any) -> tuple[Any, Exception | None]:
    try:
        return function(task), None
    except Exception as error:
        return None, _portable(error)


def _portable(error: Exception) -> Exception:
    """The error in a form that pickles, with its traceback as a note if it is unexpected."""
    if not isinstance(error, BitternError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """Exit as soon as the parent process is gone; it may have been killed."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C in this thread; a process started meanwhile inherits that."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it starts with the first process, and lets Ctrl-C through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _child_environment(threads: int) -> Iterator[None]:
    """Set the environment variables for a process started meanwhile."""
    wanted = dict.fromkeys((*ONE_THREAD, SAFE_PATH), "1") | {VARIABLE: str(threads)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
