"""Kill and interrupt what writes at random moments, and check that nothing was lost or is left.

    scripts/crash-test --trials 20                 every writer in turn
    scripts/crash-test --trials 100 --writer add

Each trial starts a writer in a session of its own, ends it by ``kill -9`` of its first process or
by Ctrl-C to the whole group, and checks: every item whose writing was acknowledged is there, and no
half of one; searches equal brute force; a resumed command gives what an uninterrupted one gives; no
process and no temporary file is left; Ctrl-C prints no traceback.  A new writer is one more class
in WRITERS.
"""

# ruff: noqa: D102  (what the methods do is said once, in Writer)

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path

import numpy as np

import bittern as bt

HERE = Path(__file__).resolve().parent
BATCH, BITS = 50, 64
PATIENCE = 60  # seconds that a writer has to end after Ctrl-C, times the load
OUTCOMES = ("trials", "killed", "interrupted", "ended before", "problems", "slowest end (s)")


def patience():
    """How many seconds to wait on this machine as it is now."""
    return PATIENCE * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Writer(ABC):
    """Something that writes; ``prepare`` makes what it needs in a folder."""

    name = ""

    def prepare(self, folder):  # noqa: B027  (nothing, unless it needs something)
        """Make the inputs."""

    @abstractmethod
    def command(self, folder):
        """The words that start it."""

    @abstractmethod
    def check(self, folder, said):
        """What is wrong after it was ended; ``said`` are the lines that it had printed."""

    def finish(self, folder):
        """Run the same command to its end; it may say that there is nothing more to do."""
        command, limit = self.command(folder), 20 * patience()
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        if done.returncode and not re.search("(exists|database) already", done.stderr):
            raise RuntimeError(done.stderr.strip()[-500:])


def bittern(*words):
    return [sys.executable, "-m", "bittern", *map(str, words)]


def python(script, *words):
    return [sys.executable, "-c", textwrap.dedent(script), *map(str, words)]


def batch(number):
    """The codes of a batch, which its number decides."""
    rng = np.random.default_rng(number)
    return bt.Codes.from_bits(rng.random((BATCH, BITS)) < 0.5)


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

    name = "add"

    def prepare(self, folder):
        bt.store.create(folder / "c.bittern", n_bits=BITS).close()

    def command(self, folder):
        script = f"""
            import sys; sys.path.insert(0, {str(HERE)!r})
            import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)
            import bittern as bt
            from crash import batch
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                collection = bt.store.open(sys.argv[1])
                for i in range(60):
                    collection.add(batch(i), metadata={{"batch": [i] * {BATCH}}})
                    print(i, flush=True)
            except KeyboardInterrupt:
                sys.exit(130)
        """
        return python(script, folder / "c.bittern")

    def check(self, folder, said):
        with bt.store.open(folder / "c.bittern", read_only=True) as found:
            done, rest = divmod(len(found), BATCH)
            if rest or not len(said) <= done <= len(said) + 1:
                return [f"{len(found)} items after {len(said)} acknowledged batches"]
            codes = [batch(i) for i in range(done)]
            expected = {i * BATCH + j: codes[i][[j]] for i in range(done) for j in range(BATCH)}
            return exactness(found, expected)


class Deleting(Writer):
    """Batches removed from a collection."""

    name, n = "delete", 40

    def prepare(self, folder):
        with bt.store.create(folder / "c.bittern", n_bits=BITS) as made:
            made.add(bt.Codes.concatenate([batch(i) for i in range(self.n)]))

    def command(self, folder):
        script = f"""
            import sys
            import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)
            import bittern as bt
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                collection = bt.store.open(sys.argv[1])
                for i in range({self.n}):
                    collection.delete(range(i * {BATCH}, (i + 1) * {BATCH}))
                    print(i, flush=True)
            except KeyboardInterrupt:
                sys.exit(130)
        """
        return python(script, folder / "c.bittern")

    def check(self, folder, said):
        with bt.store.open(folder / "c.bittern", read_only=True) as found:
            left, rest = divmod(len(found), BATCH)
            gone = self.n - left
            if rest or not len(said) <= gone <= len(said) + 1:
                return [f"{len(found)} items after {len(said)} acknowledged removals"]
            codes = {i: batch(i) for i in range(gone, self.n)}
            return exactness(
                found, {i * BATCH + j: c[[j]] for i, c in codes.items() for j in range(BATCH)}
            )


