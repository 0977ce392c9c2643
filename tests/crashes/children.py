"""Processes that write and are ended: new ones, and copies of one that has imported everything.

Starting Python and importing what a command needs takes most of a second, in which nothing is
written.  So a server forks processes that can begin at once.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path

ENVIRONMENT = {"BITTERN_THREADS": "1", "OMP_NUM_THREADS": "1"}
PRELOADED = ["writers", "numpy", "duckdb", "PIL.Image", "bittern.cli", "bittern.store.building"]
PRELOADED += [
    "pydantic.main",
    "pydantic.type_adapter",
    "typer._adapters",
    "filelock",
    "bittern.__main__",
]
PRELOADED += ["bittern.store.syncing", "bittern.hashing.lsh", "bittern.scale", "bittern.features"]


class Child(ABC):
    """A process in a session of its own, whose output goes to files in a folder."""

    pid = 0
    code = None  # the exit code, when it has ended

    def __init__(self, folder):
        self._said, self._errors = Path(folder, "said"), Path(folder, "errors")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill(group=True)

    @abstractmethod
    def wait(self, seconds):
        """Whether it has ended, now or before so many seconds are over."""

    def kill(self, group=False):
        """Kill its first process, or all."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL) if group else os.kill(self.pid, signal.SIGKILL)

    def interrupt(self):
        """Send Ctrl-C to the whole group, as a terminal does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGINT)

    def said(self):
        """What it printed."""
        return self._said.read_text(errors="replace")

    def errors(self):
        """What it complained of."""
        return self._errors.read_text(errors="replace")


class Started(Child):
    """A new process."""

    def __init__(self, command, folder):
        super().__init__(folder)
        with self._said.open("w") as said, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command, stdout=said, stderr=errors, start_new_session=True,
                env={**os.environ, **ENVIRONMENT},
            )  # fmt: skip
        self.pid = self._process.pid

    def wait(self, seconds):
        """As Child says."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.code = self._process.wait(seconds)
        return self.code is not None


class Forked(Child):
    """A copy of a process that has imported PRELOADED; it calls ``work(words)``."""

    def __init__(self, work, words, folder):
        super().__init__(folder)
        os.environ.update(ENVIRONMENT)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        hears, tells = context.Pipe(duplex=False)
        arguments = work, words, str(self._said), str(self._errors), tells, os.environ.copy()
        self._process = context.Process(target=_begin, args=arguments)
        self._process.start()
        tells.close()
        with contextlib.suppress(EOFError):  # it writes from now on
            hears.recv()
        hears.close()
        self.pid = self._process.pid

    def wait(self, seconds):
        """As Child says."""
        self._process.join(max(0.0, seconds))
        self.code = self._process.exitcode
        return self.code is not None


def _begin(work, words, said, errors, tells, environment):
    """Become like a new process, say that work begins, and do it."""
    os.setsid()
    for name, number in ((said, 1), (errors, 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    os.environ.update(environment)
    code = 0
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tells.send("began")
        tells.close()
        try:
            work(words)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except KeyboardInterrupt:  # perhaps in the line that ends its being raised
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = 130
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def lives(group):
    """Whether a process of the group lives."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def left_processes(group, seconds):
    """Whether processes of the group live on; they have so many seconds to end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not lives(group):
            return []
        time.sleep(0.01)
    os.killpg(group, signal.SIGKILL)
    return ["a process lives on"]
