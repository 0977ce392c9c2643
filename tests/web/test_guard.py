"""Safe by default: who may ask, how much, and what can be read."""

import io
import json
import os

import pytest
from collections_to_serve import make_images, png
from fastapi.testclient import TestClient
from PIL import Image

from bittern import store
from bittern.web.app import create_app
from bittern.web.images import Limits
from bittern.web.refusal import Refusal
from bittern.web.source import CollectionSource

OURS = "http://127.0.0.1"


@pytest.fixture
def collection(tmp_path):
    with store.open(make_images(tmp_path)) as opened:
        yield opened


def client_of(collection, **more):
    app = create_app(CollectionSource(collection), **more)
    return TestClient(app, base_url=OURS, raise_server_exceptions=False, follow_redirects=False)


def status(client, at="/health", method="GET", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = client.request(method, at, headers=named)
    if answer.status_code >= 400:
        assert list(answer.json()) == ["error"]
    return answer.status_code


def test_only_our_own_names_are_answered_so_that_dns_rebinding_fails(collection):
    client = client_of(collection)
    for name in ("127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000"):
        assert status(client, host=name) == 200
    for name in (
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "[::2]",
        "a@b",
        "[",
    ):
        assert status(client, host=name) == 403, name
    assert status(client, host="") == 400


def test_pages_of_other_sites_may_not_ask(collection):
    client = client_of(collection)
    same = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}
    assert status(client, **same) == 200
    assert status(client, **same, sec_fetch_site="same-origin") == 200
    strange = ("http://[", "http://127.0.0.1:8000.evil.example", "http://a@127.0.0.1:8000", "")
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9000", "file://", *strange):
        assert status(client, host="127.0.0.1:8000", origin=origin) == 403, origin
        assert status(client, "/delete", "POST", host="127.0.0.1:8000", origin=origin) == 403
    assert status(client, sec_fetch_site="cross-site", sec_fetch_mode="no-cors") == 403
    assert status(client, "/items/0/image", sec_fetch_site="same-site") == 403
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert status(client, **link, sec_fetch_dest="document") == 200
    assert status(client, **link, sec_fetch_dest="iframe") == 403
    assert status(client, "/delete", "POST", **link, sec_fetch_dest="document") == 403


def test_with_a_token_every_request_needs_it(collection):
    client = client_of(collection, token="s3cret", hosts=None)
    for at in ("/health", "/metrics", "/items", "/openapi.json", "/nothing", "/items/0/image"):
        assert status(client, at) == 401
        assert status(client, at, authorization="Bearer wrong") == 401
    assert status(client, "/add", "POST") == 401
    assert client.get("/health").headers["www-authenticate"] == "Bearer"
    assert status(client, authorization="Bearer s3cret", host="any.example") == 200
    assert status(client, authorization="Basic s3cret") == 401
    assert status(client, authorization=b"Bearer s3cr\xe9t") == 401
    assert status(client, authorization="Bearer s3cret", origin="http://evil.example") == 403
    with pytest.raises(Refusal, match="needs a token"):
        client_of(collection, hosts=None)


def test_a_token_in_the_address_moves_into_a_cookie_and_leads_nowhere_else(collection):
    client = client_of(collection, token="s3cret", hosts=None)
    moved = client.get("/items?size=2&token=s3cret")
    assert (moved.status_code, moved.headers["location"]) == (303, "/items?size=2")
    cookie = moved.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/items?size=2").status_code == 200  # the client sends the cookie now
    client.cookies.clear()
    other = client.get(f"{OURS}//evil.example/?token=s3cret")
    assert other.headers["location"] == "/evil.example/"
    client.cookies.clear()
    assert client.get("/health?token=wrong").status_code == 401


