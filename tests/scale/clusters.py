"""A real Dask cluster of separate processes on this machine."""

import os
import re
import subprocess
import sys
import threading
from time import monotonic

from processes import seconds

from bittern.scale.cluster import connect


class Cluster:
    """A scheduler and its workers, started when they are needed, and again if they were stopped."""

    def __init__(self, *worker_options, environment=None):
        self._options = worker_options or ("--nworkers", "2")
        self._environment = environment or {}
        self._processes, self._readers = [], []
        self._address = None

    @property
    def address(self):
        """Where the scheduler listens."""
        if not self._processes or any(process.poll() is not None for process in self._processes):
            self.stop()
            self._start()
        return self._address

    @property
    def scheduler(self):
        """The process of the scheduler."""
        return self._processes[0]

    def ready(self, n=2):
        """The process ids of at least n workers; one that was just killed does not answer."""
        until, found = monotonic() + seconds(60), []
        with connect(self.address) as executor:
            client = executor._client
            while len(found) < n:
                assert monotonic() < until, f"{n} workers did not answer"
                client.wait_for_workers(n, timeout=seconds(60))
                found = list(client.run(os.getpid, on_error="ignore").values())
        return found

    def add_worker(self, *options, environment=None):
        """Start one more worker."""
        self._begin("worker", self._address, *WORKER, *options, environment=environment)

    def stop(self):
        """End all processes."""
        for process in reversed(self._processes):
            process.terminate()
        for process, reader in zip(self._processes, self._readers, strict=True):
            try:
                process.wait(seconds(5))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(seconds(5))
            reader.join(seconds(5))
            process.stderr.close()
        self._processes, self._readers = [], []

    def _start(self):
        words = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        scheduler = self._begin(*words, is_read=False)
        for line in scheduler.stderr:
            if found := re.search(r"Scheduler at:\s+(tcp://127\.0\.0\.1:\d+)", line):
                self._address = found[1]
                break
        self._read(scheduler)
        # The nanny of a worker starts it again when it dies.
        self._begin("worker", self._address, *WORKER, *self._options)

    def _begin(self, *words, is_read=True, environment=None):
        more = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s"}
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | more | self._environment | (environment or {}),
        )
        self._processes.append(process)
        if is_read:
            self._read(process)
        return process

    def _read(self, process):
        """Read what it says for ever: a full pipe would stop it."""
        self._readers.append(threading.Thread(target=process.stderr.read, daemon=True))
        self._readers[-1].start()


WORKER = ("--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
