"""Damage files and read them, in workers with limits of time and memory; a table of what happened.

    scripts/fuzz --minutes 10                    all kinds of files, in turn
    scripts/fuzz --minutes 1 --format collection
    scripts/fuzz --trial "profile" 17            one trial in this process, with its traceback

A trial is a format and a number: the same number always makes the same damage.  It ends well if the
file is refused by one of our own errors in a short sentence, or accepted.  It ends badly if another
exception escapes, the process dies, takes more than LIMIT seconds of processor time, or needs more
than MOST_MEMORY bytes; or if a file of ours, which has checksums, gives another answer in silence.
Each bad trial is a finding: its file goes to ``--findings``.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

LIMIT = 10  # seconds of processor time for one trial
PATIENCE = 300  # seconds in which a worker must have answered, whatever else the machine does
MOST_MEMORY = 512 << 20  # bytes that a file of a few kilobytes may take on top
ADDRESSES = 6 << 30  # bytes of address space, far above what imports take
LONGEST = 1500  # characters of an error message
GOOD = ("refused", "accepted", "changed")
BAD = ("silence", "wrong exception", "crash", "hang", "memory")
COLUMNS = ("format", "trials", "refused", "accepted", "changed", *BAD)
MEMORY_ERROR = "not enough memory"


class Worker:
    """A process that makes trials until it dies."""

    def __init__(self, seeds):
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the worker)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", str(seeds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "BITTERN_THREADS": "1"},
        )  # fmt: skip
        self._answer(PATIENCE)  # it has imported everything

    def trial(self, name, number):
        """What became of a trial, and a sentence about it."""
        before = self._seconds()
        try:
            self.process.stdin.write(json.dumps([name, number]) + "\n")
            self.process.stdin.flush()
        except OSError:
            return "crash", self._last_words()
        answer = self._answer(LIMIT, before)
        if answer is None:
            self.process.kill()
            self.process.wait()
            return "hang", f"no answer after {LIMIT} s of processor time"
        if answer == "":
            self.process.wait()
            return "crash", f"exit code {self.process.returncode}: {self._last_words()}"
        return tuple(json.loads(answer))

    @property
    def is_gone(self):
        """Whether it has died."""
        return self.process.poll() is not None

    def stop(self):
        """Kill it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            with contextlib.suppress(OSError):  # what was not sent stays unsent
                stream.close()

    def _answer(self, limit, before=0.0):
        """A line; '' if it died; None if it took too long."""
        import select

        end = time.monotonic() + PATIENCE
        while not select.select([self.process.stdout], [], [], 0.5)[0]:
            if self._seconds() - before > limit or time.monotonic() > end:
                return None
        return self.process.stdout.readline()

    def _seconds(self):
        """Processor time that it has taken."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return 0.0

    def _last_words(self):
        self.log.seek(0)
        return self.log.read()[-300:].decode(errors="replace").strip()


class Tally:
    """Trials by format and outcome, and the distinct findings."""

    def __init__(self, findings=None):
        self.counts = {}
        self.findings = {}  # what is wrong: the first trial of it
        self.folder = findings

    def add(self, name, number, outcome, sentence, seeds):
        """Count a trial; the first of a kind that ended badly is kept and told."""
        self.counts.setdefault(name, Counter())[outcome] += 1
        if outcome in BAD:
            kind = re.sub(r"0x[0-9a-f]+|\d+", "#", sentence)[:160]
            if (name, outcome, kind) not in self.findings:
                self.findings[name, outcome, kind] = (number, sentence)
                sys.stderr.write(f"{outcome}: {name}, trial {number}: {sentence}\n")
                if self.folder is not None:
                    _keep(self.folder, name, number, seeds)

    def table(self):
        """A Markdown table, with the sum in its last line."""
        rows = [
            (name, sum(c.values()), *(c[o] for o in (*GOOD, *BAD)))
            for name, c in self.counts.items()
        ]
        rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
        lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
        return "\n".join(
            [
                *lines,
                *(
                    "| " + " | ".join(f"{v:,}" if isinstance(v, int) else v for v in r) + " |"
                    for r in rows
                ),
            ]
        )

    def listed(self):
        """The findings, one line each."""
        return [
            f"{outcome}: {name}, trial {number}: {sentence}"
            for (name, outcome, _), (number, sentence) in self.findings.items()
        ]


def attack(names, seeds, trials, tally, seconds=None, start=0, every=25):
    """Make ``trials`` of each format, or as many as fit into ``seconds``, in turn."""
    worker, end, number = Worker(seeds), time.monotonic() + (seconds or 1e9), start
    try:
        while time.monotonic() < end and number < start + trials:
            for name in names:
                for n in range(number, min(number + every, start + trials)):
                    if worker.is_gone:
                        worker.stop()
                        worker = Worker(seeds)
                    tally.add(name, n, *worker.trial(name, n), seeds)
                if time.monotonic() > end:
                    break
            number += every
    finally:
        worker.stop()


def _keep(folder, name, number, seeds):
    import formats

    folder.mkdir(parents=True, exist_ok=True)
    one = formats.FORMATS[name]
    content, _ = damaged(one, number, seed_of(one, seeds))
    (folder / file_name(one, number)).write_bytes(content)


def file_name(one, number):
    """The name of a finding: the format's, and the number of the trial."""
    return f"{re.sub('[^a-z0-9]+', '-', one.name.lower()).strip('-')}--{number}{one.ending}"


