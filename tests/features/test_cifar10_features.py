"""The files of features of CIFAR-10, made from small files of its formats."""

import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from cifar_files import packed, write_binary, write_pickles
from real_files import cifar10_pickles, shared_data

import bittern as bt
from bittern.data.dataset import RemoteFile
from bittern.errors import BitternError, FileError, InputError, MissingExtraError
from bittern.features import cifar10 as made
from bittern.features import prepare_cifar10
from bittern.registry import Registry

FORMS = {
    "py": ("cifar-10-batches-py", write_pickles, None),
    "bin": ("cifar-10-batches-bin", write_binary, None),
    "python.tar.gz": ("cifar-10-batches-py", write_pickles, "cifar-10-python.tar.gz"),
    "binary.tar.gz": ("cifar-10-batches-bin", write_binary, "cifar-10-binary.tar.gz"),
}


def write_form(form, folder):
    """The folder or the archive of a form."""
    name, write, archive = FORMS[form]
    batches = write(folder / name)
    return batches if archive is None else packed(batches, folder / archive)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_images_gives_their_gist(form, tmp_path):
    source = write_form(form, tmp_path / "own")
    (path,) = prepare_cifar10(["gist"], source=source, root=tmp_path / "data", jobs=1)
    assert path == tmp_path / "data/cifar10/cifar10_gist512/cifar10_gist512_f16.npz"
    dataset = bt.load("cifar10", tmp_path / "data", features="gist")
    images = np.asarray(bt.load("cifar10", source)["image"])
    rows = bt.features.Gist().transform(list(images)).astype(np.float16)
    assert np.array_equal(np.asarray(dataset.vectors), rows.astype(np.float32))
    assert dataset.labels.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]
    assert [one.name for one in path.parent.iterdir()] == [path.name]  # no parts are left


class Ones(bt.features.ImageFeature):
    """Stands in for the network: values from 0 to 6, and some that rounding took beyond."""

    name = "ones"

    def _describe(self, image):
        row = np.linspace(0, 6, 1280, dtype=np.float32)
        row[:2] = -1e-7, 6.0000005
        return row


@pytest.fixture
def network(monkeypatch):
    """A stand-in for the network, which needs no library."""
    kinds = dict(made.KINDS) | {"cnn": made.Kind(Ones, made._cnn_rows, "q")}
    monkeypatch.setattr(made, "KINDS", Registry("kind", kinds))


def test_network_features_are_stored_as_the_nearest_byte(network, tmp_path):
    source = write_form("bin", tmp_path / "own")
    prepare_cifar10(["cnn"], source=source, root=tmp_path, jobs=1)
    rows = np.asarray(bt.load("cifar10", tmp_path, features="cnn").vectors)
    given = Ones()._describe(None).clip(0, 6)
    levels = np.arange(256)  # the oracle: try all bytes
    errors = np.abs(np.sqrt(given / 6)[:, None] - levels / 255)
    nearest = (6 * (levels / 255) ** 2)[errors.argmin(axis=1)]
    assert rows.shape == (12, 1280) and np.allclose(rows, nearest, atol=1e-6)


def test_what_is_there_is_kept_and_needs_no_images(tmp_path):
    source = write_form("py", tmp_path / "own")
    (path,) = prepare_cifar10(["gist"], source=source, root=tmp_path, jobs=1)
    before = path.stat().st_mtime_ns
    assert prepare_cifar10(["gist"], source=tmp_path / "nowhere", root=tmp_path) == [path]
    assert path.stat().st_mtime_ns == before


