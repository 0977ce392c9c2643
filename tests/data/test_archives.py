import gzip
import io
import stat
import tarfile
import zipfile

import pytest
from numeric_damage import flips, survivors, truncations

from bittern.errors import FileError
from bittern.io.archives import read_members, unpack


def header(name, size, kind=b"0", link=b""):
    """A header of 512 bytes as POSIX's ustar has it."""
    fields = [
        (name, 100),
        (b"0000644\0", 8),
        (b"0000000\0", 8),
        (b"0000000\0", 8),
        (b"%011o\0" % size, 12),
        (b"00000000000\0", 12),
        (b" " * 8, 8),
        (kind, 1),
        (link, 100),
        (b"ustar\x0000", 8),
    ]
    block = b"".join(value.ljust(width, b"\0") for value, width in fields).ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def tar(*members):
    """Members as ``(name, content)`` or ``(name, content, kind, link)``."""
    blocks = b""
    for name, content, *more in members:
        blocks += header(name, len(content), *more) + content + b"\0" * (-len(content) % 512)
    return blocks + bytes(1024)


def zipped(*members, mode=None):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if mode is not None:
                info.external_attr = mode << 16
            archive.writestr(info, content)
    return file.getvalue()


PLAIN = (b"set/a.bin", b"alpha"), (b"set/readme.txt", b"not asked for"), (b"set/b.bin", b"beta")
WANTED = {"set/a.bin": 10, "set/b.bin": 10, "set/absent.bin": 10}


@pytest.fixture(params=["tar", "tar.gz", "zip"])
def archive(request, tmp_path):
    path = tmp_path / f"x.{request.param}"
    if request.param == "zip":
        path.write_bytes(zipped(*((name.decode(), content) for name, content in PLAIN)))
    else:
        path.write_bytes(tar(*PLAIN) if request.param == "tar" else gzip.compress(tar(*PLAIN)))
    return path


def test_wanted_members_are_read_and_others_are_not(archive):
    assert dict(read_members(archive, WANTED)) == {"set/a.bin": b"alpha", "set/b.bin": b"beta"}


def test_members_are_unpacked_below_the_folder(archive, tmp_path):
    out = tmp_path / "out"
    wanted = {name: 10 for name in ("set/a.bin", "set/b.bin")}
    assert unpack(archive, wanted, out) == [out / "set/a.bin", out / "set/b.bin"]
    assert (out / "set/b.bin").read_bytes() == b"beta"
    assert sorted(path.name for path in (out / "set").iterdir()) == ["a.bin", "b.bin"]


def test_a_missing_member_is_said_when_unpacking(archive, tmp_path):
    with pytest.raises(FileError, match=r"has no set/absent\.bin"):
        unpack(archive, WANTED, tmp_path / "out")


def test_a_member_larger_than_expected_is_refused(archive, tmp_path):
    with pytest.raises(FileError, match=r"set/a\.bin may have at most 4 bytes"):
        list(read_members(archive, {"set/a.bin": 4}))
    with pytest.raises(FileError, match="at most 4 bytes"):
        unpack(archive, {"set/a.bin": 4}, tmp_path / "out")
    assert not (tmp_path / "out/set/a.bin").exists()


@pytest.mark.parametrize("name", ["/etc/x", "../x", "set/../../x", "..\\x", "C:/x", "\\x"])
@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_names_that_leave_the_folder_are_refused(tmp_path, name, ending):
    path = tmp_path / f"x.{ending}"
    if ending == "zip":
        path.write_bytes(zipped((name, b"evil"), ("set/a.bin", b"alpha")))
    else:
        path.write_bytes(tar((name.encode(), b"evil"), *PLAIN))
    with pytest.raises(FileError, match=r"would leave the archive's folder"):
        unpack(path, {name: 10, "set/a.bin": 10}, tmp_path / "deep" / "out")
    assert not (tmp_path / "x").exists() and not (tmp_path / "deep" / "x").exists()


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"6"])
def test_links_and_devices_are_refused(tmp_path, kind):
    path = tmp_path / "x.tar"
    path.write_bytes(tar((b"set/a.bin", b"", kind, b"/etc/passwd")))
    with pytest.raises(FileError, match="must be a plain file, not a link or a device"):
        list(read_members(path, WANTED))


def test_links_in_zip_files_are_refused(tmp_path):
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(("set/a.bin", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777))
    with pytest.raises(FileError, match="must be a plain file"):
        list(read_members(path, {"set/a.bin": 100}))


def test_links_that_nobody_asked_for_are_passed_over(tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(tar((b"set/link", b"", b"2", b"/etc/passwd"), *PLAIN))
    assert dict(read_members(path, WANTED))["set/a.bin"] == b"alpha"


def test_a_member_that_comes_twice_is_refused(tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(tar(PLAIN[0], (b"set/a.bin", b"other")))
    with pytest.raises(FileError, match=r"has set/a\.bin twice"):
        list(read_members(path, WANTED))


def test_a_small_file_does_not_unpack_to_a_huge_one(tmp_path):
    path = tmp_path / "x.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(header(b"junk", (1 << 33) - 1))
        for _ in range(40):
            file.write(bytes(1 << 20))
    with pytest.raises(FileError, match="unpacks to more bytes than expected"):
        list(read_members(path, WANTED))


def test_sparse_members_are_refused(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("set/a.bin")
        info.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.size": "99999999",
            "GNU.sparse.map": "0,5",
        }
        info.size = 5
        archive.addfile(info, io.BytesIO(b"alpha"))
    with pytest.raises(FileError):
        list(read_members(path, {"set/a.bin": 1 << 30}))


def test_damaged_archives_are_refused_by_name(archive):
    content = archive.read_bytes()
    load = lambda: dict(read_members(archive, WANTED))  # noqa: E731
    assert len(survivors(archive, [content], load)) == 1
    right = {"set/a.bin": b"alpha", "set/b.bin": b"beta"}
    for found in survivors(archive, truncations(content), load):
        assert found.items() <= right.items()  # a tar may end early; its members are whole
    assert len(survivors(archive, flips(content, 200), load)) < 200
