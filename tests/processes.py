"""Python in a process of its own, where a process is what is tested; and without, where not."""

import subprocess
import sys
import textwrap

from bittern.parallel import Outcome


def one_after_another(prepare, tasks, *_, **__):
    """As ``bittern.parallel.run_tasks``, in this process."""
    work = prepare()
    for task in tasks:
        yield Outcome(task, work(task))


def run_python(script, *arguments):
    """What a script prints, in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
