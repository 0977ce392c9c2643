"""Captions of a user's own images and arrays."""

import json

import numpy as np
import pytest
from format_true import count_refused, flips, jpeg, truncations, write

import bittern as bt
from bittern.data.readers import folder
from bittern.data.readers.arrays import ARRAYS
from bittern.errors import FileError, InputError


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    for name in ("a.jpg", "b.png", "cat/c.jpg"):
        write(root / name, jpeg(kind="PNG" if name.endswith("png") else "JPEG"))
    return root


CSV = 'file,caption\nb.png,"a tiger, asleep"\ncat/c.jpg, a cat \n'


def texts_of(dataset):
    return list(dataset["text"][:])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("captions.csv", CSV),
        (
            "captions.csv",
            "﻿" + CSV.replace("file,caption", "note,image,text").replace("\n", "\n,")[:-1],
        ),
        (
            "captions.jsonl",
            '{"path": "b.png", "text": "a tiger, asleep"}\n'
            '{"path": "./cat/c.jpg", "text": "a cat"}',
        ),
    ],
)
def test_captions_of_a_folder(photos, name, content):
    write(photos / name, content)
    dataset = folder.load(photos, texts=name)
    assert dataset.ids.tolist() == ["a.jpg", "b.png", "cat/c.jpg"]
    assert texts_of(dataset) == ["", "a tiger, asleep", "a cat"]
    assert dataset.has("text").tolist() == [False, True, True]
    assert dataset.has("image").all()
    assert "2 images have one" in dataset.notes[-1]
    assert folder.load(photos).modalities.keys() == {"image"}


def test_captions_may_lie_elsewhere(photos, tmp_path, monkeypatch):
    write(tmp_path / "captions.csv", CSV)
    assert texts_of(folder.load(photos, texts=tmp_path / "captions.csv"))[2] == "a cat"
    monkeypatch.chdir(tmp_path)
    assert texts_of(bt.load("folder", root="photos", texts="captions.csv"))[2] == "a cat"


def test_several_captions_of_an_image_are_lines_of_one_text(photos):
    write(photos / "c.csv", "file,caption\na.jpg,one\nb.png,two\na.jpg,three\na.jpg,\n")
    assert texts_of(folder.load(photos, texts="c.csv")) == ["one\nthree", "two", ""]


def test_a_caption_without_an_image_is_an_item_without_one(photos):
    write(photos / "manifest.csv", "path,tags\na.jpg,red;blue\nb.png,red\n")
    write(photos / "c.csv", "file,caption\na.jpg,one\n,only words\n")
    dataset = folder.load(photos, texts="c.csv")
    assert dataset.ids.tolist() == ["a.jpg", "b.png", "c.csv:3"]
    assert texts_of(dataset) == ["one", "", "only words"]
    assert dataset.complete().tolist() == [0]
    assert dataset.has("image").tolist() == [True, True, False]
    assert dataset.tags.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]
    with pytest.raises(FileError, match=r"\(no image\): no such file"):
        dataset["image"][2]


def test_text_files_beside_the_images(photos):
    write(photos / "a.txt", "﻿a lion\n")
    write(photos / "cat" / "c.txt", " \n")
    dataset = folder.load(photos, texts=".txt")
    assert texts_of(dataset) == ["a lion", "", ""]
    assert dataset.has("text").tolist() == [True, False, False]


def test_a_manifest_may_have_captions(photos):
    rows = [{"path": "b.png", "text": "two"}, {"path": "a.jpg", "text": None}]
    write(photos / "manifest.jsonl", "\n".join(map(json.dumps, rows)))
    dataset = folder.load(photos)
    assert texts_of(dataset) == ["two", ""]
    assert dataset.complete().tolist() == [0]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("c.csv", "file,caption\nd.jpg,x\n", r"c\.csv, line 2: there is no image 'd\.jpg' in"),
        ("c.csv", "file,caption\n../a.jpg,x\n", r"line 2: there is no image"),
        (
            "c.csv",
            "file;caption\na.jpg;x\n",
            r"one of them caption or text; got \['file;caption'\]",
        ),
        ("c.csv", "file,caption,caption\n", "the column caption is repeated"),
        ("c.csv", "file,caption\n", "has no captions"),
        ("c.csv", "file,caption\na.jpg,x,y\n", "line 2: has 3 cells under 2 columns"),
        ("c.jsonl", '{"file": "a.jpg"}', "line 1: must have a caption"),
        (
            "c.jsonl",
            '{"file": "a.jpg", "text": 3}',
            "line 1: a caption and its file must be strings",
        ),
        (
            "c.jsonl",
            '{"file": "a.jpg", "text": "\\ud800"}',
            "line 1: the caption is not valid Unicode",
        ),
        ("c.dat", "x", r"c\.dat: captions must end in \.csv, \.jsonl"),
    ],
)
def test_wrong_captions_are_refused_by_line(photos, name, content, says):
    write(photos / name, content)
    with pytest.raises(FileError, match=says):
        folder.load(photos, texts=name)


