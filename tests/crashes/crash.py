"""Kill and interrupt what writes at random moments, and check that nothing was lost or is left.

    scripts/crash-test --trials 20                      every writer in turn
    scripts/crash-test --trials 100 --writer add
    scripts/crash-test --trials 100 --total crash.json  adds to the counts in this file

Each trial starts a writer in a session of its own, ends it by ``kill -9`` of its first process or
by Ctrl-C to the whole group, and checks: every item whose writing was acknowledged is there, and no
half of one; searches equal brute force; a resumed command gives what an uninterrupted one gives; no
process and no temporary file is left; Ctrl-C prints no traceback.

One trial in NEW starts the command as a user does; in the others a process that has imported
everything is forked, so that the moments of the kills are those of the work.  The service is
ended in ways of its own, see ``serving.py``.
"""

import argparse
import json
import multiprocessing.util
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

NEW = 25  # one trial in so many starts a new Python
AGAIN = 50  # trials after which the length of an uninterrupted command is measured again
MEMORY = Path("/dev/shm")
OUTCOMES = ("trials", "new", "killed", "interrupted", "ended before", "problems", "slowest end (s)")


def trial(writer, length, rng, template, begin):
    """Run a writer and end it; how it ended, how long that took, and what is wrong."""
    from children import left_processes
    from writers import copied, patience

    folder, place = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    try:
        copied(template, folder)
        with begin(writer.words(folder), place) as child:
            by_kill, moment = rng.random() < 0.5, length * rng.uniform(0, 1.05)
            has_ended = child.wait(moment)
            how = "ended before" if has_ended else "killed" if by_kill else "interrupted"
            started = time.monotonic()
            child.kill() if by_kill else child.interrupt()
            if not child.wait(patience()):
                return how, patience(), ["did not end after Ctrl-C"]
            took, errors = time.monotonic() - started, child.errors()
            problems = ["a traceback: " + errors.strip()[-400:]] if "Traceback" in errors else []
            problems += left_processes(child.pid, patience() / 4)
            problems += checked(writer, folder, child.said().split(), begin)
        return how, took, problems + left_files(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)


def checked(writer, folder, said, begin):
    """What is wrong, also if that cannot be found out."""
    try:
        return writer.check(folder, said, begin)
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:300]}"]


def left_files(folder):
    """Temporary files that the next writer would not remove."""
    from bittern.io import leftovers

    leftovers.AGE = 0
    leftovers._looked.clear()
    for place in [folder, *(p for p in folder.rglob("*") if p.is_dir())]:
        leftovers.remove_leftovers(place)
    left = [p.name for p in folder.rglob("*") if p.name.endswith(".tmp") or ".bittern-" in p.name]
    return [f"left behind: {', '.join(left[:3])}"] if left else []


def usual_length(writer, template, begin):
    """Seconds that the uninterrupted command takes now."""
    from writers import copied, finish

    with tempfile.TemporaryDirectory() as place:
        copied(template, Path(place))
        return finish(writer, Path(place), begin)


class Attack:
    """Trials of one writer."""

    def __init__(self, writer, seed):
        self.writer, self._lengths = writer, {}
        self._rng = random.Random(f"{writer.name} {seed}")
        self._template = Path(tempfile.mkdtemp())
        writer.prepare(self._template)

    def trial(self, number):
        """Make a trial: whether with a new Python, how it ended, its seconds, its problems."""
        from writers import begin_forked, begin_new

        is_new = not self.writer.can_fork or self._rng.randrange(NEW) == 0
        begin = begin_new if is_new else begin_forked
        if number % AGAIN == 0:
            self._lengths.clear()  # the machine may be busier than before
        if begin not in self._lengths:
            self._lengths[begin] = usual_length(self.writer, self._template, begin)
        length = self._lengths[begin]
        return is_new, *trial(self.writer, length, self._rng, self._template, begin)

    def close(self):
        """Remove what was prepared."""
        shutil.rmtree(self._template, ignore_errors=True)


