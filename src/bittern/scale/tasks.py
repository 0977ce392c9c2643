"""One task for each shard, here or by any executor, with bounded retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import closing
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any, TypeVar

import bittern
from bittern.errors import BitternError, InputError
from bittern.progress import Bar
from bittern.scale.cluster import PATIENCE

T = TypeVar("T")
R = TypeVar("R")
ATTEMPTS = 3  # of a task whose worker was lost
GLANCE = 1.0  # seconds after which a cluster that does not answer is looked at
POWERS = {10**12: "T", 10**9: "G", 10**6: "M", 10**3: "k"}


class TaskLostError(BitternError):
    """A task that no worker finished, and why."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one function for each shard: in this process, or by an executor.

    An executor is that of ``concurrent.futures``, or a Dask client's ``get_executor()``.  Tasks
    hold paths and queries, never the bytes of a shard.
    """

    executor: Executor | None = None

    def __post_init__(self) -> None:
        if self.executor is not None and not hasattr(self.executor, "submit"):
            raise InputError(
                "scale: executor must be None or a concurrent.futures.Executor, such as "
                f"ProcessPoolExecutor(2) or client.get_executor(), got {self.executor!r}."
            )

    @property
    def n_threads(self) -> int | None:
        """Threads of one task: all of this process, or one where tasks run side by side."""
        return None if self.executor is None else 1

    def __call__(
        self,
        function: Callable[[T], R],
        tasks: Mapping[str, T],
        what: str,
        work: Mapping[str, int] | None = None,
    ) -> Iterator[tuple[str, R]]:
        """The result of each task by the name of its shard, as they finish.

        ``work`` is the number of pairs of each task; with it, the progress shows pairs a second.
        """
        results: Iterator[tuple[str, R | TaskLostError]] = (
            ((name, function(task)) for name, task in tasks.items())
            if self.executor is None
            else submitted(self.executor, function, tasks)
        )
        with _Progress(what, tasks, work) as tell, closing(results):  # type: ignore[type-var]
            for name, result in results:
                if isinstance(result, TaskLostError):
                    raise _lost_shard(name, result)
                yield name, result
                tell(name)

    def in_order(
        self, function: Callable[[T], R], tasks: Mapping[str, T], what: str
    ) -> Iterator[R]:
        """The results in the order of the tasks, whatever the order in which they finish."""
        early: dict[str, R] = {}
        waiting = iter(tasks)
        wanted = next(waiting, None)
        for name, result in self(function, tasks, what):
            early[name] = result
            while wanted in early:
                yield early.pop(wanted)
                wanted = next(waiting, None)


class _Progress:
    """Shards done, pairs a second, and the time left."""

    def __init__(self, what: str, tasks: Mapping[str, Any], work: Mapping[str, int] | None) -> None:
        self._work = dict.fromkeys(tasks, 1) if work is None else work
        self._has_rate, self._n_tasks = work is not None, len(tasks)
        self._total = sum(self._work[name] for name in tasks)
        self._done = self._n_done = 0
        self._bar, self._began = Bar(what), monotonic()

    def __enter__(self) -> Callable[[str], None]:
        return self._tell

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__()

    def _tell(self, name: str) -> None:
        self._done += self._work[name]
        self._n_done += 1
        note = f"{self._n_done:,} of {self._n_tasks:,} shards"
        if self._has_rate:
            rate = self._done / max(monotonic() - self._began, 1e-9)
            note += f", {in_words(rate)} pairs a second"
        self._bar(self._done, self._total, note)


def in_words(number: float) -> str:
    """A large number in thousands, millions, billions (G) or more."""
    power = next((power for power in POWERS if number >= power), 1)
    return f"{number / power:.3g}{' ' + POWERS[power] if power > 1 else ''}"


def submitted(
    executor: Executor, function: Callable[[T], R], tasks: Mapping[str, T]
) -> Iterator[tuple[str, R | TaskLostError]]:
    """Results by name as they finish; a task is tried again if its worker was lost.

    If a task is lost for good, its result is the error that says why.  If the executor itself is
    lost, so are all tasks that are not done.
    """
    waiting: dict[Future[R], str] = {}
    finished: SimpleQueue[Future[R]] = SimpleQueue()
    attempts = dict.fromkeys(tasks, 0)

    def submit(name: str) -> None:
        attempts[name] += 1
        try:
            future = executor.submit(_call, bittern.__version__, function, tasks[name])
        except Exception as error:
            attempts[name] = 0  # it was not sent
            _check_cluster(executor)
            raise ConnectionError(_reason(error)) from error
        waiting[future] = name
        future.add_done_callback(finished.put)

    try:
        for name in tasks:
            submit(name)
        while waiting:
            done = _next(finished, executor)
            name = waiting.pop(done)
            try:
                result = done.result()
            except BitternError:
                raise
            except BrokenExecutor:
                waiting[done] = name
                raise
            except (OSError, EOFError, CancelledError) as error:
                if attempts[name] == ATTEMPTS:
                    yield name, TaskLostError(_reason(error))
                else:
                    _wait_for_cluster(executor)
                    submit(name)
            except Exception as error:
                yield name, TaskLostError(_reason(error))
            else:
                yield name, result
    except BitternError:
        raise
    except (BrokenExecutor, RuntimeError, OSError) as error:  # no task can be sent any more
        lost = TaskLostError(_reason(error))
        left = [*waiting.values(), *(name for name, n in attempts.items() if n == 0)]
        for name in left:
            yield name, lost
    finally:
        for future in waiting:
            future.cancel()


def _next(finished: SimpleQueue[Future[R]], executor: Executor) -> Future[R]:
    """The next future that is done; an error if the cluster that should finish it has gone."""
    while True:
        try:
            return finished.get(timeout=GLANCE)
        except Empty:
            _check_cluster(executor)


def _check_cluster(executor: Executor) -> None:
    """Raise an error if a Dask client has given up its scheduler; other executors report their end.

    A client that has lost its scheduler first tries to find it again for a while.
    """
    client = getattr(executor, "_client", None)
    if client is not None and client.status in ("closed", "closing"):
        raise ConnectionError("the Dask scheduler is gone") from None


def _wait_for_cluster(executor: Executor) -> None:
    """Wait while a Dask client looks for a scheduler that it lost: what it is sent, it cancels."""
    client, end = getattr(executor, "_client", None), monotonic() + PATIENCE
    while client is not None and client.status == "connecting" and monotonic() < end:
        sleep(0.05)
    _check_cluster(executor)


def _call(version: str, function: Callable[[T], R], task: T) -> R:
    """Run a task where it was sent to, if the same version is installed there."""
    if version != bittern.__version__:
        raise BitternError(
            f"a worker has bittern {bittern.__version__}, but {version} sent it a task; install "
            "the same version on all machines."
        )
    return function(task)


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _lost_shard(name: str, error: TaskLostError) -> BitternError:
    return BitternError(
        f"shard {name}: its task failed ({error}); finished shards are kept if a folder for them "
        "was given (partial=…), so the same call goes on from there."
    )
