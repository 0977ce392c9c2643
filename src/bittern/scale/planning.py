"""How long a sharded evaluation takes, and how much memory: a cost model of few constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bittern.checks import check_count
from bittern.codes import MAX_BITS
from bittern.errors import InputError

SIZE = 1_000_000  # items of a shard, unless given
LEVELS = 2  # relevant or not
LABEL = 8  # bytes of the label of an item
PROCESS = 250 << 20  # bytes of a process that has loaded the package, its kernels and Dask
PER_ITEM = 48  # bytes for each item of the shard at work: its order by class and what makes it
PER_CELL = 24  # bytes for each cell of a profile: as counted, in order, and summed
UNITS = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor seconds of one core, for each of what an evaluation consists of."""

    pair: float  # compare a query with a code, for every 64 bits
    item: float  # map, check and group an item
    task: float  # begin and end a task
    cell: float  # make a cell of a profile (of a query, distance and relevance) and add it up
    adding: float  # the part of that for adding up, which one process does for all shards
    message: float  # send a task of a cluster and receive its result, without its bytes
    byte: float  # send a byte of a result to another machine

    @classmethod
    def fitted(cls, measured: Sequence[Measurement], known: Costs) -> Costs:
        """The costs that explain measurements best; their relative errors count, none is negative.

        They need at least four, of different sizes.  One process shows what a pair, an item, a task
        and a cell cost; the others are those of ``known``.
        """
        from scipy.optimize import nnls

        if len(measured) < 4:
            raise InputError(f"Costs: needs at least 4 measurements, got {len(measured)}.")
        seconds = np.array([one.seconds for one in measured])
        work = np.array([one.work for one in measured], np.float64)
        scale = work.max(axis=0)
        found, _ = nnls(work / scale / seconds[:, None], np.ones(len(seconds)))
        pair, item, task, cell = (found / scale).tolist()
        return replace(known, pair=pair, item=item, task=task, cell=cell)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Processor seconds that one thread took to evaluate queries against shards, with classes."""

    n: int
    n_bits: int
    n_queries: int
    shard_size: int
    seconds: float = math.nan

    @property
    def work(self) -> tuple[float, float, float, float]:
        """How many pairs of words, items, tasks and cells it has."""
        n_tasks = -(-self.n // self.shard_size)
        words = -(-self.n_bits // 64)
        return (
            float(self.n) * self.n_queries * words,
            self.n * (words + LABEL / 8) / 2,  # an item of 64 bits and its label count as one
            n_tasks,
            float(n_tasks) * self.n_queries * (self.n_bits + 1) * LEVELS,
        )


# Fitted by ``python benchmarks/scale.py --only evaluate,plan``; adding and messages are those of
# ``--only dask`` (see docs/scale.md).  Only the cost of a byte is an estimate, 500 MB a second,
# since there was no other machine.
COSTS = Costs(
    pair=1.28e-10,
    item=1.38e-8,
    task=7.76e-4,
    cell=1.41e-8,
    adding=1.9e-9,
    message=2.1e-3,
    byte=2e-9,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What an evaluation of a sharded database will need; ``str`` says it in words."""

    n: int
    n_bits: int
    n_queries: int
    n_shards: int
    n_workers: int
    processor_seconds: float  # of all cores together
    seconds: float
    driver_seconds: float  # of the process that sends tasks and adds up their results
    disk: int  # bytes of all shards: codes and labels
    worker_memory: int  # bytes of one process, above the files it maps
    driver_memory: int
    transfer: int  # bytes of all results

    def __str__(self) -> str:
        pairs = float(self.n) * self.n_queries
        rows = {
            "pairs": f"{pairs:.3g} ({self.n_queries:,} queries × {self.n:,} items)",
            "shards": f"{self.n_shards:,}, on {self.n_workers:,} core{'s' * (self.n_workers != 1)}",
            "time": _duration(self.seconds),
            "processor": f"{_duration(self.processor_seconds)} of one core in all",
            "disk": _size(self.disk),
            "memory": f"{_size(self.worker_memory)} for each core, above mapped files; "
            f"{_size(self.driver_memory)} where results are added up",
            "results": f"{_size(self.transfer)} are sent, and " * (self.transfer > 0)
            + f"added up in {_duration(self.driver_seconds)}",
        }
        return "\n".join(f"{name:<9}  {value}" for name, value in rows.items())


def plan(
    n: int,
    n_bits: int,
    n_queries: int,
    machines: int = 1,
    *,
    cores: int = 1,
    shard_size: int = SIZE,
    costs: Costs = COSTS,
) -> Plan:
    """How long it takes to evaluate queries with classes against n codes in shards, and memory.

    ``cores`` are those of each machine, every one of which works on one shard at a time.  The time
    is that of the last of them, or that of adding up the results, if this is longer.  ``costs`` are
    those of the machine of ``docs/scale.md``, unless given.
    """
    check_count(n, "plan: n")
    check_count(n_bits, "plan: n_bits", most=MAX_BITS)
    check_count(n_queries, "plan: n_queries")
    size = min(check_count(shard_size, "plan: shard_size"), n)
    workers = check_count(machines, "plan: machines") * check_count(cores, "plan: cores")
    pairs, items, n_tasks, cells = Measurement(n, n_bits, n_queries, size).work
    n_shards, is_cluster = int(n_tasks), machines > 1
    transfer = 4 * int(cells) if is_cluster else 0
    of_tasks = (
        pairs * costs.pair
        + items * costs.item
        + n_shards * costs.task
        + cells * (costs.cell - costs.adding)
    )
    driver = cells * costs.adding + n_shards * costs.message * is_cluster + transfer * costs.byte
    waves = -(-n_shards // workers) / n_shards  # the share of all tasks that one core does
    words = -(-n_bits // 64)
    profile = n_queries * (n_bits + 1) * LEVELS
    return Plan(
        n=n,
        n_bits=n_bits,
        n_queries=n_queries,
        n_shards=n_shards,
        n_workers=workers,
        processor_seconds=of_tasks + driver,
        seconds=max(of_tasks * waves, driver) if workers > 1 else of_tasks + driver,
        driver_seconds=driver,
        disk=n * (8 * words + LABEL),
        worker_memory=PROCESS + PER_ITEM * size + PER_CELL * profile + 8 * words * n_queries,
        driver_memory=PROCESS + PER_CELL * profile + 8 * profile * _waiting(n_shards, workers),
        transfer=transfer,
    )


def _waiting(n_shards: int, workers: int) -> int:
    """How many profiles may wait for their neighbour at once, while they are added as a tree."""
    return min(n_shards, workers + n_shards.bit_length())


def _duration(seconds: float) -> str:
    size, unit = next((pair for pair in UNITS if seconds >= 2 * pair[0]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def _size(n_bytes: float) -> str:
    power = next((p for p in (4, 3, 2, 1) if n_bytes >= 1000**p), 0)
    return f"{n_bytes / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
