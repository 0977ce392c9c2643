"""A real server: processes, signals, sockets."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from collections_to_serve import N, make_vectors
from processes import seconds

from bittern import store
from bittern.io import leftovers
from bittern.web.guard import LOOPBACK
from bittern.web.server import serving

PATIENCE = seconds(60)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_vectors(tmp_path_factory.mktemp("made"))


@contextmanager
def server_of(path, *options):
    """The process of a server, and a client."""
    command = [sys.executable, "-m", "bittern", "serve", str(path), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        hang = threading.Timer(PATIENCE, process.kill)
        hang.start()
        try:
            line = process.stdout.readline().decode()
            found = re.search(r"http://\S+", line)
            assert found, line + process.stderr.read().decode()
            with httpx.Client(base_url=found[0], timeout=PATIENCE) as client:
                yield process, client
        finally:
            hang.cancel()
            process.terminate()
            process.stdout.read()
            said = process.stderr.read().decode()
            assert process.wait(PATIENCE) == 0, said
            assert "Traceback" not in said


def fresh(client, method, at, **more):
    """An answer over a new connection, so that any worker may give it; tried again if one dies."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            url = f"{client.base_url}/{at}"  # certificates, which nobody needs here, load slowly
            return httpx.request(method, url, timeout=PATIENCE, verify=False, **more)
        except httpx.TransportError:
            assert time.monotonic() < until
            time.sleep(0.1)


def processes(parent, target):
    """Living children of the server by what they do; the writer is the one with the collection."""
    found = []
    for child in psutil.Process(parent.pid).children():
        with suppress(psutil.Error):  # it may be ending
            is_ours = "resource_tracker" not in " ".join(child.cmdline())
            if is_ours and _owns(child) == (target == "writer"):
                found.append(child)
    return found


def both_workers(parent):
    """The two workers of a server, as soon as both are there."""
    until = time.monotonic() + PATIENCE
    while len(found := processes(parent, "worker")) < 2:
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


def _owns(child):
    return any(file.path.endswith(".bittern") for file in child.open_files())


def add(client, code):
    answer = fresh(client, "POST", "add", json={"codes": [code], "metadata": [{"label": "new"}]})
    assert answer.status_code == 200, answer.text
    return answer.json()["ids"][0]


def test_a_server_of_two_workers_loses_nothing_when_processes_are_killed(made, tmp_path):
    path = shutil.copy(made, tmp_path)
    with server_of(path, "--workers", "2") as (process, client):
        assert client.get("health").json() == {"status": "ok", "items": N, "n_bits": 16}
        first = add(client, "f0f0")
        for _ in range(8):  # over connections to either worker
            answer = fresh(client, "POST", "search", json={"codes": ["f0f0"], "k": 1})
            (hit,) = answer.json()["results"][0]["hits"]
            assert (hit["id"], hit["distance"]) == (first, 0)
        workers = both_workers(process)
        if sys.platform == "linux":  # copies of a process that has loaded everything
            assert {tuple(one.cmdline()) for one in workers} == {tuple(process.args)}
        workers[0].send_signal(signal.SIGKILL)
        second = add(client, "0ff0")
        (writer,) = processes(process, "writer")
        writer.send_signal(signal.SIGKILL)
        writer.wait(PATIENCE)  # a write to one that is dying is refused as uncertain
        third = add(client, "00ff")  # waits for the next writer
        assert (first, second, third) == (N, N + 1, N + 2)
        for id_ in (first, second, third):
            assert fresh(client, "GET", f"items/{id_}").status_code == 200
        where = {"where": "label = 'new'"}
        assert fresh(client, "GET", "items", params=where).json()["total"] == 3
        both_workers(process)
        text = fresh(client, "GET", "metrics").text
        counted = int(re.search(r'route="/add",status="200"} (\d+)', text)[1])
        assert counted == 3  # of both workers, and of the one that is gone
    with store.open(path) as opened:
        assert opened.ids.tolist() == list(range(N + 3))
    assert not [one for one in Path(path).parent.iterdir() if one.suffix == ".wal"]


