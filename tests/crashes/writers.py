"""What writes: how to begin it, and what must be there after it was ended.

A writer works in a folder that was prepared once and is copied for each trial.  It is a command of
``bittern``, or a function of this file.  A new writer is one more class in WRITERS.
"""

# ruff: noqa: D102  (what the methods do is said once, in Writer)

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from children import Forked, Started

import bittern as bt

BATCH, BITS = 50, 64
PATIENCE = 60  # seconds that a writer has to end after Ctrl-C, times the load


def patience():
    """How many seconds to wait on this machine as it is now."""
    return PATIENCE * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Writer(ABC):
    """Something that writes."""

    name = ""
    can_fork = True  # whether it may begin in a process that has imported everything already

    def prepare(self, folder):  # noqa: B027  (nothing, unless it needs something)
        """Make the inputs."""

    @abstractmethod
    def words(self, folder):
        """The words after ``bittern``; or ``write``, the name of this writer and the folder."""

    @abstractmethod
    def check(self, folder, said, begin):
        """What is wrong after it was ended; ``said`` are the words that it had printed.

        ``begin`` begins a command again, as this one was begun.
        """


def copied(template, folder):
    """Copy a prepared folder, and note that its collection is as we left it."""
    from bittern.store import soundness

    shutil.copytree(template, folder, dirs_exist_ok=True)
    if (folder / "c.bittern").exists():
        soundness.note(folder / "c.bittern")


def begin_new(words, folder):
    """Begin a command in a new Python."""
    program = (
        [str(Path(__file__).with_name("crash.py"))] if words[0] == "write" else ["-m", "bittern"]
    )
    return Started([sys.executable, *program, *map(str, words)], folder)


def begin_forked(words, folder):
    """Begin it in a copy of a process that has imported everything."""
    return Forked(run_words, [str(word) for word in words], folder)


def run_words(words):
    """Do what the words say, in this process."""
    if words[0] == "write":
        WRITERS[words[1]].write(Path(words[2]))
        return
    sys.argv = ["bittern", *words]
    from bittern.__main__ import main

    main()


def batch(number):
    """The codes of a batch, which its number decides."""
    rng = np.random.default_rng(number)
    return bt.Codes.from_bits(rng.random((BATCH, BITS)) < 0.5)


def opened(folder):
    """The collection, whose log is written to its file often, so that kills hit that too."""
    collection = bt.store.open(folder / "c.bittern")
    collection._file._longest_log = 10_000
    return collection


