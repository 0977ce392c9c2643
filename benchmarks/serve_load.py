"""Clients of ``serve.py``: plain sockets on one event loop, so that they cost little themselves."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

K = 10
WRITES = 0.05  # of the requests; half add an item, half delete one that was added


@dataclass
class Asked:
    """One search: its query, its hits, and when it was sent and answered."""

    query: int
    hits: list[tuple[int, int]]
    sent: float
    answered: float


@dataclass
class Late:
    """An added item: when it may have appeared, and disappeared."""

    code: str
    id: int
    sent: float
    added: float
    delete_sent: float = float("inf")
    deleted: float = float("inf")


@dataclass
class Load:
    """What the clients did."""

    queries: list[str]  # hexadecimal
    late_codes: list[str]
    asked: list[Asked] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    latencies: dict[str, list[float]] = field(default_factory=lambda: {"search": [], "write": []})
    statuses: dict[int, int] = field(default_factory=dict)
    n_broken: int = 0  # connections
    unsure: set[str] = field(default_factory=set)  # codes of writes that were not acknowledged


class Client:
    """One client with one connection, which it opens again when it breaks."""

    def __init__(self, load: Load, host: str, port: int, seed: int) -> None:
        self._load, self._host, self._port = load, host, port
        self._rng = random.Random(seed)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, until: float, pause: float) -> None:
        """Ask until then; with a pause, at random moments, late if the last answer was late."""
        due = time.perf_counter() + self._rng.random() * pause
        while due < until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            begin = due if pause else time.perf_counter()  # waiting for our turn counts too
            kind = "write" if self._rng.random() < WRITES else "search"
            if await (self._write() if kind == "write" else self._search()):
                self._load.latencies[kind].append(time.perf_counter() - begin)
            due = due + self._rng.expovariate(1 / pause) if pause else time.perf_counter()

    async def _search(self) -> bool:
        query = self._rng.randrange(len(self._load.queries))
        sent = time.perf_counter()
        answer = await self._post("/search", {"codes": [self._load.queries[query]], "k": K})
        if answer is None:
            return False
        hits = [(hit["id"], hit["distance"]) for hit in answer["results"][0]["hits"]]
        self._load.asked.append(Asked(query, hits, sent, time.perf_counter()))
        return True

    async def _write(self) -> bool:
        known = [one for one in self._load.late[-200:] if one.delete_sent == float("inf")]
        if known and self._rng.random() < 0.5:
            chosen = self._rng.choice(known)
            chosen.delete_sent = time.perf_counter()
            if await self._post("/delete", {"ids": [chosen.id]}) is None:
                self._load.unsure.add(chosen.code)
                return False
            chosen.deleted = time.perf_counter()
            return True
        code, sent = self._load.late_codes.pop(), time.perf_counter()
        answer = await self._post("/add", {"codes": [code], "metadata": [{"label": "late"}]})
        if answer is None:
            self._load.unsure.add(code)
            return False
        self._load.late.append(Late(code, answer["ids"][0], sent, time.perf_counter()))
        return True

    async def _post(self, path: str, value: dict[str, Any]) -> Any:
        """The answer; None if the connection broke or the status is not 200."""
        body = json.dumps(value).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port)
            reader, writer = self._streams
            writer.write(head.encode() + body)
            status, text, is_last = await _read(reader)
            if is_last:
                writer.close()
                self._streams = None
        except (OSError, asyncio.IncompleteReadError):
            self._load.n_broken += 1
            self._streams = None
            await asyncio.sleep(0.05)
            return None
        self._load.statuses[status] = self._load.statuses.get(status, 0) + 1
        return json.loads(text) if status == 200 else None


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """The status and the body of an answer, and whether the server closes the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = head.decode().lower()
    length = int(fields.partition("content-length:")[2].partition("\r\n")[0])
    body = await reader.readexactly(length)
    return int(fields[9:12]), body, "connection: close" in fields


async def ask_all(load: Load, port: int, n_clients: int, seconds: float, rate: float) -> None:
    """Let all clients ask for so long, at ``rate`` requests a second together; 0: at once."""
    clients = [Client(load, "127.0.0.1", port, seed) for seed in range(n_clients)]
    until = time.perf_counter() + seconds
    pause = n_clients / rate if rate else 0.0
    await asyncio.gather(*(client.run(until, pause) for client in clients))
