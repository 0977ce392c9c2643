"""What a worker does: damage a file, read it, and say what came of it; thousands of times.

A worker lives for many trials, because starting and importing take seconds and a trial takes
milliseconds.  What it has done is noted in a small shared file before each trial, so that nothing
is forgotten when a trial ends the worker.  The system ends a worker that takes too long.
"""

import contextlib
import json
import mmap
import os
import re
import resource
import shutil
import signal
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path

LIMIT = 10  # seconds of processor time for one trial
MOST_MEMORY = 512 << 20  # bytes that a file of a few kilobytes may take on top
LOOK = 32 << 20  # bytes that the peak may rise before it is looked at
ADDRESSES = 6 << 30  # bytes of address space, far above what imports take
LONGEST = 1500  # characters of an error message
GOOD = ("refused", "accepted", "changed")
BAD = ("silence", "wrong exception", "crash", "hang", "memory")


class Progress:
    """The number of the trial that is being made, and counts, in a file that two processes map."""

    layout = struct.Struct(f"<q{len(GOOD) + len(BAD)}q")

    def __init__(self, path, is_new=False):
        if is_new:
            Path(path).write_bytes(bytes(self.layout.size))
        with Path(path).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), self.layout.size)

    def begin(self, number):
        """Note the trial that begins."""
        struct.pack_into("<q", self._map, 0, number)

    def count(self, outcome):
        """Note how it ended."""
        at = 8 * (1 + (GOOD + BAD).index(outcome))
        (before,) = struct.unpack_from("<q", self._map, at)
        struct.pack_into("<q", self._map, at, before + 1)

    def clear(self):
        """Forget everything."""
        self.layout.pack_into(self._map, 0, -1, *(0 for _ in GOOD + BAD))

    def now(self):
        """The number, and the counts that are not 0, by outcome."""
        number, *counts = self.layout.unpack_from(self._map, 0)
        return number, {o: n for o, n in zip(GOOD + BAD, counts, strict=True) if n}


class Bench:
    """A folder in which the files of trials are read; it keeps the sound files in memory."""

    def __init__(self, seeds, folder):
        self._seeds, self._folder, self._sound = Path(seeds), Path(folder), {}
        self._memory = Memory()

    def trial(self, one, number):
        """What became of a trial, and a sentence about it."""
        from mutations import generator, mutated

        content, answer, known = self.sound(one)
        if answer[0] != "accepted":
            return "wrong exception", f"the seed itself: {answer[1]}"
        damaged, is_raw = mutated(content, one.inside, generator(one.name, number))
        outcome, sentence = self._read(one, damaged, known)
        if outcome == "accepted" and sentence != answer[1]:
            outcome = "silence" if is_raw and one.is_ours else "changed"
        return outcome, sentence

    def read(self, one, content):
        """The outcome of reading a file with these bytes, and a sentence about it."""
        return self._read(one, content, self.sound(one)[2])

    def _read(self, one, content, known):
        path = self._folder / folder_name(one) / f"seed{one.ending}"
        # A new file each time: somebody may still have the old one mapped, or know it by its time.
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        outcome, sentence = read_path(one, path)
        for entry in os.scandir(path.parent):
            if entry.name not in known:  # DuckDB's log, say
                shutil.rmtree(entry) if entry.is_dir() else Path(entry).unlink()
        taken = self._memory.taken()
        if taken > MOST_MEMORY:
            outcome, sentence = "memory", f"{taken >> 20} MB: {sentence[:200]}"
        return outcome, sentence

    def sound(self, one):
        """The sound file's bytes, what reading it gives, and the names of the files beside it."""
        if one.name not in self._sound:
            seed, place = seed_of(one, self._seeds), self._folder / folder_name(one)
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(seed, place)
            content = (seed / f"seed{one.ending}").read_bytes()
            known = {path.name for path in place.iterdir()}
            answer = self._read(one, content, known)
            self._memory = Memory()  # reading it has loaded libraries
            self._sound[one.name] = content, answer, known
        return self._sound[one.name]


class Memory:
    """How far the memory of this process rose; looking is quick as long as it did not."""

    def __init__(self):
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
        self._before = _peak()

    def taken(self):
        """Bytes that the peak rose by since the last look; 0 if they are few."""
        rise = _peak() - self._before
        if rise < LOOK:
            return 0
        self.__init__()
        return rise


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def read_path(one, path):
    """The outcome of reading a file, and a sentence."""
    import formats

    from bittern.errors import BitternError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "accepted", formats.digest(one.read(path))
    except BitternError as error:
        sentence = str(error)
        if len(sentence) <= LONGEST:
            return "refused", sentence
        return "wrong exception", f"a message of {len(sentence)} characters: {sentence[:200]}"
    except Exception as error:
        return "wrong exception", _where_and_what(error)


def _where_and_what(error):
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "bittern" in f.filename]
    where = "".join(f"{f.filename.rpartition('bittern/')[2]}:{f.lineno}" for f in ours[-1:])
    return f"{where}: {type(error).__name__}: {str(error)[:200]}"


def folder_name(one):
    """A format's name in names of files."""
    return re.sub("[^a-z0-9]+", "-", one.name.lower()).strip("-")


def seed_of(one, seeds):
    """The folder with the sound file of a format; it is made if it is missing."""
    folder = Path(seeds) / folder_name(one)
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        one.make(folder / f"seed{one.ending}")
        (folder / "made").touch()
    return folder


def damaged(one, number, folder):
    """The bytes of the damaged file of a trial."""
    from mutations import generator, mutated

    sound = (folder / f"seed{one.ending}").read_bytes()
    return mutated(sound, one.inside, generator(one.name, number))[0]


def work(seeds, folder):
    """Read orders from standard input, and answer with lines of JSON.

    An order is a format, the first number, how many trials at most, and for how many seconds.
    Bad trials are told at once; the last line of an answer has the processor time.
    """
    import formats

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes elsewhere
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when it ends
    progress, bench = Progress(Path(folder, "progress")), Bench(seeds, Path(folder, "trials"))

    def tell(*words):
        answers.write(json.dumps(words) + "\n")
        answers.flush()

    tell("ready")
    for line in sys.stdin:
        name, first, most, seconds = json.loads(line)
        bench.sound(formats.FORMATS[name])  # which may have to be made
        begin = processor_time()
        for number in range(first, first + most):
            progress.begin(number)
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            outcome, sentence = bench.trial(formats.FORMATS[name], number)
            signal.setitimer(signal.ITIMER_PROF, 0)
            progress.count(outcome)
            if outcome in BAD:
                tell("bad", number, outcome, sentence)
            if processor_time() - begin > seconds:
                break
        tell("done", processor_time() - begin)


def processor_time():
    """Seconds of this process and of the children that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