@pytest.fixture
def heeds_terminals():
    """Processes that begin meanwhile hear of a closed terminal, even if nohup began the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")
def test_a_closed_terminal_ends_it_and_what_a_kill_left_is_removed(
    made, tmp_path, monkeypatch, heeds_terminals
):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    Path(tmp_path, "t").mkdir()
    path = shutil.copy(made, tmp_path)

    def left():
        return [one.name for one in Path(tmp_path, "t").glob("serve*")]

    with server_of(path) as (process, _):
        for one in (process.pid, *(one.pid for one in psutil.Process(process.pid).children())):
            os.kill(one, signal.SIGHUP)
        assert process.wait(PATIENCE) == 0
    assert left() == []
    with subprocess.Popen(
        [sys.executable, "-m", "bittern", "serve", str(path), "--port", "0"], stdout=subprocess.PIPE
    ) as killed:
        killed.stdout.readline()
        children = psutil.Process(killed.pid).children()
        killed.kill()
    psutil.wait_procs(children, PATIENCE)
    (name,) = left()
    long_ago = time.time() - 2 * leftovers.AGE
    os.utime(tmp_path / "t" / name, (long_ago, long_ago))
    with server_of(path):
        assert len(left()) == 1 and name not in left()


def test_readers_are_answered_while_no_writer_can_begin(made, tmp_path):
    path = Path(shutil.copy(made, tmp_path))
    with server_of(path) as (process, client):
        whole = path.read_bytes()
        path.write_bytes(whole[:5000])
        for one in processes(process, "writer"):
            one.kill()
        for _ in range(20):
            assert client.get("health").json()["items"] == N
            time.sleep(0.1)
        assert process.poll() is None
        path.write_bytes(whole)


def test_beside_other_threads_processes_begin_anew(made, tmp_path):
    path, done = shutil.copy(made, tmp_path), threading.Event()
    other = threading.Thread(target=done.wait, daemon=True)  # a fork would be half a copy
    other.start()
    try:
        with serving(str(path), port=0, token=None, hosts=LOOPBACK) as server:
            answer = httpx.get(f"{server.url}/health", timeout=PATIENCE)
            assert answer.json()["items"] == N
            begun = [" ".join(one.cmdline()) for one in psutil.Process().children()]
            assert sum("spawn_main" in one for one in begun) == 2  # the writer and a worker
    finally:
        done.set()


def test_the_token_comes_from_the_environment_and_a_snapshot_is_left_alone(made, monkeypatch):
    monkeypatch.setenv("BITTERN_TOKEN", "s3cret")
    before = Path(made).read_bytes()
    with server_of(made, "--read-only", "--host", "0.0.0.0") as (_, client):
        assert client.get("health").status_code == 401
        client.headers["Authorization"] = "Bearer s3cret"
        assert client.get("health").json()["items"] == N
        assert client.post("add", json={"codes": ["0000"]}).status_code == 403
        with store.open(made):  # another process may write
            pass
    assert Path(made).read_bytes() == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--host", "0.0.0.0"], "needs --token"),
        (["--host", "192.168.0.1"], "needs --token"),
        (["--workers", "0"], "--workers"),
        (["--port", "70000"], "--port"),
        (["--token", "schlüssel"], "the token must be"),
        (["--token", "two words"], "the token must be"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(run, made, monkeypatch, options, sentence):
    monkeypatch.delenv("BITTERN_TOKEN", raising=False)
    code, _, complaint = run("serve", made, *options)
    assert code == 2
    assert sentence in complaint
    assert complaint.count("\n") == 1


def test_a_file_or_port_that_cannot_be_used_is_one_sentence(run, made, tmp_path):
    assert run("serve", tmp_path / "none")[0] == 2

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, complaint = run("serve", made, "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "choose another with --port" in complaint
    with store.open(shutil.copy(made, tmp_path)) as opened:
        command = [sys.executable, "-m", "bittern", "serve", opened.place, "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "open for writing" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_service_that_cannot_start_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("no collection")
    command = [sys.executable, "-m", "bittern", "serve", tmp_path / "a.txt", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "not a collection" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
