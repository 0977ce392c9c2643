"""Damage files and read them, in workers with limits of time and memory; a table of what happened.

    scripts/fuzz --minutes 10                    all kinds of files, the same time for each
    scripts/fuzz --minutes 60 --total fuzz.json  goes on where the last run with this file ended
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
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from trials import BAD, GOOD, LIMIT, Progress, damaged, folder_name, seed_of, work

PATIENCE = 300  # seconds in which a trial must have ended, whatever else the machine does
SLICE = 1.0  # seconds of processor time for one format, before it is the next one's turn
MOST = 10_000  # trials of one format in a turn
LIFE = 200_000  # trials of one worker; libraries may leak a little
COLUMNS = ("format", "trials", "refused", "accepted", "changed", *BAD, "trials/s")
MEMORY = Path("/dev/shm")  # a folder in memory, where there is one


class Worker:
    """A process that makes trials; after it died, or made many, another takes over."""

    def __init__(self, seeds):
        self._seeds, self._process = seeds, None

    def trials(self, name, first, most, seconds=1e9):
        """Make trials until one of them ends the worker; counts, findings, processor time."""
        if self._process is None or self._process.poll() is not None or self._n_trials > LIFE:
            self.stop()
            self._start()
        self._progress.clear()
        findings, took = [], 0.0
        order = json.dumps([name, first, most, seconds]) + "\n"
        with contextlib.suppress(OSError):  # it died meanwhile
            self._process.stdin.write(order.encode())
            self._process.stdin.flush()
        while (answer := self._answer()) is not None:
            if answer[0] == "done":
                took = answer[1]
                break
            findings.append(tuple(answer[1:]))
        number, counts = self._progress.now()
        if answer is None:
            findings.append((number, *self._ending()))
            counts[findings[-1][1]] = counts.get(findings[-1][1], 0) + 1
        self._n_trials += sum(counts.values())
        return counts, findings, took

    def stop(self):
        """Kill it."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):  # what was not sent stays unsent
                stream.close()
        self._folder.cleanup()
        self._process = None

    def _start(self):
        self._folder = tempfile.TemporaryDirectory(prefix="bittern-fuzz-", dir=place())
        folder = self._folder.name
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the worker)
        self._progress = Progress(Path(folder, "progress"), is_new=True)
        self._n_trials, self._rest = 0, b""
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work", str(self._seeds), folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            env={**os.environ, "OMP_NUM_THREADS": "1", "BITTERN_THREADS": "1",
                 "TMPDIR": folder, "BITTERN_CACHE": f"{folder}/cache"},
        )  # fmt: skip
        if not self._answer():
            raise RuntimeError(f"the worker does not start: {self._last_words()}")

    def _answer(self):
        """The next line; None if the worker died, or was killed because it did not go on."""
        before, end = None, 0.0
        while b"\n" not in self._rest:
            if select.select([self._process.stdout], [], [], 1)[0]:
                got = os.read(self._process.stdout.fileno(), 1 << 16)
                if not got:
                    self._process.wait()
                    return None
                self._rest += got
            elif (now := self._progress.now()) != before:
                before, end = now, time.monotonic() + PATIENCE
            elif time.monotonic() > end:
                self._process.kill()
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _ending(self):
        code = self._process.returncode
        if code == -signal.SIGPROF:
            return "hang", f"no answer after {LIMIT} s of processor time"
        if code == -signal.SIGKILL:
            return "hang", f"no answer after {PATIENCE} s"
        return "crash", f"exit code {code}: {self._last_words()}"

    def _last_words(self):
        self._log.seek(0)
        return self._log.read()[-300:].decode(errors="replace").strip()


class Tally:
    """Trials by format and outcome, and the distinct findings; they can be kept in a file."""

    def __init__(self, folder=None, total=None, start=0):
        self.folder, self.total, self.start = folder, total, start
        self.counts, self.findings = {}, []  # each a format, a number, an outcome, a sentence
        if total is not None and total.exists():
            known = json.loads(total.read_text())
            self.counts = {name: Counter(one) for name, one in known["formats"].items()}
            self.findings = [tuple(one) for one in known["findings"]]

    def of(self, name):
        """The counts of a format, the number of its next trial, and its seconds."""
        return self.counts.setdefault(name, Counter({"next": self.start}))

    def add(self, name, counts, findings, took, seeds):
        """Count trials; the first of a kind that ended badly is kept and told."""
        one = self.of(name)
        one.update(counts)
        one["next"] += sum(counts.values())
        one["seconds"] += took
        for number, outcome, sentence in findings:
            is_new = _kind(name, number, outcome, sentence) not in self._kinds()
            self.findings.append((name, number, outcome, sentence))
            if is_new:
                sys.stderr.write(f"{outcome}: {name}, trial {number}: {sentence}\n")
                if self.folder is not None:
                    _keep(self.folder, name, number, seeds)

    def again(self, worker):
        """Make the trials that ended badly again, and count how they end now."""
        was, self.findings = self.findings, []
        for name, number, outcome, _ in was:
            counts, findings, _ = worker.trials(name, number, 1)
            self.counts[name][outcome] -= 1
            self.counts[name].update(counts)
            self.findings += [(name, *one) for one in findings]

    def _kinds(self):
        """The first finding of each kind."""
        kinds = {}
        for one in self.findings:
            kinds.setdefault(_kind(*one), one)
        return kinds

    def write(self):
        """Keep all of it in the file."""
        if self.total is not None:
            kept = {"formats": self.counts, "findings": self.findings}
            new = self.total.with_name(self.total.name + ".new")
            new.write_text(json.dumps(kept, indent=1) + "\n")
            new.replace(self.total)

    def table(self):
        """A Markdown table, with the sum in its last line."""
        rows = [(name, *_row(one)) for name, one in self.counts.items()]
        every = Counter()
        for one in self.counts.values():
            every.update(one)
        rows.append(("all", *_row(every)))
        lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
        lines += [
            "| " + " | ".join(f"{v:,}" if isinstance(v, int) else v for v in row) + " |"
            for row in rows
        ]
        return "\n".join(lines)

    def listed(self):
        """The findings, one line for each kind."""
        return [
            f"{outcome}: {name}, trial {number}: {sentence}"
            for name, number, outcome, sentence in self._kinds().values()
        ]