def acknowledge(number):
    """Say that a batch was written."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def exactness(collection, expected):
    """What differs from the expected codes by id, and from brute force."""
    ids = collection.ids
    if sorted(ids.tolist()) != sorted(expected):
        return [f"{len(ids)} items instead of {len(expected)}"]
    if not len(ids):
        return []
    wanted = bt.Codes.concatenate([expected[i] for i in ids.tolist()])
    problems = [] if collection.get(ids).codes == wanted else ["codes differ"]
    queries = wanted[:3]
    found = collection.search(queries, k=5)
    far = np.unpackbits((queries.words[:, None] ^ wanted.words[None]).view(np.uint8), axis=-1).sum(
        axis=-1
    )
    if not np.array_equal(found.distances, np.sort(far, axis=1)[:, : found.distances.shape[1]]):
        problems.append("a search differs from brute force")
    return problems


class Adding(Writer):
    """Batches added to a collection."""

    name, n = "add", 12

    def prepare(self, folder):
        bt.store.create(folder / "c.bittern", n_bits=BITS).close()

    def words(self, folder):
        return ["write", self.name, folder]

    def write(self, folder):
        collection = opened(folder)
        for i in range(self.n):
            collection.add(batch(i), metadata={"batch": [i] * BATCH})
            acknowledge(i)

    def check(self, folder, said, begin):
        with bt.store.open(folder / "c.bittern", read_only=True) as found:
            done, rest = divmod(len(found), BATCH)
            if rest or not len(said) <= done <= len(said) + 1:
                return [f"{len(found)} items after {len(said)} acknowledged batches"]
            codes = [batch(i) for i in range(done)]
            expected = {i * BATCH + j: codes[i][[j]] for i in range(done) for j in range(BATCH)}
            return exactness(found, expected)


class Deleting(Writer):
    """Batches removed from a collection."""

    name, n = "delete", 12

    def prepare(self, folder):
        with bt.store.create(folder / "c.bittern", n_bits=BITS) as made:
            made.add(bt.Codes.concatenate([batch(i) for i in range(self.n)]))

    def words(self, folder):
        return ["write", self.name, folder]

    def write(self, folder):
        collection = opened(folder)
        for i in range(self.n):
            collection.delete(range(i * BATCH, (i + 1) * BATCH))
            acknowledge(i)

    def check(self, folder, said, begin):
        with bt.store.open(folder / "c.bittern", read_only=True) as found:
            left, rest = divmod(len(found), BATCH)
            gone = self.n - left
            if rest or not len(said) <= gone <= len(said) + 1:
                return [f"{len(found)} items after {len(said)} acknowledged removals"]
            codes = {i: batch(i) for i in range(gone, self.n)}
            return exactness(
                found, {i * BATCH + j: c[[j]] for i, c in codes.items() for j in range(BATCH)}
            )


def finish(writer, folder, begin):
    """Run the command to its end, which may say that there is nothing more to do; its seconds."""
    with tempfile.TemporaryDirectory() as place, begin(writer.words(folder), Path(place)) as again:
        started = time.monotonic()
        if not again.wait(20 * patience()):
            raise RuntimeError("does not come to an end")
        took, errors = time.monotonic() - started, again.errors()
        if again.code and not re.search("(exists|database) already", errors):
            raise RuntimeError(f"exit code {again.code}: {errors.strip()[-500:]}")
        return took


class Resumed(Writer):
    """A command that goes on where it was ended; in the end, its result is always the same."""

    def check(self, folder, said, begin):
        finish(self, folder, begin)
        if self.result(folder) != self.reference():
            return ["the resumed result differs from an uninterrupted one"]
        return []

    def reference(self):
        """The result of an uninterrupted command, made once."""
        if not hasattr(self, "_reference"):
            with tempfile.TemporaryDirectory() as place:
                self.prepare(Path(place))
                finish(self, Path(place), begin_new)
                self._reference = self.result(Path(place))
        return self._reference

    @abstractmethod
    def result(self, folder):
        """What the command made, in a form that can be compared."""


def vectors_file(folder, n):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 5
    X = (rng.standard_normal((n, 16)) + y[:, None]).astype(np.float32)
    np.savez(folder / "vectors.npz", vectors=X, labels=y)


class Creating(Resumed):
    """``index create``."""

    name = "create"

    def prepare(self, folder):
        vectors_file(folder, 6_000)

    def words(self, folder):
        return ["index", "create", folder / "c.bittern", "--from", folder / "vectors.npz",
                "--hasher", "lsh", "--bits", 32]  # fmt: skip

    def result(self, folder):
        with bt.store.open(folder / "c.bittern", read_only=True) as found:
            ids = found.ids
            items = found.get(ids[:: max(1, len(ids) // 500)])
            return len(ids), digest(items.codes.words), repr(items.metadata[:50])


class Syncing(Resumed):
    """``index sync`` with a folder of images."""

    name = "sync"

    def prepare(self, folder):
        from PIL import Image

        (folder / "images").mkdir()
        rng = np.random.default_rng(1)
        for i in range(60):
            pixels = rng.integers(0, 255, (24, 24, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "images" / f"{i:03}.png")
            if i == 19:
                self._create(folder)
        (folder / "images" / "003.png").unlink()

    def _create(self, folder):
        words = ["index", "create", "c.bittern", "--from", "images", "--hasher", "phash"]
        subprocess.run(
            [sys.executable, "-m", "bittern", *words], check=True, capture_output=True, cwd=folder
        )

    def words(self, folder):
        return ["index", "sync", folder / "c.bittern", folder / "images"]

    def result(self, folder):
        with bt.store.open(folder / "c.bittern", read_only=True) as found:
            items = found.get(found.ids)
            rows = sorted(
                (row["path"], digest(items.codes[[i]].words))
                for i, row in enumerate(items.metadata)
            )
            return rows


class Encoding(Resumed):
    """``encode``: the file is there and whole, or it is not there."""

    name = "encode"

    def prepare(self, folder):
        vectors_file(folder, 60_000)
        with np.load(folder / "vectors.npz") as file:
            bt.hashing.HASHERS["lsh"](n_bits=64, random_state=0).fit(file["vectors"][:500]).save(
                folder / "model.npz"
            )

    def words(self, folder):
        return ["encode", folder / "model.npz", "--vectors", folder / "vectors.npz",
                "-o", folder / "codes.npz", "--force"]  # fmt: skip

    def check(self, folder, said, begin):
        if (folder / "codes.npz").exists() and self.result(folder) != self.reference():
            return ["half a file of codes"]
        return super().check(folder, said, begin)

    def result(self, folder):
        return digest(bt.Codes.load(folder / "codes.npz").words)


class Sharding(Resumed):
    """``shards create``."""

    name = "shards"

    def prepare(self, folder):
        rng = np.random.default_rng(2)
        bt.Codes.from_bits(rng.random((20_000, 64)) < 0.5).save(folder / "codes.npz")

    def words(self, folder):
        return ["shards", "create", folder / "shards", "--from", folder / "codes.npz",
                "--shard-size", 400]  # fmt: skip

    def result(self, folder):
        found = bt.scale.Shards.open(folder / "shards")
        return found.verify(), digest(np.concatenate([shard.codes.words for shard in found]))


PROTOCOL = """
title = "Crash"
n_bits = [8, 16]
runs = 2
metrics = ["ap"]
[dataset]
name = "arrays"
path = "vectors.npz"
[split]
name = "improved"
sizes = { train = 60, queries = 20, validation_queries = 15, validation_database = 30 }
[[method]]
name = "lsh"
[[method]]
name = "itq"
"""


class Running(Resumed):
    """``run`` with two processes, which are new ones in any case."""

    name, can_fork = "run", False

    def prepare(self, folder):
        vectors_file(folder, 300)
        (folder / "p.toml").write_text(PROTOCOL)

    def words(self, folder):
        return ["run", folder / "p.toml", "--out", folder / "found", "--jobs", 2]

    def result(self, folder):
        from bittern.experiments import Records

        records = Records.read(folder / "found")
        rows = [(r.method, r.n_bits, r.run, repr(r.values["ap"])) for r in records]
        return len(records.missing), sorted(rows)


#: Every writer by its name.
WRITERS = {
    one.name: one
    for one in (Adding(), Deleting(), Creating(), Syncing(), Encoding(), Sharding(), Running())
}


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