def test_finished_rows_are_not_computed_again(monkeypatch, tmp_path):
    source = write_form("py", tmp_path / "own")
    monkeypatch.setattr(made, "CHUNK", 5)
    described, describe = [], bt.features.Gist._describe

    def until_the_seventh(self, image):
        if len(described) == 7:
            raise KeyboardInterrupt
        described.append(image)
        return describe(self, image)

    monkeypatch.setattr(bt.features.Gist, "_describe", until_the_seventh)
    with pytest.raises(KeyboardInterrupt, match=r"kept in .*parts.*continues from there"):
        prepare_cifar10(["gist"], source=source, root=tmp_path, jobs=1)
    with pytest.raises(FileError, match=r"expected one \.npz file of features, found none"):
        bt.load("cifar10", tmp_path, features="gist")  # nothing half-written
    described.clear()
    monkeypatch.setattr(
        bt.features.Gist, "_describe", lambda *given: described.append(1) or describe(*given)
    )
    (path,) = prepare_cifar10(["gist"], source=source, root=tmp_path, jobs=1)
    assert len(described) == 12 - 5
    monkeypatch.undo()
    (whole,) = prepare_cifar10(["gist"], source=source, root=tmp_path / "again", jobs=1)
    assert path.read_bytes() == whole.read_bytes()


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("form", "damage", "says"),
    [
        ("py", lambda place: cut(place / "data_batch_3"), "data_batch_3"),
        ("bin", lambda place: cut(place / "data_batch_3.bin"), "records of 3073 bytes"),
        ("py", lambda place: (place / "test_batch").unlink(), "has no test_batch"),
        ("python.tar.gz", cut, "python.tar.gz"),
        ("binary.tar.gz", lambda place: place.write_bytes(b"<html>"), "binary.tar.gz"),
    ],
)
def test_damaged_images_are_an_error_and_write_nothing(form, damage, says, tmp_path):
    source = write_form(form, tmp_path / "own")
    damage(source)
    with pytest.raises(FileError, match=says):
        prepare_cifar10(["gist"], source=source, root=tmp_path / "data", jobs=1)
    assert not list((tmp_path / "data").rglob("*.npz"))


@pytest.mark.parametrize(
    ("features", "error", "says"),
    [
        (["gits"], BitternError, "did you mean 'gist'"),
        ([], InputError, "must be a list of names"),
        ("gist", InputError, "must be a list of names"),
    ],
)
def test_wrong_features_are_an_error(features, error, says, tmp_path):
    with pytest.raises(error, match=says):
        prepare_cifar10(features, root=tmp_path)


def test_missing_libraries_are_named_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setenv("BITTERN_CACHE", str(tmp_path))  # the network was not exported yet
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"cnn: needs.*pip install 'bittern\[features\]'"):
        prepare_cifar10(["gist", "cnn"], source=tmp_path / "nowhere", root=tmp_path)


class Answer(io.BytesIO):
    """An answer of a server."""

    status_code = 200

    def __init__(self, content):
        super().__init__(content)
        self.headers = {"Content-Length": str(len(content))}

    def raise_for_status(self):
        """It is fine."""

    def iter_content(self, size):
        """The content in pieces."""
        return iter([self.getvalue()])


def test_images_are_downloaded_if_they_are_nowhere(monkeypatch, tmp_path):
    archive = write_form("python.tar.gz", tmp_path / "own")
    monkeypatch.setattr("requests.get", lambda *args, **more: Answer(archive.read_bytes()))
    with pytest.raises(FileError, match="could not be downloaded"):  # another checksum
        prepare_cifar10(["gist"], root=tmp_path / "data", jobs=1)
    source = RemoteFile("https://x/y", archive.name)
    monkeypatch.setattr(made, "SPEC", replace(made.SPEC, sources=(source,)))
    (path,) = prepare_cifar10(["gist"], root=tmp_path / "data", jobs=1)
    assert path.exists() and (tmp_path / "data/cifar10" / archive.name).exists()


def test_the_command_makes_them_and_says_where(run, tmp_path):
    source = write_form("py", tmp_path / "own")
    words = ("data", "prepare", "cifar10", "--features", "gist", "--jobs", 1)
    code, out, _ = run(*words, "--from", source, "--out", tmp_path)
    assert code == 0 and out.strip().endswith("cifar10_gist512_f16.npz")
    code, out, err = run("data", "prepare", "digits")
    assert (code, out) == (2, "") and "only cifar10 has" in err and err.count("\n") == 1
    code, out, err = run(*words, "--from", tmp_path / "nowhere", "--out", tmp_path / "other")
    assert (code, out) == (2, "") and "nowhere" in err and err.count("\n") == 1


@pytest.mark.shared
def test_the_rows_are_those_in_use(tmp_path):
    images = bt.load("cifar10", cifar10_pickles())["image"][:200]
    gist = bt.load("cifar10", shared_data("cifar10_gist512"), features="gist").vectors[:200]
    cnn = bt.load("cifar10", shared_data("cifar10_cnn"), features="cnn").vectors[:200]
    ours = made._gist_rows(bt.features.Gist().transform(images)).astype(np.float32)
    assert np.abs(ours - gist).max() < 2.5e-4  # the last bit of half precision
    stored = made._cnn_rows(made.KINDS["cnn"].make().transform(images))
    steps = np.abs(stored.astype(int) - np.searchsorted(made.CNN_LEVELS, cnn))
    assert steps.max() <= 1 and (steps > 0).mean() < 1e-4  # rounding between two levels
