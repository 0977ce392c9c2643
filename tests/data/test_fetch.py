import gzip
import hashlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from test_archives import tar

from bittern.data.catalogue import data_root
from bittern.data.dataset import DatasetSpec, RemoteFile
from bittern.data.fetch import fetch
from bittern.data.readers import cifar10, digits, labelme, mnist, sift1m
from bittern.errors import FileError

CONTENT = bytes(range(256)) * 3000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


class Publisher(BaseHTTPRequestHandler):
    """Serves files from memory, whole or from a position, and can break off in the middle."""

    def __init__(self, site, *more):
        self.site = site
        super().__init__(*more)

    def do_GET(self):
        """Answer with a file of the site."""
        self.site["requests"].append(self.headers.get("Range"))
        content = self.site["files"].get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = 0
        if self.headers.get("Range") and self.site["ranges"]:
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : self.site["break_at"]])

    def log_message(self, *arguments):
        """Say nothing."""


@pytest.fixture
def site():
    """A publisher on this machine: ``files`` by path, the ``requests`` it saw, and its habits."""
    site = {"files": {"/a.bin": CONTENT}, "requests": [], "ranges": True, "break_at": None}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Publisher, site))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield {**site, "url": f"http://127.0.0.1:{server.server_port}", "habits": site}
    server.shutdown()
    server.server_close()
    thread.join()


def spec_of(*sources, **more):
    return DatasetSpec(
        name="toy",
        title="Toy",
        load=lambda folder: None,
        layout="a.bin",
        citation="",
        licence="",
        folder="toy",
        sources=sources,
        **more,
    )


@pytest.mark.parametrize("checksum", [SHA256, MD5, None])
def test_a_file_comes_whole_and_nothing_is_left_over(site, tmp_path, checksum):
    seen = []
    spec = spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin", checksum))
    paths = fetch(spec, tmp_path, progress=lambda *said: seen.append(said))
    assert paths == [tmp_path / "toy" / "a.bin"]
    assert paths[0].read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["a.bin"]
    assert seen[-1] == ("a.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})


def test_what_is_there_is_not_fetched_again(site, tmp_path):
    spec = spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin", SHA256))
    fetch(spec, tmp_path)
    fetch(spec, tmp_path)
    assert site["requests"] == [None]


def test_a_broken_download_is_continued(site, tmp_path):
    spec = spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin", SHA256))
    site["habits"]["break_at"] = 500_000
    with pytest.raises(FileError, match="toy could not be downloaded"):
        fetch(spec, tmp_path)
    assert not (tmp_path / "toy" / "a.bin").exists()
    left = (tmp_path / "toy" / "a.bin.part").stat().st_size
    assert 0 < left <= 500_000
    site["habits"]["break_at"] = None
    assert fetch(spec, tmp_path)[0].read_bytes() == CONTENT
    assert site["requests"] == [None, f"bytes={left}-"]


def test_a_publisher_without_ranges_is_asked_from_the_start(site, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "a.bin.part").write_bytes(b"other bytes")
    site["habits"]["ranges"] = False
    spec = spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin", SHA256))
    assert fetch(spec, tmp_path)[0].read_bytes() == CONTENT


def test_a_whole_part_needs_no_more(site, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "a.bin.part").write_bytes(CONTENT)
    spec = spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin", SHA256))
    assert fetch(spec, tmp_path)[0].read_bytes() == CONTENT


def test_without_a_checksum_nothing_is_continued(site, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "a.bin.part").write_bytes(b"of another version")
    spec = spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin"))
    assert fetch(spec, tmp_path)[0].read_bytes() == CONTENT
    assert site["requests"] == [None]


@pytest.mark.parametrize("checksum", ["0" * 64, "md5:" + "0" * 32])
def test_a_file_of_another_checksum_never_takes_the_name(site, tmp_path, checksum):
    spec = spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin", checksum))
    with pytest.raises(FileError, match=r"a\.bin: toy could not be downloaded .*another way"):
        fetch(spec, tmp_path)
    assert list((tmp_path / "toy").iterdir()) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/a.bin", "ftp://127.0.0.1:9/a.bin"])
def test_where_the_network_refuses_it_says_which_file_to_put_where(tmp_path, url):
    spec = spec_of(RemoteFile(url, "a.bin", SHA256))
    with pytest.raises(FileError) as caught:
        fetch(spec, tmp_path)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'toy' / 'a.bin'}: toy could not be downloaded (")
    assert said.endswith(f"; get {url} another way and put it there, with the checksum {SHA256}.")
    assert "\n" not in said


def test_a_page_that_is_not_there_is_said(site, tmp_path):
    with pytest.raises(FileError, match="404"):
        fetch(spec_of(RemoteFile(site["url"] + "/b.bin", "b.bin")), tmp_path)


def test_wanted_members_are_unpacked_beside_the_archive(site, tmp_path):
    site["files"]["/a.tar.gz"] = gzip.compress(tar((b"in/a.bin", b"alpha"), (b"in/b", b"beta")))
    source = RemoteFile(site["url"] + "/a.tar.gz", "a.tar.gz", unpack=(("in/a.bin", 5),))
    paths = fetch(spec_of(source), tmp_path)
    assert [path.name for path in paths] == ["a.tar.gz", "a.bin"]
    assert (tmp_path / "toy" / "in" / "a.bin").read_bytes() == b"alpha"
    assert not (tmp_path / "toy" / "in" / "b").exists()


def test_nothing_is_printed(site, tmp_path, capfd):
    fetch(spec_of(RemoteFile(site["url"] + "/a.bin", "a.bin")), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_dataset_without_an_address_says_what_it_needs(tmp_path):
    with pytest.raises(FileError, match=r"toy cannot be downloaded; put these files there: a\.bin"):
        fetch(spec_of(), tmp_path)


def test_a_dataset_without_files_needs_none(tmp_path):
    assert fetch(digits.SPEC, tmp_path / "nowhere") == []
    assert not (tmp_path / "nowhere").exists()


def test_the_root_is_given_or_in_the_environment_or_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setenv("BITTERN_DATA", str(tmp_path))
    assert data_root() == tmp_path
    assert data_root("elsewhere") == Path("elsewhere")
    assert data_root("~/x") == Path.home() / "x"
    monkeypatch.delenv("BITTERN_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert data_root().name == "bittern"


@pytest.mark.parametrize(
    "spec",
    [cifar10.SPEC, labelme.SPEC, sift1m.SPEC, mnist.MNIST, mnist.FASHION_MNIST],
    ids=lambda spec: spec.name,
)
def test_addresses_and_checksums_are_well_formed(spec):
    assert spec.sources
    for source in spec.sources:
        assert source.url.rpartition("/")[2] == source.filename
        assert source.url.split(":")[0] in ("https", "http", "ftp")
        if source.sha256 is not None:
            kind, _, digest = source.sha256.rpartition(":")
            assert len(digest) == {"": 64, "md5": 32}[kind] and int(digest, 16)
