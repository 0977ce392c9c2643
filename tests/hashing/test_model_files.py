"""Model files that are damaged, foreign or cannot be written."""

import json

import numpy as np
import pytest

import bittern as bt
from bittern.hashing import LSH, load

X = np.random.default_rng(0).standard_normal((30, 5))


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.npz"
    LSH(n_bits=6).fit(X).save(path)
    return path


def rewrite(path, change):
    """The file again, after ``change`` of its JSON and arrays."""
    with np.load(path) as file:
        arrays = dict(file)
    head = json.loads(arrays.pop("model").tobytes())
    change(head, arrays)
    np.savez(path, model=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)


def test_a_truncated_file_is_refused_at_every_length(model):
    whole = model.read_bytes()
    for n in range(0, len(whole), 37):
        model.write_bytes(whole[:n])
        with pytest.raises(bt.FileError, match=r"model\.npz: "):
            load(model)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda head, arrays: head.update(format="other"), "is not a saved model"),
        (lambda head, arrays: head.update(version=99), "newer version"),
        (lambda head, arrays: head["model"].update(hasher="md5"), "no hasher is called 'md5'"),
        (lambda head, arrays: arrays.pop("learned.projection_"), "not a readable model"),
        (
            lambda head, arrays: arrays.update({"learned.projection_": np.ones((3, 6))}),
            "not a readable model",
        ),
        (lambda head, arrays: head["model"]["parameters"].pop("n_bits"), "not a readable model"),
        (
            lambda head, arrays: head["model"]["learned"].update(encode={"value": 1}),
            "is not a learned attribute of a hasher",
        ),
        (
            lambda head, arrays: head["model"]["parameters"].update(wheels={"value": 4}),
            "not a readable model",
        ),
    ],
)
def test_a_changed_file_is_refused(model, change, says):
    rewrite(model, change)
    with pytest.raises(bt.BitternError, match=says):
        load(model)


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    with pytest.raises(bt.FileError, match="is not a saved model"):
        load(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_text("hello")
    with pytest.raises(bt.FileError, match=r"b\.npz"):
        load(tmp_path / "b.npz")
    with pytest.raises(bt.FileError, match="no such file"):
        load(tmp_path / "c.npz")
    with pytest.raises(bt.FileError, match="is a folder"):
        load(tmp_path)


def test_pickled_objects_are_never_read(tmp_path, model):
    rewrite(model, lambda head, arrays: arrays.pop("learned.mean_"))
    with np.load(model) as file:
        arrays = dict(file)
    np.savez(model, **arrays, **{"learned.mean_": np.array([print], dtype=object)})
    with pytest.raises(bt.FileError):
        load(model)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    hasher = LSH(n_bits=6).fit(X)
    with pytest.raises(bt.FileError, match="cannot be written"):
        hasher.save(tmp_path / "nowhere" / "model.npz")


def test_a_generator_as_random_state_cannot_be_saved(tmp_path):
    hasher = LSH(n_bits=6, random_state=np.random.default_rng(0)).fit(X)
    with pytest.raises(bt.InputError, match=r"random_state of type Generator cannot be saved"):
        hasher.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_names_of_columns_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    LSH(n_bits=6).fit(frame).save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert list(again.feature_names_in_) == list("abcde")
    assert again.encode(frame).n_bits == 6


def test_ctrl_c_before_there_is_a_model_leaves_none(monkeypatch):
    class Stopped(LSH):
        def _fit(self, X, targets):
            raise KeyboardInterrupt

    hasher = Stopped(n_bits=6)
    with pytest.raises(KeyboardInterrupt, match="stopped before there was a model"):
        hasher.fit(X)
    with pytest.raises(bt.NotFittedError):
        hasher.encode(X)


def test_ctrl_c_later_leaves_the_model_so_far():
    class Stopped(LSH):
        def _fit(self, X, targets):
            super()._fit(X, targets)
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="stopped early; the model is the one learned"):
        hasher = Stopped(n_bits=6).fit(X)
    assert hasher.stopped_early_
    assert hasher.encode(X) == LSH(n_bits=6).fit(X).encode(X)
