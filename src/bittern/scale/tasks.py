"""One task for each shard, here or by any executor, with bounded retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from dataclasses import dataclass
from typing import Any, TypeVar

from bittern.errors import BitternError, InputError
from bittern.progress import Bar

T = TypeVar("T")
R = TypeVar("R")
ATTEMPTS = 3  # of a task whose worker was lost


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

    def __call__(
        self, function: Callable[[T], R], tasks: Mapping[str, T], what: str
    ) -> Iterator[tuple[str, R]]:
        """The result of each task by the name of its shard, as they finish."""
        results = (
            ((name, function(task)) for name, task in tasks.items())
            if self.executor is None
            else _submitted(self.executor, function, tasks)
        )
        with Bar(what) as bar:
            for done, (name, result) in enumerate(results, 1):
                yield name, result
                bar(done, len(tasks), f"shard {name}")


def _submitted(
    executor: Executor, function: Callable[[T], R], tasks: Mapping[str, T]
) -> Iterator[tuple[str, R]]:
    """Results as they finish; a task is tried again if its worker was lost."""
    waiting: dict[Future[R], str] = {}
    attempts = dict.fromkeys(tasks, 0)

    def submit(name: str) -> None:
        attempts[name] += 1
        try:
            waiting[executor.submit(function, tasks[name])] = name
        except (BrokenExecutor, RuntimeError) as error:
            raise _lost(name, error) from error

    try:
        for name in tasks:
            submit(name)
        while waiting:
            done = next(as_completed(waiting))
            name = waiting.pop(done)
            try:
                result = done.result()
            except BitternError:
                raise
            except (OSError, EOFError, CancelledError, BrokenExecutor) as error:
                if attempts[name] == ATTEMPTS or isinstance(error, BrokenExecutor):
                    raise _lost(name, error) from error
                submit(name)
            except Exception as error:
                raise _lost(name, error) from error
            else:
                yield name, result
    finally:
        for future in waiting:
            future.cancel()


def _lost(name: str, error: BaseException) -> BitternError:
    reason: Any = str(error).strip().splitlines() or [type(error).__name__]
    return BitternError(
        f"shard {name}: its task failed ({reason[0]}); finished shards are kept if a folder for "
        "them was given (partial=…), so the same call goes on from there."
    )
