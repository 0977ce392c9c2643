"""Datasets written as folders."""

import numpy as np
import pytest

import bittern as bt
from bittern.data import Dataset
from bittern.data.export import write_folder
from bittern.data.readers import folder
from bittern.data.rows import Texts
from bittern.errors import BitternError


def test_a_folder_reads_back_what_was_written(tmp_path):
    made = bt.load("captions", n=12, side=16)
    assert write_folder(made, tmp_path / "out") == 12
    back = folder.load(tmp_path / "out", texts="captions.csv")
    assert back.ids.tolist() == [f"{name}.png" for name in made.ids]
    assert list(back["text"][:]) == list(made["text"][:])
    np.testing.assert_array_equal(np.stack(back["image"][:]), made["image"][:])
    assert [back.class_names[c] for c in back.labels] == [made.class_names[c] for c in made.labels]
    for row, marked in zip(back.tags.toarray(), made.tags, strict=True):
        assert set(np.array(back.tag_names)[row]) == set(np.array(made.tag_names)[marked])


def test_items_that_lack_a_modality_lack_it_in_the_folder_too(tmp_path):
    made = Dataset(
        name="made",
        modalities={"image": np.zeros((4, 2, 2), np.uint8), "text": Texts(["a", "", "c", "d"])},
        present={"image": np.array([1, 1, 0, 1], bool), "text": np.array([1, 0, 1, 1], bool)},
        ids=np.array(["x/1", "x/2", "x/3", "x/4"]),  # no names of files
        labels=np.array([0, -1, 0, 0]),
        class_names=("one",),
    )
    assert write_folder(made, tmp_path / "out") == 3
    back = folder.load(tmp_path / "out", texts="captions.csv")
    assert back.ids.tolist() == ["0.png", "1.png", "3.png", "captions.csv:3"]
    assert list(back["text"][:]) == ["a", "", "d", "c"]
    assert back.labels is None and back.complete().tolist() == [0, 2]


def test_what_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(BitternError, match="is not empty; give a new folder"):
        write_folder(bt.load("captions", n=2), tmp_path)
    with pytest.raises(BitternError, match="no modality is called 'image'"):
        write_folder(bt.load("digits"), tmp_path / "digits")
    with pytest.raises(BitternError, match="pixels must be images of bytes, got float32"):
        write_folder(bt.load("digits"), tmp_path / "pixels", image="pixels")


def test_the_command_does_the_same(tmp_path, run):
    out = tmp_path / "out"
    code, said, err = run("data", "export", "captions", out, "--option", "n=3")
    assert code == 0, err
    assert said == f"{out}: 3 images.\n"
    assert sorted(path.name for path in out.iterdir()) == [
        "00000.png", "00001.png", "00002.png", "captions.csv", "manifest.csv",
    ]  # fmt: skip
