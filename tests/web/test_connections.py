"""Clients that say nothing, too much, or what they say too slowly: others are answered."""

import json
import socket
import threading
import time
from contextlib import closing

import pytest
import uvicorn
from collections_to_serve import make_vectors
from processes import seconds

from bittern import store
from bittern.web import connections, guard
from bittern.web.app import create_app
from bittern.web.connections import Connection
from bittern.web.source import CollectionSource

PATIENCE = 0.3
HEAD = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Of a server with little patience."""
    with (
        pytest.MonkeyPatch.context() as patch,
        store.open(make_vectors(tmp_path_factory.mktemp("made")), read_only=True) as opened,
        socket.socket() as listening,
    ):
        patch.setattr(connections, "PATIENCE", PATIENCE)
        patch.setattr(guard, "PATIENCE", PATIENCE)
        app = create_app(CollectionSource(opened))
        config = uvicorn.Config(
            app, http=Connection, ws="none", log_level="warning", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


def answer_to(port, *parts, pause=0.0):
    """What a server says to bytes, until it closes the connection."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=seconds(5))) as client:
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
        except ConnectionError:
            pass  # it has answered already
        client.settimeout(seconds(5))
        said = b""
        try:
            while part := client.recv(1 << 16):
                said += part
        except ConnectionError:
            pass
        return said


def status_of(said):
    head, _, body = said.partition(b"\r\n\r\n")
    assert list(json.loads(body)) == ["error"]
    return int(head.split()[1])


def test_a_client_that_says_nothing_is_left(port):
    assert answer_to(port) == b""
    assert answer_to(port, b"\r\n") == b""
    assert answer_to(port, b"GET / HT") == b""
    assert answer_to(port, *[b"G", b"E", b"T"] + [b" "] * 100, pause=PATIENCE / 10) == b""


def test_a_client_that_asked_once_and_then_trickles_is_left(port):
    asked = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    said = answer_to(port, asked, *[b"\r\n"] * 100, pause=PATIENCE / 10)
    assert said.startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_refused(port):
    assert status_of(answer_to(port, HEAD + b"Content-Length: 9\r\n\r\n{")) == 408
    trickle = [b" "] * 100
    said = answer_to(port, HEAD + b"Content-Length: 9000\r\n\r\n", *trickle, pause=PATIENCE / 10)
    assert status_of(said) == 408


@pytest.mark.parametrize("begin", [b"GET /", HEAD, HEAD + b"X: "])
def test_a_head_without_end_is_refused(port, begin):
    said = answer_to(port, begin, *[b"a: a\r\n" * 10_000] * 100)
    assert said == b"" or b" 400 " in said or status_of(said) == 431


def test_what_is_not_http_gets_a_sentence(port):
    assert status_of(answer_to(port, b"\x16\x03\x01\x02\x00\r\n\r\n")) == 400


def test_a_client_that_does_not_take_its_answer_is_left(port):
    asked = b"GET /items?size=150 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with closing(socket.create_connection(("127.0.0.1", port), timeout=seconds(5))) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with pytest.raises(ConnectionError):
            until = time.monotonic() + seconds(5)
            while time.monotonic() < until:
                client.sendall(asked * 100)
                time.sleep(PATIENCE / 10)


def test_a_client_that_leaves_is_no_error_of_ours(port, caplog):
    with closing(socket.create_connection(("127.0.0.1", port))) as client:
        client.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
        time.sleep(0.1)
    time.sleep(0.1)
    assert not [record for record in caplog.records if record.exc_info]