class Resumed(Writer):
    """A command that goes on where it was ended; in the end, its result is always the same."""

    def check(self, folder, said):
        self.finish(folder)
        found, reference = self.result(folder), self.reference()
        return (
            [] if found == reference else ["the resumed result differs from an uninterrupted one"]
        )

    def reference(self):
        """The result of an uninterrupted command, made once."""
        if not hasattr(self, "_reference"):
            with tempfile.TemporaryDirectory() as place:
                self.prepare(Path(place))
                self.finish(Path(place))
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
        vectors_file(folder, 30_000)

    def command(self, folder):
        return bittern("index", "create", folder / "c.bittern", "--from", folder / "vectors.npz",
                       "--hasher", "lsh", "--bits", 32)  # fmt: skip

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
        subprocess.run(
            bittern("index", "create", folder / "c.bittern", "--from", folder / "images",
                    "--hasher", "phash"), check=True, capture_output=True,
        )  # fmt: skip

    def command(self, folder):
        return bittern("index", "sync", folder / "c.bittern", folder / "images")

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

    def command(self, folder):
        return bittern("encode", folder / "model.npz", "--vectors", folder / "vectors.npz",
                       "-o", folder / "codes.npz", "--force")  # fmt: skip

    def check(self, folder, said):
        if (folder / "codes.npz").exists() and self.result(folder) != self.reference():
            return ["half a file of codes"]
        return super().check(folder, said)

    def result(self, folder):
        return digest(bt.Codes.load(folder / "codes.npz").words)


class Sharding(Resumed):
    """``shards create``."""

    name = "shards"

    def prepare(self, folder):
        rng = np.random.default_rng(2)
        bt.Codes.from_bits(rng.random((20_000, 64)) < 0.5).save(folder / "codes.npz")

    def command(self, folder):
        return bittern("shards", "create", folder / "shards", "--from", folder / "codes.npz",
                       "--shard-size", 400)  # fmt: skip

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
    """``run`` with two processes."""

    name = "run"

    def prepare(self, folder):
        vectors_file(folder, 300)
        (folder / "p.toml").write_text(PROTOCOL)

    def command(self, folder):
        return bittern("run", folder / "p.toml", "--output", folder / "found", "--jobs", 2)

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


def trial(writer, length, rng, folder):
    """Run a writer and end it; how it ended, how long that took, and what is wrong."""
    writer.prepare(folder)
    process = subprocess.Popen(
        writer.command(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "BITTERN_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    by_kill = rng.random() < 0.5
    begin = 0.0 if rng.random() < 0.2 else 0.3  # most of them when it works, not when it starts
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(length * rng.uniform(begin, 1.05))
    how = "ended before" if process.poll() is not None else "killed" if by_kill else "interrupted"
    started = time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        process.kill() if by_kill else os.killpg(process.pid, signal.SIGINT)
    try:
        said, errors = process.communicate(timeout=patience())
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return how, patience(), ["did not end after Ctrl-C"]
    took = time.monotonic() - started
    problems = ["a traceback: " + errors.strip()[-400:]] if "Traceback" in errors else []
    problems += left_processes(process.pid)
    try:
        problems += writer.check(folder, said.split())
    except Exception as error:
        problems.append(f"{type(error).__name__}: {str(error)[:300]}")
    return how, took, problems + left_files(folder)


def left_processes(group):
    """Whether processes of the group live on."""
    end = time.monotonic() + patience() / 4
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return []
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return ["a process lives on"]


def left_files(folder):
    """Temporary files that the next writer would not remove."""
    from bittern.io import leftovers

    leftovers.AGE = 0
    leftovers._looked.clear()
    for place in [folder, *(p for p in folder.rglob("*") if p.is_dir())]:
        leftovers.remove_leftovers(place)
    left = [p.name for p in folder.rglob("*") if p.name.endswith(".tmp") or ".bittern-" in p.name]
    return [f"left behind: {', '.join(left[:3])}"] if left else []


def usual_length(writer):
    """Seconds that the uninterrupted command takes now."""
    with tempfile.TemporaryDirectory() as place:
        writer.prepare(Path(place))
        started = time.monotonic()
        writer.finish(Path(place))
        return time.monotonic() - started


def crash(writer, trials, seed=0, say=lambda line: None):
    """The counts of many trials, and the problems."""
    rng, counts, problems = random.Random(f"{writer.name} {seed}"), Counter(), []
    length = usual_length(writer)
    for number in range(trials):
        folder = Path(tempfile.mkdtemp())
        how, took, wrong = trial(writer, length, rng, folder)
        shutil.rmtree(folder, ignore_errors=True)
        counts.update(["trials", how])
        counts["slowest end (s)"] = max(counts["slowest end (s)"], round(took, 1))
        if wrong:
            counts["problems"] += 1
            problems += [f"{writer.name}, trial {number} ({how}): {one}" for one in wrong]
            say(problems[-1])
    return counts, problems


def main():
    parser = argparse.ArgumentParser(prog="scripts/crash-test", description="Kill what writes.")
    parser.add_argument("--trials", type=int, default=10, help="of each writer")
    parser.add_argument("--writer", action="append", choices=list(WRITERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the counts to this file")
    given = parser.parse_args()
    lines = ["| writer | " + " | ".join(OUTCOMES) + " |", "|---" + "|---:" * len(OUTCOMES) + "|"]
    every, found = [], {}
    for name in given.writer or WRITERS:
        counts, problems = crash(
            WRITERS[name], given.trials, given.seed, lambda s: sys.stderr.write(s + "\n")
        )
        lines.append(f"| {name} | " + " | ".join(str(counts[one]) for one in OUTCOMES) + " |")
        every, found[name] = every + problems, dict(counts)
    sys.stdout.write("\n".join([*lines, *every]) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if every else 0


if __name__ == "__main__":
    sys.exit(main())
