"""The service as a writer: items are added and deleted over HTTP while its processes are ended.

A trial ends the writing process, a worker, the first process, or all of them, by ``kill -9``, or
all of them by Ctrl-C, while a client writes.  What the client was told is there must be there, and
what it was told is gone must be gone; a write without an answer is there whole or not at all, and
that does not change any more.  Nothing is there that was not sent.  If the service should live on,
it must take writes again; otherwise it is started again.
"""

import contextlib
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import psutil
from children import Started, left_processes
from writers import BITS, patience

import bittern as bt

TARGETS = ("writer", "worker", "first process", "all", "Ctrl-C")
LIVES_ON = ("writer", "worker")  # after these, another process takes over
LONGEST = 1.0  # seconds of writing before a process is ended
FEWEST = 300  # items that are not deleted


class Service:
    """``bittern serve`` with two workers, and its address."""

    def __init__(self, path):
        self.folder = Path(tempfile.mkdtemp())
        words = ["serve", str(path), "--port", "0", "--workers", "2"]
        self.child = Started([sys.executable, "-m", "bittern", *words], self.folder)
        end = time.monotonic() + 5 * patience()
        while not (found := re.search(r"http://\S+", self.child.said())):
            if self.child.wait(0.05) or time.monotonic() > end:
                raise RuntimeError(f"the service does not start: {self.child.errors()[-500:]}")
        self.url = found[0]

    def process(self, target):
        """The number of a process: of the one that has the collection open, or of a worker."""
        for child in psutil.Process(self.child.pid).children():
            with contextlib.suppress(psutil.Error):
                if "resource_tracker" not in " ".join(child.cmdline()):
                    owns = any(file.path.endswith(".bittern") for file in child.open_files())
                    if owns == (target == "writer"):
                        return child
        return None

    def memory(self):
        """Bytes of all its processes that they share with nobody."""
        first = psutil.Process(self.child.pid)
        sizes = []
        for process in [first, *first.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                sizes.append(process.memory_full_info().uss)
        return sum(sizes)

    def close(self):
        """End it as Ctrl-C does, or by force."""
        self.child.interrupt()
        if not self.child.wait(patience()):
            self.child.kill(group=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class Ledger:
    """What must be there, and what may be: writes whose answer never came."""

    def __init__(self):
        self.there, self.added, self.deleted = {}, [], []  # {id: code}; such parts of it
        self.next_id = 0

    def problems(self, found):
        """What is wrong with what was found, ``{id: code}``; afterwards nothing is open."""
        wrong = []
        for part in self.added:
            n = sum(found.get(i) == code for i, code in part.items())
            if n not in (0, len(part)):
                wrong.append(f"{n} of the {len(part)} items of an unanswered write are there")
            self.there |= part if n else {}
        for part in self.deleted:
            n = sum(i not in found for i in part)
            if n not in (0, len(part)):
                wrong.append(f"{n} of {len(part)} unanswered deletions were made")
            for i in part if n else ():
                del self.there[i]
        lost, strange = self.there.keys() - found.keys(), found.keys() - self.there.keys()
        wrong += [f"{len(lost)} acknowledged items are lost"] if lost else []
        wrong += [f"{len(strange)} items are there that should not"] if strange else []
        both = self.there.keys() & found.keys()
        wrong += ["codes differ"] if any(self.there[i] != found[i] for i in both) else []
        self.there, self.added, self.deleted = found, [], []
        return wrong


class Client(threading.Thread):
    """Adds and deletes, one request after another, until it is told to stop."""

    def __init__(self, url, ledger, rng):
        super().__init__(daemon=True)
        self._url, self._ledger, self._rng = url, ledger, rng
        self.is_over, self.problems, self.n_answers = threading.Event(), [], 0

    def run(self):
        """Write."""
        with httpx.Client(base_url=self._url, timeout=5 * patience()) as http:
            while not self.is_over.is_set():
                if len(self._ledger.there) > FEWEST and self._rng.random() < 0.5:
                    self._remove(http)
                else:
                    self._send(http)

    def _send(self, http):
        n, ledger = self._rng.randint(1, 20), self._ledger
        ids = list(range(ledger.next_id, ledger.next_id + n))
        ledger.next_id += n
        part = {i: f"{self._rng.getrandbits(BITS):0{BITS // 4}x}" for i in ids}
        if self._ask(http, "/add", {"codes": list(part.values()), "ids": ids}):
            ledger.there |= part
        else:
            ledger.added.append(part)

    def _remove(self, http):
        ledger = self._ledger
        ids = self._rng.sample(sorted(ledger.there), self._rng.randint(1, 20))
        held = {i for part in ledger.deleted for i in part}
        ids = [i for i in ids if i not in held]
        if not ids:
            return
        if self._ask(http, "/delete", {"ids": ids}):
            for i in ids:
                del ledger.there[i]
        else:
            ledger.deleted.append(ids)

    def _ask(self, http, at, body):
        """Whether the answer came."""
        try:
            answer = http.post(at, json=body)
        except httpx.TransportError:
            self.is_over.wait(0.02)
            return False
        if answer.status_code == 200:
            self.n_answers += 1
            return True
        if answer.status_code != 503:
            self.problems.append(f"{at} is answered by {answer.status_code}: {answer.text[:200]}")
        return False


class Serving:
    """Trials of the service; its collection lives through all of them."""

    name = "serve"

    def __init__(self, seed):
        self._rng, self._ledger = random.Random(f"serve {seed}"), Ledger()
        self._folder, self._service = Path(tempfile.mkdtemp()), None
        self._path = self._folder / "c.bittern"
        bt.store.create(self._path, n_bits=BITS).close()

    def trial(self, number):
        """As ``crash.Attack.trial``."""
        del number
        if self._service is None:
            self._service = Service(self._path)
        target = self._rng.choice(TARGETS)
        client = Client(self._service.url, self._ledger, self._rng)
        client.start()
        time.sleep(self._rng.uniform(0.02, LONGEST))
        started = time.monotonic()
        problems = self._end(target)
        if target in LIVES_ON:
            problems += self._is_answered(client)
        took = time.monotonic() - started
        client.is_over.set()
        client.join(10 * patience())
        problems += client.problems + (["a request has no end"] if client.is_alive() else [])
        problems += self._checked(target)
        return True, "interrupted" if target == "Ctrl-C" else "killed", took, problems

    def close(self):
        """End the service and remove its files."""
        if self._service is not None:
            self._service.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, target):
        child = self._service.child
        if target in LIVES_ON:
            process = self._service.process(target)
            if process is None:
                return [f"there is no {target}"]
            process.kill()
            return []
        if target == "Ctrl-C":
            child.interrupt()
        else:
            child.kill(group=target == "all")
        return [] if child.wait(patience()) else ["did not end after Ctrl-C"]

    def _is_answered(self, client):
        """Wait until a write that began after the kill was answered."""
        end, before = time.monotonic() + 5 * patience(), client.n_answers
        while client.n_answers < before + 2:  # one of them may have begun before
            if time.monotonic() > end:
                return ["does not take writes again"]
            time.sleep(0.01)
        return []

    def _checked(self, target):
        if target in LIVES_ON:
            return self._ledger.problems(listed(self._service.url)) + self._search()
        problems = left_processes(self._service.child.pid, patience() / 4)
        errors = self._service.child.errors()
        problems += ["a traceback: " + errors[-400:]] if "Traceback" in errors else []
        self._service.close()
        self._service = None
        with bt.store.open(self._path, read_only=True) as collection:
            ids = collection.ids
            codes = [row.tobytes().hex() for row in collection.get(ids).codes.to_packed()]
        return problems + self._ledger.problems(dict(zip(ids.tolist(), codes, strict=True)))

    def _search(self):
        """Compare a search with brute force."""
        there = list(self._ledger.there.values())
        query = self._rng.choice(there)
        far = sorted((int(query, 16) ^ int(code, 16)).bit_count() for code in there)[:10]
        answer = httpx.post(
            f"{self._service.url}/search", json={"codes": [query], "k": 10}, timeout=5 * patience()
        )
        hits = [hit["distance"] for hit in answer.json()["results"][0]["hits"]]
        return [] if hits == far else ["a search differs from brute force"]


def listed(url):
    """Every item that the service has, ``{id: code}``."""
    found, total = {}, 1
    with httpx.Client(base_url=url, timeout=5 * patience()) as http:
        while len(found) < total:
            answer = http.get("/items", params={"start": len(found), "size": 1000}).json()
            total = answer["total"]
            found |= {item["id"]: item["code"] for item in answer["items"]}
            if not answer["items"]:
                break
    return found


class ServedCollection:
    """The service for a soak: the methods of ``soak.Subject`` over HTTP."""

    def __init__(self, folder):
        self._path = Path(folder, "soak.bittern")
        bt.store.create(self._path, n_bits=BITS).close()
        self._start()

    def _start(self):
        self._service = Service(self._path)
        self._http = httpx.Client(base_url=self._service.url, timeout=5 * patience())

    def add(self, codes):
        """Add codes; their ids."""
        body = {"codes": _hex(codes), "metadata": [{"n": i} for i in range(len(codes))]}
        return self._answer("POST", "/add", json=body)["ids"]

    def delete(self, ids):
        """Remove items."""
        self._answer("POST", "/delete", json={"ids": np.asarray(ids).tolist()})

    def search(self, queries, k):
        """The distances of the nearest."""
        found = self._answer("POST", "/search", json={"codes": _hex(queries), "k": k})["results"]
        return np.array([[hit["distance"] for hit in one["hits"]] for one in found])

    def count(self):
        """Items that a condition holds for."""
        return self._answer("GET", "/items", params={"where": "n >= 0", "size": 1})["total"]

    def reopen(self):
        """A service stays as it is."""

    def close(self):
        """End the service."""
        self._http.close()
        self._service.close()

    def memory(self):
        """Bytes of its processes."""
        return self._service.memory()

    def size(self):
        """Bytes on disk."""
        return sum(p.stat().st_size for p in self._path.parent.rglob("*") if p.is_file())

    def _answer(self, method, at, **more):
        answer = self._http.request(method, at, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()


def _hex(codes):
    return [row.tobytes().hex() for row in codes.to_packed()]