def test_uploads_are_limited_in_bytes_and_in_pixels(collection):
    client = client_of(collection, limits=Limits(n_bytes=20_000, pixels=1000))
    small = {"image": ("a.png", png(1, (20, 20)), "image/png")}
    assert client.post("/search", files=small).status_code == 200
    large = client.post("/search", files={"image": ("a.png", png(1, (40, 40)), "image/png")})
    assert large.status_code == 413
    assert "pixels" in large.json()["error"]
    blank = io.BytesIO()
    Image.new("1", (31, 31)).save(blank, "PNG")
    many = [("images", (f"{i}.png", blank.getvalue())) for i in range(11)]
    assert client.post("/add", files=many[:2]).status_code == 200
    assert "together" in client.post("/add", files=many).json()["error"]
    long = client.post("/search", content=b"{" + b" " * 20_000)
    assert long.status_code == 413
    assert "bytes" in long.json()["error"]

    def parts():
        for _ in range(30):
            yield b" " * 1000

    as_json = {"content-type": "application/json"}
    assert client.post("/search", content=parts(), headers=as_json).status_code == 413  # no length
    text = client.post("/search", files={"image": ("a.png", b"<script>", "image/png")})
    assert text.status_code == 415
    bomb = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(bomb, "PNG")
    assert len(bomb.getvalue()) < 100_000
    generous = client_of(collection)
    assert generous.post("/search", files={"image": ("a", bomb.getvalue())}).status_code == 413


def test_nothing_but_the_collections_own_images_can_be_read(collection, tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(99))
    photos = tmp_path / "photos"
    (photos / "link.png").symlink_to(secret)
    (photos / "folder").symlink_to(tmp_path)
    (photos / "inner.png").symlink_to(photos / "1.png")
    (photos / "page.png").write_text("<script>alert(1)</script>")
    (photos / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    os.mkfifo(photos / "pipe.png")
    paths = {
        str(secret): 403,
        "secret.png": 403,
        "photos/../secret.png": 403,
        "photos/link.png": 403,
        "photos/folder/secret.png": 403,
        "../../../../../../etc/passwd": 403,
        "photos.bittern": 403,
        "photos/missing.png": 404,
        "photos/pipe.png": 404,
        "photos": 404,
        "photos/page.png": 415,
        "photos/drawing.svg": 415,
        "photos/inner.png": 200,
        "photos/2.png": 200,
    }
    code = collection.get([0]).codes
    ids = [int(collection.add(code, metadata=[{"path": path}])[0]) for path in paths]
    client = client_of(collection)
    for id_, (path, expected) in zip(ids, paths.items(), strict=True):
        for at in (f"/items/{id_}/image", f"/items/{id_}/image?size=64"):
            answer = client.get(at)
            assert answer.status_code == expected, path
            assert png(99) not in answer.content
    for at in ("/items/0/image/../../../secret.png", "/items/..%2f..%2fsecret.png", "/static/x"):
        assert client.get(at).status_code in (404, 422)
    without = int(collection.add(code)[0])
    assert client.get(f"/items/{without}/image").status_code == 404


def test_an_image_is_sent_as_it_is_or_small_and_never_as_a_page(collection, tmp_path):
    client = client_of(collection)
    whole = client.get("/items/3/image")
    assert whole.content == png(3)
    assert whole.headers["content-type"] == "image/png"
    small = client.get("/items/3/image?size=16")
    with Image.open(io.BytesIO(small.content)) as image:
        assert (image.format, max(image.size)) == ("JPEG", 16)
    again = client.get("/items/3/image", headers={"if-none-match": whole.headers["etag"]})
    assert again.status_code == 304
    Image.new("RGB", (9, 9)).save(tmp_path / "photos" / "old.tif")
    added = collection.add(collection.get([0]).codes, metadata=[{"path": "photos/old.tif"}])
    assert client.get(f"/items/{added[0]}/image").headers["content-type"] == "image/png"


def test_metadata_are_never_html(collection):
    bad = "</script><script>alert(1)</script>"
    id_ = int(collection.add(collection.get([0]).codes, metadata=[{"name": bad}])[0])
    client = client_of(collection)
    for answer in (
        client.get(f"/items/{id_}"),
        client.get("/items"),
        client.post("/search", json={"id": id_}),
        client.get("/nothing<script>"),
    ):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe-inline" not in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        json.loads(answer.content)
    assert client.get(f"/items/{id_}").json()["metadata"]["name"] == bad
