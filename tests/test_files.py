import errno
import os
import stat
from pathlib import Path

import pytest

from bittern.errors import FileError, InputError
from bittern.io.files import atomic_create, atomic_write, existing_file


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_was_written_takes_the_name(tmp_path):
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"
    assert names_in(tmp_path) == ["a.bin"]


def test_nothing_has_the_name_before_the_end(tmp_path):
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
        file.flush()
        assert not (tmp_path / "a.bin").exists()


def test_an_old_file_is_replaced_only_at_the_end(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old, and longer")
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "a.bin").read_bytes() == b"old, and longer"
    assert (tmp_path / "a.bin").read_bytes() == b"new"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
def test_an_error_leaves_the_old_file_and_no_other(tmp_path, error):
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(error), atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
        raise error
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert names_in(tmp_path) == ["a.bin"]


def test_a_full_disk_is_a_file_error_and_leaves_the_old_file(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")
    says = r"a\.bin: cannot be written \(No space left on device\)"
    with pytest.raises(FileError, match=says), atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert names_in(tmp_path) == ["a.bin"]


def test_a_full_disk_met_only_when_the_data_is_flushed(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left"), atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
    assert names_in(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_that_is_full(tmp_path):
    # A real ENOSPC from the operating system, through the handle that the writer uses.
    with pytest.raises(FileError, match="No space left"), atomic_write(tmp_path / "a.bin") as file:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, file.fileno())
        os.close(full)
        file.write(b"new")
    assert names_in(tmp_path) == []


def test_a_folder_that_is_not_there_is_a_file_error(tmp_path):
    with (
        pytest.raises(FileError, match=r"none/a\.bin: cannot be written \(No such file"),
        atomic_write(tmp_path / "none" / "a.bin"),
    ):
        raise AssertionError("the block must not run")


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    with (
        pytest.raises(FileError, match="a: cannot be written"),
        atomic_write(tmp_path / "a") as file,
    ):
        file.write(b"new")
    assert (tmp_path / "a").is_dir()
    assert names_in(tmp_path) == ["a"]


def test_the_file_may_be_read_by_whom_the_umask_allows(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "a.bin") as file:
            file.write(b"new")
        assert os.umask(0o027) == 0o027  # and the mask is what it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == 0o640


def test_a_plain_string_is_a_path(tmp_path):
    with atomic_write(str(tmp_path / "a.bin")) as file:
        file.write(b"new")
    assert existing_file(str(tmp_path / "a.bin")) == tmp_path / "a.bin"


def test_a_name_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic_write("a.bin") as file:
        file.write(b"new")
    assert names_in(tmp_path) == ["a.bin"]


def test_existing_file_refuses_what_is_not_a_file(tmp_path):
    with pytest.raises(FileError, match="none: no such file"):
        existing_file(tmp_path / "none")
    with pytest.raises(FileError, match="is a folder, not a file"):
        existing_file(tmp_path)


def test_a_file_error_is_an_input_error():
    assert issubclass(FileError, InputError)
    assert issubclass(FileError, ValueError)


def test_an_error_names_the_place_that_was_asked_for_and_nothing_is_left(tmp_path):
    target = tmp_path / "advice"

    def write():
        with atomic_create(target) as made:
            made.mkdir()
            raise FileError(f"{made / 'model.npz'}: cannot be written (No space left on device).")

    with pytest.raises(FileError) as error:
        write()
    assert str(error.value) == f"{target}/model.npz: cannot be written (No space left on device)."
    assert not any(tmp_path.iterdir())


def test_an_array_that_does_not_fit_is_said_in_words(tmp_path):
    full = pytest.raises(FileError, match=r"not all of it; the disk may be full")
    with full, atomic_write(tmp_path / "a.npy"):
        raise OSError("20000 requested and 1008 written")  # as NumPy says it
    assert not any(tmp_path.iterdir())


def test_files_are_written_without_changing_the_umask_of_other_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask is of the whole process"))
    with atomic_write(tmp_path / "file") as file:
        file.write(b"a")
    with atomic_create(tmp_path / "folder") as made:
        made.mkdir(mode=0o700)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("file", "folder")]
    assert modes[1] & 0o666 == modes[0]