# What a worker does.


def seed_of(one, seeds):
    """The folder with the sound file of a format; it is made if it is missing."""
    folder = Path(seeds) / re.sub("[^a-z0-9]+", "-", one.name.lower())
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        one.make(folder / f"seed{one.ending}")
        (folder / "made").touch()
    return folder


def damaged(one, number, folder):
    """The bytes of the damaged file of a trial, and whether its structure was not looked at."""
    import mutations

    sound = (folder / f"seed{one.ending}").read_bytes()
    return mutations.mutated(sound, one.inside, mutations.generator(one.name, number))


def read_file(one, content, folder, scratch):
    """The outcome of reading a file, and a sentence."""
    import formats

    from bittern.errors import BitternError

    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder, scratch)
    path = scratch / f"seed{one.ending}"
    path.write_bytes(content)
    before = _peak(reset=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = formats.digest(one.read(path))
        outcome, sentence = "accepted", found
    except BitternError as error:
        outcome, sentence = "refused", str(error)
        if len(sentence) > LONGEST:
            outcome, sentence = (
                "wrong exception",
                f"a message of {len(sentence)} characters: {sentence[:200]}",
            )
    except Exception as error:
        last = [f for f in traceback.extract_tb(error.__traceback__) if "bittern" in f.filename][
            -1:
        ]
        where = "".join(f"{f.filename.rpartition('bittern/')[2]}:{f.lineno}" for f in last)
        outcome, sentence = (
            "wrong exception",
            f"{where}: {type(error).__name__}: {str(error)[:200]}",
        )
    if _peak() - before > MOST_MEMORY:
        outcome, sentence = "memory", f"{(_peak() - before) >> 20} MB: {sentence[:200]}"
    return outcome, sentence


def _peak(reset=False):
    """The most memory that this process has had since the last reset."""
    with contextlib.suppress(OSError):
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    return 0


def work(seeds):
    """Read trials from standard input, and answer each with a line."""
    import formats

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes elsewhere
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    expected = {}
    print("ready", file=answers, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder, "trial")
        for line in sys.stdin:
            name, number = json.loads(line)
            one = formats.FORMATS[name]
            seed = seed_of(one, seeds)
            if name not in expected:
                sound = (seed / f"seed{one.ending}").read_bytes()
                expected[name] = read_file(one, sound, seed, scratch)
                if expected[name][0] != "accepted":
                    print(
                        json.dumps(("wrong exception", f"the seed itself: {expected[name][1]}")),
                        file=answers,
                        flush=True,
                    )
                    continue
            content, is_raw = damaged(one, number, seed)
            outcome, sentence = read_file(one, content, seed, scratch)
            if outcome == "accepted" and sentence != expected[name][1]:
                outcome = "silence" if is_raw and one.is_ours else "changed"
            print(json.dumps((outcome, sentence)), file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz", description="Attack the readers of files."
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--format", action="append", help="only formats whose name has this in it")
    parser.add_argument("--start", type=int, default=1_000_000, help="number of the first trial")
    parser.add_argument("--findings", type=Path, help="folder for the files that ended badly")
    parser.add_argument("--trial", nargs=2, metavar=("FORMAT", "NUMBER"))
    parser.add_argument("--work", metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(given.work)
    import formats

    if given.trial:
        return one_trial(formats.FORMATS[given.trial[0]], int(given.trial[1]))
    names = [n for n in formats.FORMATS if not given.format or any(f in n for f in given.format)]
    with tempfile.TemporaryDirectory() as seeds:
        tally = Tally(given.findings)
        with contextlib.suppress(KeyboardInterrupt):
            attack(names, seeds, 10**9, tally, 60 * given.minutes, given.start)
    sys.stdout.write("\n".join([tally.table(), *tally.listed()]) + "\n")
    return 1 if tally.findings else 0


def one_trial(one, number):
    with tempfile.TemporaryDirectory() as folder:
        seed = seed_of(one, Path(folder, "seeds"))
        path = seed / f"seed{one.ending}"
        path.write_bytes(damaged(one, number, seed)[0])
        sys.stdout.write(repr(one.read(path))[:500] + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