def _kind(name, number, outcome, sentence):
    return name, outcome, re.sub(r"0x[0-9a-f]+|\d+", "#", sentence)[:160]


def _row(counts):
    values = [counts[o] for o in (*GOOD, *BAD)]
    rate = sum(values) / counts["seconds"] if counts["seconds"] else 0.0
    return sum(values), *values, f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def attack(names, seeds, tally, trials=None, seconds=None):
    """Make ``trials`` of each format, or give all the same time until ``seconds`` are over.

    What ended badly in an earlier run is made again first: it may be mended.
    """
    worker, end, written = Worker(seeds), time.monotonic() + (seconds or 1e9), time.monotonic()
    tally.again(worker)
    left = dict.fromkeys(names, trials or 10**12)
    try:
        while time.monotonic() < end and (open_ := [name for name in names if left[name] > 0]):
            name = min(open_, key=lambda one: tally.of(one)["seconds"]) if seconds else open_[0]
            order = tally.of(name)["next"], min(left[name], MOST), SLICE if seconds else 1e9
            counts, findings, took = worker.trials(name, *order)
            # A worker that died cannot say what it took; its next turn comes later all the same.
            tally.add(name, counts, findings, took or SLICE, seeds)
            left[name] -= sum(counts.values())
            if time.monotonic() > written + 30:
                tally.write()
                written = time.monotonic()
    finally:
        worker.stop()
        tally.write()


def place():
    """Where files of trials are: in memory, if there is such a folder."""
    return MEMORY if os.access(MEMORY, os.W_OK) else None


def _keep(folder, name, number, seeds):
    import formats

    folder.mkdir(parents=True, exist_ok=True)
    one = formats.FORMATS[name]
    (folder / file_name(one, number)).write_bytes(damaged(one, number, seed_of(one, seeds)))


def file_name(one, number):
    """The name of a finding: the format's, and the number of the trial."""
    return f"{folder_name(one)}--{number}{one.ending}"


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz", description="Attack the readers of files."
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--format", action="append", help="only formats whose name has this in it")
    parser.add_argument("--start", type=int, default=1_000_000, help="number of the first trial")
    parser.add_argument("--findings", type=Path, help="folder for the files that ended badly")
    parser.add_argument("--total", type=Path, help="file of counts to go on with")
    parser.add_argument("--trial", nargs=2, metavar=("FORMAT", "NUMBER"))
    parser.add_argument("--work", nargs=2, metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(*given.work)
    import formats

    if given.trial:
        name, number = given.trial
        if name not in formats.FORMATS or not number.isdecimal():
            parser.error(
                f"--trial takes a format, one of {', '.join(formats.FORMATS)}; and a number"
            )
        return one_trial(formats.FORMATS[name], int(number))
    names = [n for n in formats.FORMATS if not given.format or any(f in n for f in given.format)]
    if not names:  # which would find nothing bad
        parser.error(f"--format: none of {', '.join(formats.FORMATS)} has that in its name")
    tally = Tally(given.findings, given.total, given.start)
    made = tempfile.TemporaryDirectory(prefix="bittern-fuzz-", dir=place())
    with made as seeds, contextlib.suppress(KeyboardInterrupt):
        attack(names, seeds, tally, seconds=60 * given.minutes)
    sys.stdout.write("\n".join([tally.table(), *tally.listed()]) + "\n")
    return 1 if tally.findings else 0


def one_trial(one, number):
    with tempfile.TemporaryDirectory() as folder:
        seed = seed_of(one, Path(folder, "seeds"))
        path = seed / f"seed{one.ending}"
        path.write_bytes(damaged(one, number, seed))
        sys.stdout.write(repr(one.read(path))[:500] + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