def test_captions_that_are_not_there_are_refused(photos):
    with pytest.raises(FileError, match=r"nothing\.csv: no such file"):
        folder.load(photos, texts="nothing.csv")
    with pytest.raises(
        FileError, match=r"no image has a caption in a file beside it, like .*a\.txt"
    ):
        folder.load(photos, texts=".txt")
    write(photos / "a.txt", b"\xff\xfe\xff")
    with pytest.raises(FileError, match=r"a\.txt"):
        folder.load(photos, texts=".txt")


def test_damaged_captions_end_in_our_error(photos):
    path = write(photos / "c.csv", CSV)
    damaged = [*truncations(path.read_bytes()), *flips(path.read_bytes(), 60)]
    assert count_refused(path, damaged, lambda: folder.load(photos, texts="c.csv")) > 40


X = np.arange(12, dtype=np.float32).reshape(4, 3)
SAID = np.array(["a lion", "", "two cats", "sea"])


def test_an_array_of_texts_is_a_modality(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, captions=SAID, y=np.array([0, 1, 0, 1]))
    dataset = ARRAYS.load(tmp_path / "a.npz")
    assert texts_of(dataset) == SAID.tolist()
    assert dataset.has("text").tolist() == [True, False, True, True]
    assert dataset.labels.tolist() == [0, 1, 0, 1]
    assert ARRAYS.load(tmp_path / "a.npz", texts=None).modalities.keys() == {"vectors"}


def test_missing_texts_of_a_table_are_lacking(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"x": list(X), "said": ["a", None, "b", " "]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = ARRAYS.load(tmp_path / "a.parquet", texts="said", labels=None)
    assert dataset.has("text").tolist() == [True, False, True, False]


def test_rows_of_nan_are_lacking_if_there_is_another_modality(tmp_path):
    image, text = X.copy(), X[:, :2].copy()
    image[1], text[3], text[0, 0] = np.nan, np.nan, np.nan
    np.savez(tmp_path / "a.npz", image=image, text=text)
    dataset = ARRAYS.load(tmp_path / "a.npz", vectors=["image", "text"])
    assert dataset.has("image").tolist() == [True, False, True, True]
    assert dataset.has("text").tolist() == [
        True,
        True,
        True,
        False,
    ]  # one NaN is a fault, not a lack
    assert dataset["image"][1].tolist() == [0, 0, 0] and np.isnan(dataset["text"][0, 0])
    alone = ARRAYS.load(tmp_path / "a.npz", vectors="image")
    assert not alone.present and np.isnan(alone.vectors[1]).all()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("said.txt", "a lion\n\ntwo cats\nsea\n"),
        ("said.csv", 'text\na lion\n""\ntwo cats\nsea\n'),
        ("said.csv", "id,caption\n30,sea\n10,a lion\n22,two cats\n"),
        (
            "said.jsonl",
            '{"id": 30, "text": "sea"}\n{"id": "10", "text": "a lion"}\n'
            '{"id": 22, "text": "two cats"}',
        ),
    ],
)
def test_texts_of_rows_from_a_file(tmp_path, name, content):
    np.savez(tmp_path / "a.npz", X=X, ids=np.array([10, 15, 22, 30]))
    write(tmp_path / name, content)
    dataset = ARRAYS.load(tmp_path / "a.npz", texts=name)  # found beside the arrays
    assert texts_of(dataset) == SAID.tolist()


@pytest.mark.parametrize(
    ("texts", "content", "error", "says"),
    [
        ("s.txt", "one\ntwo\n", FileError, "must have one caption for each of 4 rows, got 2"),
        ("s.csv", "id,text\n1,x\n", InputError, "names its rows by id, but the data has no ids"),
        ("y", "", FileError, "texts must be strings, 'y' is int64"),
        ("words", "", FileError, "no array is called 'words'"),
    ],
)
def test_wrong_texts_of_rows_are_refused(tmp_path, texts, content, error, says):
    np.savez(tmp_path / "a.npz", X=X, y=np.array([0, 1, 0, 1]))
    write(tmp_path / "s.txt", content)
    write(tmp_path / "s.csv", content)
    with pytest.raises(error, match=says):
        ARRAYS.load(tmp_path / "a.npz", texts=texts)


def test_an_unknown_id_of_a_caption_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, ids=np.arange(4))
    write(tmp_path / "s.csv", "id,text\n7,x\n")
    with pytest.raises(FileError, match=r"s\.csv, line 2: no row has the id '7'"):
        ARRAYS.load(tmp_path / "a.npz", texts="s.csv")