class Total:
    """Counts by writer, and the problems; they can be kept in a file."""

    def __init__(self, path=None):
        self.path, self.counts, self.problems = path, {}, []
        if path is not None and path.exists():
            known = json.loads(path.read_text())
            self.counts = {name: Counter(one) for name, one in known["writers"].items()}
            self.problems = known["problems"]

    def add(self, name, number, is_new, how, took, wrong):
        """Count a trial."""
        one = self.counts.setdefault(name, Counter())
        one.update(["trials", how, *(["new"] if is_new else [])])
        one["slowest end (s)"] = max(one["slowest end (s)"], round(took, 1))
        if wrong:
            one["problems"] += 1
            said = [f"{name}, trial {number} ({how}): {problem}" for problem in wrong]
            self.problems += said
            sys.stderr.write("\n".join(said) + "\n")
        self._write()

    def _write(self):
        if self.path is not None:
            new = self.path.with_name(self.path.name + ".new")
            kept = {"writers": self.counts, "problems": self.problems}
            new.write_text(json.dumps(kept, indent=1) + "\n")
            new.replace(self.path)

    def table(self):
        """A Markdown table."""
        lines = [
            "| writer | " + " | ".join(OUTCOMES) + " |",
            "|---" + "|---:" * len(OUTCOMES) + "|",
        ]
        for name, one in self.counts.items():
            lines.append(f"| {name} | " + " | ".join(str(one[o]) for o in OUTCOMES) + " |")
        return "\n".join([*lines, *self.problems])


def attack_of(name, seed):
    """What makes the trials of a writer."""
    from serving import Serving
    from writers import WRITERS

    return Serving(seed) if name == Serving.name else Attack(WRITERS[name], seed)


def crash(names, trials, total, minutes, up_to):
    """Make trials of each writer in turn, so that a run that is stopped has some of all."""
    attacks, end = {}, time.monotonic() + 60 * minutes
    goals = {n: trials + (0 if up_to else total.counts.get(n, Counter())["trials"]) for n in names}
    try:
        while time.monotonic() < end:
            left = [n for n in names if total.counts.get(n, Counter())["trials"] < goals[n]]
            if not left:
                break
            for name in left:
                number = total.counts.get(name, Counter())["trials"]
                if name not in attacks:
                    attacks[name] = attack_of(name, number)
                total.add(name, number, *attacks[name].trial(number))
    finally:
        for one in attacks.values():
            one.close()


def main():
    if sys.argv[1:2] == ["write"]:  # the beginning of a trial
        return write(sys.argv[1:])
    from serving import Serving
    from writers import WRITERS

    names = [*WRITERS, Serving.name]
    parser = argparse.ArgumentParser(prog="scripts/crash-test", description="Kill what writes.")
    parser.add_argument("--trials", type=int, default=10, help="of each writer")
    parser.add_argument("--minutes", type=float, default=1e6, help="end after so many")
    parser.add_argument("--writer", action="append", choices=names)
    parser.add_argument("--total", type=Path, help="file of counts to add to")
    parser.add_argument("--up-to", action="store_true", help="--trials is the total to reach")
    given = parser.parse_args()
    total = Total(given.total)
    multiprocessing.util.get_temp_dir()  # of the fork server, which ends later than we do
    parent = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="bittern-crash-", dir=parent) as place:
        os.environ |= {"TMPDIR": place, "BITTERN_CACHE": f"{place}/cache"}
        tempfile.tempdir = place
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        crash(given.writer or names, given.trials, total, given.minutes, given.up_to)
    sys.stdout.write(total.table() + "\n")
    return 1 if total.problems else 0


def write(words):
    """Be a writer of this project's own, and end as a command does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from writers import run_words

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            run_words(words)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:  # perhaps in the line that ends its being raised
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
