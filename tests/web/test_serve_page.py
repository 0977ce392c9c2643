"""The page about the service: its commands and its Python, with a real server."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_server import PATIENCE, server_of

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
HERE = "http://127.0.0.1:8000"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for i in range(24):
        path = tmp_path / "images" / ("cat", "dog")[i % 2] / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), np.uint8)).save(path)
    shutil.copy(tmp_path / "images/cat/00.png", tmp_path / "query.jpg")
    monkeypatch.chdir(tmp_path)


def test_the_page_about_the_service_runs(desk, run, capsys):
    make, serve, curl = blocks("bash")
    assert run(*shlex.split(make)[1:])[0] == 0
    _, _, place, *options = shlex.split(serve)
    with server_of(place, *options) as (_, client):
        url = str(client.base_url).rstrip("/")
        for source in blocks("python"):
            exec(source.replace(HERE, url).replace("timeout=60", f"timeout={PATIENCE}"), {})
        printed = capsys.readouterr().out.splitlines()
        assert printed[-1] == "No item has the id 12345678."
        assert len(printed) > 1
        if shutil.which("curl"):
            answers = [answer_of(line.replace(HERE, url)) for line in curl.splitlines()]
            assert '"status":"ok"' in answers[0]
            assert all('"tie_is_cut":' in one and "error" not in one for one in answers[1:3])
            assert '"total":12' in answers[3]
            with Image.open("small.jpg") as image:
                assert image.size == (32, 32)


def answer_of(line):
    done = subprocess.run([*shlex.split(line), "-s"], capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, line
    return done.stdout.decode().replace(": ", ":")
