"""Python in a process of its own, where a process is what is tested; and without, where not."""

import os
import subprocess
import sys
import textwrap

from bittern.parallel import Outcome


def one_after_another(prepare, tasks, *_, **__):
    """As ``bittern.parallel.run_tasks``, in this process."""
    work = prepare()
    for task in tasks:
        yield Outcome(task, work(task))


def seconds(usual):
    """A limit for what takes less than this on a quiet machine; it is for hangs, not for speed.

    The load of the last minute may rise at once, so the limit is generous on a quiet machine too.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 1
    return usual * max(6, 3 * load / (os.cpu_count() or 1))


def run_python(script, *arguments):
    """What a script prints, in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def in_child(work):
    """The exit code of a forked process that runs ``work``; 0 if it raised no error."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
