"""The service under load: many clients, writes among the searches, one worker killed meanwhile.

    python benchmarks/serve.py [--items 1e6] [--seconds 60] [--clients 50] [--workers 2]
        [--rate 200] [--milvus 1e5] [--no-kill] [--write FILE.md]

Starts ``bittern serve`` on generated, clustered codes of 64 bits, at 127.0.0.1.  One request in
twenty writes.  Half-way, one worker is killed.  Then every answer is compared with an exact index
and with the writes that were acknowledged before it was asked for, and every acknowledged write is
looked up in the collection's file.  With ``--rate 0`` clients ask again as soon as they are
answered; otherwise requests are due at random moments, and waiting for a turn counts as latency.

Processor time is that of the server's processes, so that other work on the machine does not count.
Milvus Lite answers the same queries, of as many clients, without the writes; ``--milvus 0`` leaves
it out.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import psutil
from duplicates import clustered
from results import Section, Target
from serve_load import Asked, K, Load, ask_all

import bittern as bt
from bittern import store
from bittern.kernels import small

N_QUERIES, N_LATE = 2000, 100_000
P50, P99 = 20.0, 100.0  # ms


def main() -> None:
    """Measure, check and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=float, default=1e6)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rate", type=float, default=200, help="requests a second; 0: at once")
    parser.add_argument("--milvus", type=float, default=1e5, help="items for Milvus Lite")
    parser.add_argument("--no-kill", action="store_true")
    parser.add_argument("--write", type=Path, help="also write the table into this file")
    options = parser.parse_args()
    small.use_kernels()
    codes = clustered(int(options.items) + N_QUERIES, 64, 8)
    database, queries = codes[N_QUERIES:], codes[:N_QUERIES]
    section = Section(
        f"{len(database):,} codes of 64 bits, {options.clients} clients, k = {K}, "
        f"{options.rate:g} requests a second, {options.seconds:g} s",
        ("server", "requests", "p50 ms", "p90 ms", "p99 ms", "worst ms", "CPU ms per request"),
    )
    with tempfile.TemporaryDirectory() as folder:
        good = measure_service(Path(folder), database, queries, options, section)
        print(section.text(), flush=True)
        if options.milvus:
            some = database[: int(options.milvus)]
            measure_milvus(Path(folder), some, queries, options, section)
            print(f"\n{section.text()}")
    if options.write:
        Section.write(options.write, "serve", "python benchmarks/serve.py", [section])
    sys.exit(0 if good else 1)


def measure_service(
    folder: Path, database: bt.Codes, queries: bt.Codes, options: argparse.Namespace, out: Section
) -> bool:
    """Load the service, check what it answered and stored; whether all was right."""
    path = folder / "served.bittern"
    with store.create(path, n_bits=64) as made:
        made.add(database, metadata={"number": np.arange(len(database))})
    for name in ("first start", "next start"):
        with _served(path, options.workers) as server:
            out.note(f"{name}: answers after {server.seconds:.2f} s, {server.cpu():.2f} s of CPU.")
            if name == "first start":
                continue
            server.wait_for_all(options.workers)
            load = Load(_hex(queries), _hex(_late_codes(queries)))
            before = server.cpu()
            if not options.no_kill:
                threading.Timer(options.seconds / 2, server.kill_a_worker).start()
            asyncio.run(ask_all(load, server.port, options.clients, options.seconds, options.rate))
            spent = server.cpu() - before
    n = sum(map(len, load.latencies.values()))
    for kind, latencies in load.latencies.items():
        cost = f"{1e3 * spent / n:.2f}" if kind == "search" else "(together)"
        times = 1e3 * np.array(latencies or [0.0])
        p50, p90, p99 = np.percentile(times, (50, 90, 99))
        bounds = (Target(p50, at_most=P50), p90, Target(p99, at_most=P99))
        shown = bounds if kind == "search" else (p50, p90, p99)
        out.row(f"bittern, {kind}", f"{len(latencies):,}", *shown, times.max(), cost)
    out.note(first_page(path))
    wrong, lost = wrong_answers(load, database, queries), lost_writes(load, path, database)
    out.note(
        f"{wrong} wrong answers of {len(load.asked):,}, {lost} lost writes of "
        f"{len(load.late):,} added; {load.n_broken} broken connections, statuses {load.statuses}."
    )
    return wrong == lost == 0


