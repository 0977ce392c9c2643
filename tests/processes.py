"""Python in a process of its own, where a process is what is tested."""

import subprocess
import sys
import textwrap


def run_python(script, *arguments):
    """What a script prints, in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