def first_page(path: Path) -> str:
    """How long the explorer takes from its start to its first page, with what the page asks for."""
    command = [sys.executable, "-m", "bittern", "explore", str(path), "--port", "0", "--no-browser"]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().partition("Open ")[2].split()[0].rstrip("/")
        for asked in ("/search", "/view/info", "/items?size=24"):
            with urlopen(address + asked) as answer:
                answer.read()
        seconds, times = time.perf_counter() - begin, psutil.Process(process.pid).cpu_times()
        process.send_signal(signal.SIGINT)
    spent = times.user + times.system
    return f"bittern explore: its first page after {seconds:.2f} s, {spent:.2f} s of CPU."


class _served:
    """``bittern serve`` in processes of its own."""

    def __init__(self, path: Path, workers: int) -> None:
        self._command = [sys.executable, "-m", "bittern", "serve", str(path), "--port", "0"]
        self._command += ["--workers", str(workers)]
        self._gone = 0.0

    def __enter__(self) -> _served:
        begin = time.perf_counter()
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        self.port = int(line.partition("http://127.0.0.1:")[2].split()[0])
        one = Load(["0" * 16], [])
        asyncio.run(ask_all(one, self.port, 1, 0.01, 0))
        self.seconds = time.perf_counter() - begin
        self._root = psutil.Process(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        if self._process.wait(300) != 0:
            raise SystemExit("The server did not end well.")

    def wait_for_all(self, workers: int) -> None:
        """Wait until every worker listens, and has loaded its compiled code."""
        while True:
            there = self._root.children()
            n = sum(any(c.status == "LISTEN" for c in one.net_connections()) for one in there)
            if n == workers:
                break
            time.sleep(0.2)
        time.sleep(2.0)

    def cpu(self) -> float:
        """Processor time of all its processes, in seconds."""
        times = [one.cpu_times() for one in (self._root, *self._root.children())]
        return sum(time.user + time.system for time in times) + self._gone

    def kill_a_worker(self) -> None:
        """Kill the last process that was started."""
        child = self._root.children()[-1]
        times = child.cpu_times()
        self._gone += times.user + times.system
        child.send_signal(signal.SIGKILL)


def measure_milvus(
    folder: Path, database: bt.Codes, queries: bt.Codes, options: argparse.Namespace, out: Section
) -> None:
    """The same queries to Milvus Lite, each client in a thread."""
    from pymilvus import MilvusClient

    before = {one.pid for one in psutil.Process().children()}
    place = f"milvus://{folder}/lite.db?collection=served"
    with store.create(place, n_bits=64) as made:
        made.add(database)
    client = MilvusClient(f"{folder}/lite.db")
    rows, latencies = queries.to_packed("little"), []
    how = {"limit": K, "search_params": {"metric_type": "HAMMING"}}
    client.search("served", [rows[0].tobytes()], **how)  # imports what threads cannot

    def ask(number: int) -> None:
        rng = np.random.default_rng(number)
        due, until = time.perf_counter(), time.perf_counter() + options.seconds
        pause = options.clients / options.rate if options.rate else 0.0
        due += rng.random() * pause
        while due < until:
            time.sleep(max(0.0, due - time.perf_counter()))
            begin = due if pause else time.perf_counter()
            row = rows[rng.integers(len(rows))].tobytes()
            client.search("served", [row], **how)
            latencies.append(time.perf_counter() - begin)
            due = due + rng.exponential(pause) if pause else time.perf_counter()

    servers = [one for one in psutil.Process().children() if one.pid not in before]
    begin = _cpu(servers)
    with ThreadPoolExecutor(options.clients) as pool:
        list(pool.map(ask, range(options.clients)))
    spent = _cpu(servers) - begin
    times = 1e3 * np.array(latencies)
    p50, p90, p99 = np.percentile(times, (50, 90, 99))
    name = f"Milvus Lite, search of {len(database):,}"
    cost = f"{1e3 * spent / len(times):.2f}"
    out.row(name, f"{len(times):,}", p50, p90, p99, times.max(), cost)


def _cpu(processes: list[psutil.Process]) -> float:
    times = [one.cpu_times() for one in processes]
    return sum(time.user + time.system for time in times)


def wrong_answers(load: Load, database: bt.Codes, queries: bt.Codes) -> int:
    """Answers that no order of the writes during them explains."""
    index = bt.MultiIndex(database)
    hits = index.search(queries, K)
    late = {one.id: one for one in load.late}
    words = {one.id: _words(one.code) for one in load.late}

    def distance(query: int, id_: int) -> int | None:
        if id_ < len(database):
            word = int(database.words[id_, 0])
        elif id_ in words:
            word = words[id_]
        else:
            return None  # of a write that was not acknowledged
        return (int(queries.words[query, 0]) ^ word).bit_count()

    def is_wrong(one: Asked) -> bool:
        ids, apart = [id_ for id_, _ in one.hits], [far for _, far in one.hits]
        if len(set(ids)) != K or apart != sorted(apart):
            return True
        for id_, far in one.hits:
            true = distance(one.query, id_)
            if true != far and not (true is None and load.unsure):
                return True
            if id_ in late and late[id_].sent > one.answered:
                return True
            if id_ in late and late[id_].deleted < one.sent:
                return True
        nearer = [i for i, far in zip(*hits[one.query], strict=True) if far < apart[-1]]
        nearer += [
            id_
            for id_, item in late.items()
            if item.added < one.sent
            and item.delete_sent > one.answered
            and (distance(one.query, id_) or 0) < apart[-1]
        ]
        return not set(nearer) <= set(ids)

    return _count(is_wrong, load.asked)


def _count(is_wrong: Callable[[Asked], bool], asked: list[Asked]) -> int:
    return sum(map(is_wrong, asked))


def lost_writes(load: Load, path: Path, database: bt.Codes) -> int:
    """Acknowledged writes that the file does not have."""
    with store.open(path, read_only=True) as opened:
        ids = set(opened.ids.tolist())
        kept = [one for one in load.late if one.delete_sent == np.inf]
        gone = [one for one in load.late if one.deleted < np.inf]
        lost = sum(one.id not in ids for one in kept) + sum(one.id in ids for one in gone)
        there = [one for one in kept if one.id in ids]
        stored = opened.get([one.id for one in there]).codes
        lost += sum(
            int(w) != _words(one.code) for w, one in zip(stored.words[:, 0], there, strict=True)
        )
        least = len(database) + len(there)
        return lost + max(0, least - len(ids))


def _late_codes(queries: bt.Codes) -> bt.Codes:
    """Codes to add, near queries, so that answers depend on them; all different."""
    rng = np.random.default_rng(1)
    words = queries.words[rng.integers(len(queries), size=N_LATE)].copy()
    for _ in range(4):
        words[:, 0] ^= np.uint64(1) << rng.integers(64, size=N_LATE).astype(np.uint64)
    return bt.Codes(np.unique(words, axis=0), 64)


def _hex(codes: bt.Codes) -> list[str]:
    return [row.tobytes().hex() for row in codes.to_packed()]


def _words(code: str) -> int:
    packed = np.frombuffer(bytes.fromhex(code), np.uint8)[None]
    return int(bt.Codes.from_packed(packed, 64).words[0, 0])


if __name__ == "__main__":
    main()
